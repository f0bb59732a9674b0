"""Risks of every model and of rules that know the task, on the same prompts."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads import sparse_rules
from experiments.heads.heads_beyond_d.config import Config
from experiments.heads.rule_names import RULES
from experiments.models import tasks
from experiments.models.model import Model, cut
from lsa_lab import estimators
from lsa_lab.models import moments


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    task = config.models[0][1].task
    of_length = [tasks.distribution(task, n) for n in config.shots]
    key = jax.random.key(config.seed)
    batches = [
        tasks.draw(jax.random.fold_in(key, own.n), own, config.test_prompts) for own in of_length
    ]
    arrays = {}
    for name, runs in models.items():
        row = jax.tree.map(lambda leaf: leaf[0], runs.every.in_float64())
        risks = np.stack([risks_of(row, batch) for batch in batches], axis=-1)
        risks[~runs.finished[0]] = np.nan
        arrays[f"risk, {name}"] = ((f"seed, {name}", "shots"), risks)
        arrays[f"loss, {name}"] = ((f"seed, {name}", f"block, {name}"), runs.loss[0])
    pairs = list(zip(batches, of_length, strict=True))
    rules = [[float(sparse_rules.errors(rule, *pair).mean()) for pair in pairs] for rule in RULES]
    rules.append([least_squares(batch) for batch in batches])
    arrays["rule_risk"] = (("rule", "shots"), np.array(rules))
    return xr.Dataset(arrays, {"shots": list(config.shots), "rule": [*RULES, "least squares"]})


def risks_of(models: Model, batch) -> np.ndarray:  # leaves [S, ...] -> [S]
    """The mean excess risk of every seed, one after the other; rows of as many heads share a
    program."""
    return np.array(_risks()(jax.vmap(Model.plain)(models), batch))


@cache
def _risks():
    """(models [S, ...], batch) -> [S], compiled."""

    def risks(models, batch):
        return jax.lax.map(lambda model: model.risk(batch), models)

    return jax.jit(risks, compiler_options=moments.compiler_options())


@jax.jit
def least_squares(batch):  # []
    weights = jax.vmap(estimators.ols)(batch)
    predicted = jnp.sum(weights * batch.x_query, axis=1)
    return jnp.mean((cut(predicted, batch) - batch.y_query) ** 2)
