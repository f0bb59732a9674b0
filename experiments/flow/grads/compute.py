"""Errors of a learner by what many rules select for it, on three kinds of tasks."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow.grads import rules
from experiments.flow.grads.cases import draw, measured
from experiments.flow.grads.config import PROMPTS, TASKS, Config
from experiments.flow.grads.learner import errors_after, squared_error
from lsa_lab.selection import oracles, scores
from lsa_lab.tasks import tables


def by_rules(case, key, config):
    """Squared errors of one query, by every rule ("error" [rules, shots]), by the flow of every
    layer ("layer" [prompts, L, shots]), without demonstrations and with the whole pool ("end").

    Shots beyond the pool are left out.
    """
    m, depth = len(case.pool), config.depth
    shots = tuple(k for k in config.shots if k <= m)
    picks = rules.rankings(case, key, config, max(shots))
    orders = [picks[rule].astype(int) for rule in rules.RULES]
    if m == config.pool:
        flows = rules.layer_flows(case, depth).reshape(-1, m)
        orders += list(jax.vmap(lambda flow: scores.select(flow, max(shots)))(flows).astype(int))
    orders = jnp.stack(orders)
    errors = errors_after(case, orders, shots, depth)
    values = {
        "error": errors[: len(rules.RULES)],
        "end": errors_after(case, jnp.arange(m)[None], (0, m), depth)[0],
        "refused": (orders >= m).any(),
    }
    if m == config.pool:
        values["layer"] = errors[len(rules.RULES) :].reshape(len(PROMPTS), depth, -1)
    if m == config.small:
        values["best"] = oracles.best_subset(_error_of_subset(case, config), m, config.judged)[1]
    return values


def _error_of_subset(case, config):
    all_of_them = jnp.ones(config.judged)
    return lambda indices: squared_error(case, case.pool[indices], all_of_them, config.depth)


def by_oracle(case, key, config):
    """Squared errors of one query after the picks of the greedy oracle ("oracle" [shots]), and
    without demonstrations ("zero_shot")."""
    order = rules.by_oracle(case, config)
    nothing = jnp.zeros_like(case.pool[:, 0])
    return {
        "oracle": errors_after(case, order[None], config.shots, config.depth)[0],
        "zero_shot": squared_error(case, case.pool, nothing, config.depth),
        "refused": (order >= len(case.pool)).any(),
    }


def by_last_layer(case, key, config):
    """Squared errors [2] of one query by the last layer's flow, static or joining."""
    orders = rules.by_last_layer(case, config)
    return {
        "joined": errors_after(case, orders, (config.judged,), config.depth)[:, 0],
        "refused": (orders >= len(case.pool)).any(),
    }


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    table, runs, of_tasks, best_of = tables.load_diabetes(float), config.runs, [], []
    for i, task in enumerate(TASKS):
        cases = draw(config, task, table)
        key = jax.random.fold_in(jax.random.key(config.seed), i)
        keys = jax.random.split(key, (runs + config.validation, config.queries))
        of_tasks.append({m: measured(by_rules, config, cases, keys, m) for m in config.pools})
        few = jax.tree.map(lambda leaf: leaf[:runs, : config.few], (cases, keys))
        best_of.append(measured(by_oracle, config, *few, config.pool))
        if task == "duplicates":
            joined = measured(by_last_layer, config, *few, config.pool)["joined"]

    error = np.array([[_padded(of[m]["error"], config) for m in config.pools] for of in of_tasks])
    layer = np.array([of[config.pool]["layer"] for of in of_tasks])
    end = np.array([[of[m]["end"] for m in config.pools] for of in of_tasks])
    best = np.array([of[config.small]["best"] for of in of_tasks])
    of_rule, of_layer = ("rule", "shots"), ("prompt", "layer", "shots")
    return xr.Dataset(
        {
            "error": (("setting", "pool", "run", *of_rule), error[:, :, :runs]),
            "validation": (("setting", "pool", "other", *of_rule), error[:, :, runs:]),
            "layer_error": (("setting", "run", *of_layer), layer[:, :runs]),
            "layer_validation": (("setting", "other", *of_layer), layer[:, runs:]),
            "end": (("setting", "pool", "run", "prompting"), end[:, :, :runs]),
            "best": (("setting", "run"), best[:, :runs]),
            "oracle": (("setting", "run", "shots"), np.array([of["oracle"] for of in best_of])),
            "zero_shot": (("setting", "run"), np.array([of["zero_shot"] for of in best_of])),
            "joined": (("run", "flow"), joined),
        },
        {
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


def _padded(values, config):  # [..., shots of the pool] -> [..., shots]
    """NaN for more shots than the pool has."""
    missing = len(config.shots) - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)], constant_values=np.nan)
