"""Risks of every variant, of descent and of rules that know the task, on the same prompts."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import Array

from experiments.heads import sparse_rules
from experiments.heads.heads_per_layer.config import Config, depths, sizes
from experiments.heads.rule_names import RULES
from experiments.models import tasks
from experiments.models.model import Model, cut
from lsa_lab import estimators, prompts
from lsa_lab.models import moments
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
    return np.asarray((cut(predicted, batch) - batch.y_query) ** 2)


@partial(jax.jit, static_argnums=1)
def _descent_predictions(
    step_sizes: Array, own_units: bool, batch: Prompt
) -> Array:  # [steps] -> [B]
    def predict_prompt(prompt: Prompt) -> Array:
        read, scale = prompts.normalised(prompt) if own_units else (prompt, 1.0)
        return scale * (estimators.gradient_descent(read, step_sizes)[-1] @ read.x_query)

    return jax.vmap(predict_prompt)(batch)


@partial(jax.jit, static_argnums=1)
@jax.value_and_grad
def _descent_risk(step_sizes: Array, own_units: bool, batch: Prompt) -> Array:  # []
    return jnp.mean((_descent_predictions(step_sizes, own_units, batch) - batch.y_query) ** 2)


def compute(config: Config, models, *, progress=None, checkpoints=None):
    return parts.join(depth_risks(config, models), beyond_d=size_risks(config, models))


def depth_risks(config: Config, models):
    pairs, arrays = pairs_of(config, depths(config)), {}
    for name, spec in depths(config):
        runs, axes = models[name], (f"heads, {name}", "seed")
        arrays[f"risk, {name}"] = ((*axes, "shots"), risks_of(runs, pairs))
        arrays[f"loss, {name}"] = ((*axes, f"block, {name}"), runs.loss)
        arrays[f"taken, {name}"] = (axes, runs.taken)
        parameters = spec.architecture.depth, config.tuning_prompts
        risks = [tuned_errors(*pair, *parameters).mean() for pair in pairs]
        arrays[f"descent, {name}"] = ("shots", np.array(risks))
    arrays["rule_risk"] = (("rule", "shots"), risks_of_rules(pairs))
    coords = {"shots": list(config.shots), "rule": list(RULES)}
    for name, spec in depths(config):
        variants = spec.architecture.variants
        coords[f"heads, {name}"] = [",".join(map(str, heads)) for heads in variants]
    return xr.Dataset(arrays, coords)


def size_risks(config: Config, models):
    pairs, arrays = pairs_of(config.beyond_d, sizes(config)), {}
    for name, _ in sizes(config):
        runs = models[name]
        (risks,) = risks_of(runs, pairs)
        risks[~runs.finished[0]] = np.nan
        arrays[f"risk, {name}"] = ((f"seed, {name}", "shots"), risks)
    arrays["rule_risk"] = (("rule", "shots"), risks_of_rules(pairs))
    return xr.Dataset(arrays, {"shots": list(config.beyond_d.shots), "rule": list(RULES)})


def pairs_of(config, models) -> list:
    """Prompts [B] of every length, and their task."""
    own = [tasks.distribution(models[0][1].task, n) for n in config.shots]
    return [(prompts_of(config, task), task) for task in own]


def prompts_of(config, task) -> Prompt:  # [B]
    key = jax.random.fold_in(jax.random.key(config.seed), task.n)
    return tasks.draw(key, task, config.test_prompts)


def risks_of(runs, pairs) -> np.ndarray:  # [A, S, shots]
    """The mean excess risk of every run, one after the other; models whose layers have as many
    heads share a program."""
    models = jax.vmap(jax.vmap(Model.plain))(runs.every.cast_float64())
    return np.stack([np.asarray(_risks()(models, batch)) for batch, _ in pairs], axis=-1)


@cache
def _risks():
    """(models [A, S, ...], prompts [B]) -> [A, S], compiled."""

    def risks(models, batch):
        by_seed = partial(jax.lax.map, lambda model: model.risk(batch))
        return jax.lax.map(by_seed, models)

    return jax.jit(risks, compiler_options=moments.compiler_options())


def risks_of_rules(pairs) -> np.ndarray:  # [rules, shots]
    errors = sparse_rules.errors
    return np.array([[float(errors(rule, *pair).mean()) for pair in pairs] for rule in RULES])
