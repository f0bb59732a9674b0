"""Pools with their queries, and what is trained on each pool, along its training (A3)."""

import jax
import jax.numpy as jnp

from lsa_lab.selection import prefix
from lsa_lab.tasks import pools
from lsa_lab.training import Training, fit
from lsa_lab.training.status import refuse_divergence


def keys_of(root, runs, count):  # -> count of [runs]
    """Keys of every run, for each of several uses."""
    return [jax.random.split(jax.random.fold_in(root, tag), runs) for tag in range(count)]


def sample_pools(task, queries, keys):  # -> Pool [R, m, ...], queries [R, K·queries, ...]
    """A pool for each key, and queries of every cluster of its own."""

    def sample(key):
        key_pool, key_queries = jax.random.split(key)
        pool = pools.sample(key_pool, task)
        query_pool = pools.queries(key_queries, task, pool.population, queries)
        return pool.replace(population=None), query_pool.replace(population=None)

    return jax.jit(jax.vmap(sample))(keys)


def recipe_of(config):
    """That of a config with its keys."""
    names = ("epochs", "batch", "saves", "learning_rate")
    return prefix.Recipe(**{name: getattr(config, name) for name in names})


def trained_path(loss, recipe, start, keys, rows, label, progress=None):  # leaves [R, ...]
    """What is trained by a recipe, [R, C, ...] from before the first step on, a run for each pool:
    ``rows`` begin with its x and y. The last save, after the last step, is left out."""
    m = rows[0].shape[1]
    training = Training(
        loss=loss,
        sample=lambda key, row: prefix.sample_batch(key, row[:2], recipe.batch),
        optimizer=lambda _: recipe.optimizer(m),
        steps=recipe.steps(m),
        label=label,
    )
    return watched(training, start, keys, rows, recipe.chunk(m), progress)


def watched(training, start, keys, rows, chunk, progress):
    """The path of a training, of which no run may diverge."""
    how = dict(per_run=rows, watch=lambda weights: weights, chunk=chunk, progress=progress)
    run = fit(training, start, keys, **how)
    refuse_divergence(run.status, training.label, needs_all=True)
    return jnp.asarray(run.history["watch"][:, :-1])


def linear_checkpoints(pool, recipe, keys, label, progress=None):  # -> [R, C, d]
    """The linear proxy along its training from w = 0."""

    def loss(weights, batch, _):
        return prefix.linear_loss(weights, pools.Pool(*batch))

    start, rows = jnp.zeros((len(keys), pool.x.shape[2]), pool.x.dtype), (pool.x, pool.y)
    return trained_path(loss, recipe, start, keys, rows, f"{label}: linear proxy", progress)
