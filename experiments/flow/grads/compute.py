"""Errors of a learner by what many rules select for it, in a sweep and on three kinds of tasks."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from experiments.flow.grads import rules
from experiments.flow.grads.cases import Case, cells, draw, measure_all, prior_cases
from experiments.flow.grads.config import SWEEP, TASKS, Config
from lsa_lab.selection import scores
from lsa_lab.tasks import tables


def task_errors(case: Case, key: Array, config: Config) -> dict[str, Array]:
    """Squared errors of one query by every rule ("error" [rules, shots]), by the flow of every
    layer ("layer" [L, shots]), and without demonstrations ("end")."""
    most, depth = max(config.shots), config.depth
    by_rule = rules.rankings(case, key, config, most)
    by_layer = jax.vmap(lambda flow: scores.select(flow, most))(rules.flows_alone(case, depth))
    orders = jnp.concatenate([by_rule, by_layer.astype(int)])
    errors = rules.errors_after(case, orders, config.shots, depth)
    return {
        "error": errors[: len(by_rule)],
        "layer": errors[len(by_rule) :],
        "end": rules.errors_after(case, orders[:1], (0, most), depth)[0, 0],
        "refused": (orders >= len(case.pool)).any(),
    }


def cell_errors(case: Case, key: Array, config: Config) -> dict[str, Array]:
    """Squared errors of one query by every rule ("error" [rules])."""
    orders = rules.rankings(case, key, config, config.judged)
    errors = rules.errors_after(case, orders, (config.judged,), config.depth)[:, 0]
    return {"error": errors, "refused": (orders >= len(case.pool)).any()}


def sweep_errors(config: Config) -> np.ndarray:  # [densities, knowns, noises, runs, rules]
    """Those of all runs, every cell and run with tasks and pools of its own."""
    runs, of_cells = config.runs + config.validation, []
    for i, cell in enumerate(cells(config)):
        # A number that no task of `cases` has: its streams are others than theirs.
        rngs = [np.random.default_rng([config.seed, 1000 + i, run]) for run in range(runs)]
        of_runs = [prior_cases(rng, cell, duplicates=False) for rng in rngs]
        cases = jax.tree.map(lambda *leaves: np.stack(leaves), *of_runs)
        key = jax.random.fold_in(jax.random.key(config.seed), 1000 + i)
        keys = jax.random.split(key, (runs, config.queries))
        of_cells.append(measure_all(cell_errors, config, cases, keys)["error"])
    grid = len(config.densities), len(config.knowns), len(config.noises)
    return np.reshape(of_cells, (*grid, *of_cells[0].shape))


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    table, runs, of_tasks = tables.load_diabetes(float), config.runs, []
    for i, task in enumerate(TASKS):
        cases = draw(config, task, table)
        key = jax.random.fold_in(jax.random.key(config.seed), i)
        keys = jax.random.split(key, (runs + config.validation, config.queries))
        of_tasks.append(measure_all(task_errors, config, cases, keys))
    error, layer, end = (np.array([of[n] for of in of_tasks]) for n in ("error", "layer", "end"))
    grid, of_rule, of_layer = sweep_errors(config), ("rule", "shots"), ("layer", "shots")
    return xr.Dataset(
        {
            "sweep": ((*SWEEP, "run", "rule"), grid[..., :runs, :]),
            "sweep_validation": ((*SWEEP, "other", "rule"), grid[..., runs:, :]),
            "error": (("setting", "run", *of_rule), error[:, :runs]),
            "validation": (("setting", "other", *of_rule), error[:, runs:]),
            "layer_error": (("setting", "run", *of_layer), layer[:, :runs]),
            "layer_validation": (("setting", "other", *of_layer), layer[:, runs:]),
            "end": (("setting", "run"), end[:, :runs]),
        },
        {
            "density": list(config.densities),
            "known": list(config.knowns),
            "noise": list(config.noises),
            "setting": list(TASKS),
            "rule": list(rules.RULES),
            "shots": list(config.shots),
            "layer": np.arange(1, config.depth + 1),
        },
    )
