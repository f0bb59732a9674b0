"""Errors of a learner by what many rules select for it, in a sweep and on three kinds of tasks."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from experiments.flow.grads import rules
from experiments.flow.grads.cases import (
    Case,
    cells,
    draw,
    ineffective,
    measured,
    prior_cases,
)
from experiments.flow.grads.config import PROMPTS, SWEEP, TASKS, Config
from experiments.flow.grads.rules import errors_after, squared_error
from lsa_lab.selection import oracles, scores
from lsa_lab.tasks import tables

SCORES = ("GradS", "relevance", "residual")  # ranked in the sweep


def rule_errors(case, key, config):
    """Squared errors of one query, by every rule ("error" [rules, shots]), by the flow of every
    layer ("layer" [prompts, L, shots]), without demonstrations and with the whole pool ("end")."""
    m, depth, most = len(case.pool), config.depth, max(config.shots)
    picks = rules.rankings(case, key, config, most)
    flows = rules.layer_flows(case, depth).reshape(-1, m)
    by_layer = jax.vmap(lambda flow: scores.select(flow, most))(flows).astype(int)
    orders = jnp.stack([*(picks[rule].astype(int) for rule in rules.RULES), *by_layer])
    errors = errors_after(case, orders, config.shots, depth)
    of_layers = errors[len(rules.RULES) :]
    return {
        "error": errors[: len(rules.RULES)],
        "layer": of_layers.reshape(len(PROMPTS), depth, -1),
        "end": errors_after(case, jnp.arange(m)[None], (0, m), depth)[0],
        "refused": (orders >= m).any(),
    }


def pool_errors(case, key, config):
    """Squared errors of one query by every rule ("larger" [rules]), without demonstrations
    ("none"), and after the best subset of a small pool ("best")."""
    picks = rules.rankings(case, key, config, config.judged)
    orders = jnp.stack([picks[rule].astype(int) for rule in rules.RULES])
    values = {
        "larger": errors_after(case, orders, (config.judged,), config.depth)[:, 0],
        "none": (case.y_query - case.prior @ case.x_query) ** 2,
        "refused": (orders >= len(case.pool)).any(),
    }
    if len(case.pool) == config.small:
        error = _error_of_subset(case, config)
        values["best"] = oracles.best_subset(error, config.small, config.judged)[1]
    return values


def _error_of_subset(case, config):
    all_of_them = jnp.ones(config.judged)
    return lambda indices: squared_error(case, case.pool[indices], all_of_them, config.depth)


def oracle_errors(case, key, config):
    """Squared errors of one query after the picks of the greedy oracle ("oracle" [shots]), and
    without demonstrations ("zero_shot")."""
    order = rules.oracle_picks(case, config)
    nothing = jnp.zeros_like(case.pool[:, 0])
    return {
        "oracle": errors_after(case, order[None], config.shots, config.depth)[0],
        "zero_shot": squared_error(case, case.pool, nothing, config.depth),
        "refused": (order >= len(case.pool)).any(),
    }


def last_layer_errors(case, key, config):
    """Squared errors [2] of one query by the last layer's flow, static or joining."""
    orders = rules.last_layer_picks(case, config)
    return {
        "joined": errors_after(case, orders, (config.judged,), config.depth)[:, 0],
        "refused": (orders >= len(case.pool)).any(),
    }


def cell_errors(case: Case, key: Array, config: Config) -> dict[str, Array]:
    """Squared errors of one query by every rule ("error" [rules]), and how SCORES rank what each
    demonstration alone takes off the error ("ranks")."""
    picks = rules.rankings(case, key, config, config.judged)
    orders = jnp.stack([picks[rule].astype(int) for rule in rules.RULES])
    static = rules.static_scores(case, key)
    missing = case.y_query - case.prior @ case.x_query
    worth = missing**2 - (missing - answer_alone(case)) ** 2
    return {
        "error": errors_after(case, orders, (config.judged,), config.depth)[:, 0],
        "ranks": jnp.stack([rank_correlation(static[score], worth) for score in SCORES]),
        "refused": (orders >= len(case.pool)).any(),
    }


def answer_alone(case: Case) -> Array:  # [m]
    """What the learner adds to its answer after each demonstration alone, which it fits:
    (y - w_0·x) x·x_query / |x|²."""
    square = (case.x**2).sum(1)
    product = (case.pool[:, -1] - case.x @ case.prior) * (case.x @ case.x_query)
    return jnp.where(square > 0, product / jnp.where(square > 0, square, 1), 0)


