"""Risks of every variant, of descent and of rules that know the task, on the same prompts."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import Array

from experiments.heads.heads_per_layer.config import Config, depths, sizes
from experiments.heads.model_risks import pairs_of, risks_of, risks_of_rules
from experiments.heads.rule_names import RULES
from experiments.models.model import clip_predictions
from lsa_lab import estimators, prompts
from lsa_lab.prompts import Prompt
from lsa_lab.store import parts
from lsa_lab.tasks.linear import LinearTask, sample

_TUNING_SEED = 8_043_421  # of no experiment: these prompts are never among those judged


def tuned_errors(batch: Prompt, task: LinearTask, steps: int, tuning: int) -> np.ndarray:  # [B]
    """Squared errors after ``steps`` steps, whose sizes suit ``tuning`` other prompts best.

    Prompts are read as they stand or in units of their own, whichever is better on these.
    """
    from scipy.optimize import minimize

    keys = jax.random.split(jax.random.key(_TUNING_SEED), tuning)
    others, start = jax.jit(jax.vmap(partial(sample, task=task)))(keys), np.full(steps, 0.3)
    ends = {
        own_units: minimize(_descent_risk, start, (own_units, others), "L-BFGS-B", jac=True)
        for own_units in (False, True)
    }
    own_units = min(ends, key=lambda units: ends[units].fun)
    predicted = _descent_predictions(ends[own_units].x, own_units, batch)
    return np.asarray((clip_predictions(predicted, batch) - batch.y_query) ** 2)


@partial(jax.jit, static_argnums=1)
def _descent_predictions(step_sizes: Array, own_units: bool, batch: Prompt) -> Array:  # [B]
    def predict_prompt(prompt: Prompt) -> Array:
        read, scale = prompts.normalise(prompt) if own_units else (prompt, 1.0)
        return scale * (estimators.gradient_descent(read, step_sizes)[-1] @ read.x_query)

    return jax.vmap(predict_prompt)(batch)


@partial(jax.jit, static_argnums=1)
@jax.value_and_grad
def _descent_risk(step_sizes: Array, own_units: bool, batch: Prompt) -> Array:  # []
    return jnp.mean((_descent_predictions(step_sizes, own_units, batch) - batch.y_query) ** 2)


def compute(config: Config, models, *, progress=None, checkpoints=None):
    return parts.join(depth_risks(config, models), beyond_d=size_risks(config, models))


def depth_risks(config: Config, models):
    pairs, arrays = pairs_of(config, depths(config)[0][1].task), {}
    coords = {"shots": list(config.shots), "rule": list(RULES)}
    for name, spec in depths(config):
        runs, axes = models[name], (f"heads, {name}", "seed")
        arrays[f"risk, {name}"] = ((*axes, "shots"), risks_of(runs, pairs))
        arrays[f"loss, {name}"] = ((*axes, f"block, {name}"), runs.loss)
        arrays[f"taken, {name}"] = (axes, runs.steps_completed)
        parameters = spec.architecture.depth, config.tuning_prompts
        risks = [tuned_errors(*pair, *parameters).mean() for pair in pairs]
        arrays[f"descent, {name}"] = ("shots", np.array(risks))
        coords[axes[0]] = [",".join(map(str, heads)) for heads in spec.architecture.variants]
    arrays["rule_risk"] = (("rule", "shots"), risks_of_rules(pairs))
    return xr.Dataset(arrays, coords)


def size_risks(config: Config, models):
    pairs, arrays = pairs_of(config.beyond_d, sizes(config)[0][1].task), {}
    for name, _ in sizes(config):
        runs = models[name]
        (risks,) = risks_of(runs, pairs)
        risks[~runs.finished[0]] = np.nan
        arrays[f"risk, {name}"] = ((f"seed, {name}", "shots"), risks)
    arrays["rule_risk"] = (("rule", "shots"), risks_of_rules(pairs))
    return xr.Dataset(arrays, {"shots": list(config.beyond_d.shots), "rule": list(RULES)})
