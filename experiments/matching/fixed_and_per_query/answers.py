"""The proxy whose gradients are matched, and what the learners answer after chosen demonstrations:
exact ones, and trained attention."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching import checkpoints
from experiments.models.model import Model
from lsa_lab import estimators
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt
from lsa_lab.selection import prefix


def proxy_gradients(config, pool, keys, progress):  # of N pools -> [N, m, p]
    """Those of the linear proxy along its training on each pool."""
    saves = {name: getattr(config, name) for name in ("epochs", "batch", "saves", "learning_rate")}
    recipe = prefix.Recipe(**saves)
    path = checkpoints.linear_checkpoints(pool, recipe, keys, "fixed_and_per_query", progress)
    return jax.jit(jax.vmap(prefix.linear_gradients))(path, pool)


def subset_errors(config, models, batch, subsets):  # leaves [R·P, S·Q, ...] -> [learners, R, P, S]
    """Mean squared errors over the queries of each pool."""
    pools = len(batch.y_query) // config.runs
    batch = jax.tree.map(lambda x: x.reshape(config.runs, -1, *x.shape[2:]), batch)
    squared = squared_errors(config, models, batch)
    return squared.reshape(len(squared), config.runs, pools, subsets, -1).mean(-1)


def squared_errors(config, by_name, batch):  # of prompts, leaves [R, B, ...] -> [learners, R, B]
    """Those of the exact learners, then of the trained models, which compute in float32."""
    exact = np.asarray(_exact(config, batch))
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), batch)
    trained_ones = [np.asarray(_answers(model, single), float)[None] for model in by_name.values()]
    return (np.concatenate([exact, *trained_ones]) - np.asarray(batch.y_query)) ** 2


@partial(jax.jit, static_argnums=0)
def _exact(config, batch):  # -> [2, R, B]
    """Gradient descent from w = 0, which a stack of linear attention computes, and ridge, which is
    the Bayes rule where all demonstrations have one w ~ N(0, I) and Gaussian noise."""
    steps = jnp.full(config.depth, config.step)

    def answers(prompt: Prompt):
        descent = estimators.gradient_descent(prompt, steps)[-1]
        ridge = estimators.gaussian_posterior_mean(prompt, 1.0, config.noise_std**2)
        return jnp.stack([descent, ridge]) @ prompt.x_query

    return jnp.moveaxis(jax.lax.map(jax.vmap(answers), batch), -1, 0)


@moments.compiled
def _answers(model: Model, batch):  # -> [R, B]
    return jax.lax.map(lambda row: row[0].predict(row[1]), (model, batch))