def rank_correlation(left: Array, right: Array) -> Array:  # [m] x 2 -> []
    """Spearman's rank correlation, of ties the mean rank; 0 where either does not change."""

    def ranks(values: Array) -> Array:  # [m], centred
        apart = values[:, None] - values[None]
        return jnp.where(jnp.abs(apart) > 1e-9 * jnp.abs(values).max(), jnp.sign(apart), 0).sum(1)

    x, y = ranks(left), ranks(right)
    size = jnp.sqrt((x @ x) * (y @ y))
    return jnp.where(size > 0, x @ y / jnp.where(size > 0, size, 1), 0)


def sweep_errors(config: Config) -> dict:  # {name: [densities, knowns, noises, runs, ...]}
    """``cell_errors`` of all runs, every cell and run with tasks and pools of its own."""
    runs, of_cells = config.runs + config.validation, []
    for i, cell in enumerate(cells(config)):
        # A number that no task of `cases` has: its streams are others than theirs.
        rngs = [np.random.default_rng([config.seed, 1000 + i, run]) for run in range(runs)]
        of_runs = [prior_cases(rng, cell, duplicates=False) for rng in rngs]
        cases = jax.tree.map(lambda *leaves: np.stack(leaves), *of_runs)
        key = jax.random.fold_in(jax.random.key(config.seed), 1000 + i)
        keys = jax.random.split(key, (runs, config.queries))
        of_cells.append(measured(cell_errors, config, cases, keys, config.pool))
    grid = len(config.densities), len(config.knowns), len(config.noises)
    return jax.tree.map(lambda *rows: np.reshape(rows, (*grid, *rows[0].shape)), *of_cells)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    table, runs, of_tasks, of_oracle = tables.load_diabetes(float), config.runs, [], []
    for i, task in enumerate(TASKS):
        cases = draw(config, task, table)
        key = jax.random.fold_in(jax.random.key(config.seed), i)
        keys = jax.random.split(key, (runs + config.validation, config.queries))
        of_tasks.append(measured(rule_errors, config, cases, keys, config.pool))
        judged = jax.tree.map(lambda leaf: leaf[:runs], (cases, keys))
        few = jax.tree.map(lambda leaf: leaf[:, : config.few], judged)
        of_oracle.append(measured(oracle_errors, config, *few, config.pool))
        if task == "prior":
            of_pools = {m: measured(pool_errors, config, *judged, m) for m in config.pools}
        if task == "duplicates":
            joined = measured(last_layer_errors, config, *few, config.pool)["joined"]
    error, layer, end = (np.array([of[n] for of in of_tasks]) for n in ("error", "layer", "end"))
    larger, none = (np.array([of[n] for of in of_pools.values()]) for n in ("larger", "none"))
    oracle, zero_shot = (np.array([of[n] for of in of_oracle]) for n in ("oracle", "zero_shot"))
    grid = sweep_errors(config)
    shares = [ineffective(cell) for cell in cells(config)]
    of_rule, of_layer = ("rule", "shots"), ("prompt", "layer", "shots")
    return xr.Dataset(
        {
            "sweep": ((*SWEEP, "run", "rule"), grid["error"][..., :runs, :]),
            "sweep_validation": ((*SWEEP, "other", "rule"), grid["error"][..., runs:, :]),
            "ranks": ((*SWEEP, "other", "score"), grid["ranks"][..., runs:, :]),
            "ineffective": (SWEEP, np.reshape(shares, grid["error"].shape[:3])),
            "error": (("setting", "run", *of_rule), error[:, :runs]),
            "validation": (("setting", "other", *of_rule), error[:, runs:]),
            "layer_error": (("setting", "run", *of_layer), layer[:, :runs]),
            "layer_validation": (("setting", "other", *of_layer), layer[:, runs:]),
            "end": (("setting", "run", "prompting"), end[:, :runs]),
            "larger": (("pool", "run", "rule"), larger),
            "larger_none": (("pool", "run"), none),
            "best": (("run",), of_pools[config.small]["best"]),
            "oracle": (("setting", "run", "shots"), oracle),
            "zero_shot": (("setting", "run"), zero_shot),
            "joined": (("run", "flow"), joined),
        },
        {
            "density": list(config.densities),
            "known": list(config.knowns),
            "noise": list(config.noises),
            "score": list(SCORES),
            "setting": list(TASKS),
            "pool": list(config.pools),
            "rule": list(rules.RULES),
            "shots": list(config.shots),
            "prompt": list(PROMPTS),
            "layer": np.arange(1, config.depth + 1),
            "prompting": ["zero-shot", "whole pool"],
            "flow": ["static", "recomputed"],
        },
    )
