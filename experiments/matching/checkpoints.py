"""Pools with their queries, and the linear proxy along its training on each pool (A3)."""

import jax
import jax.numpy as jnp

from lsa_lab.selection import prefix
from lsa_lab.tasks import pools
from lsa_lab.training import Training, fit
from lsa_lab.training.status import refuse_divergence


def sample_pools(task, queries, keys):  # -> Pool [R, m, ...], queries [R, K·queries, ...]
    """A pool for each key, and queries of every cluster of its own."""

    def sample(key):
        key_pool, key_queries = jax.random.split(key)
        pool = pools.sample(key_pool, task)
        query_pool = pools.queries(key_queries, task, pool.population, queries)
        return pool.replace(population=None), query_pool.replace(population=None)

    return jax.jit(jax.vmap(sample))(keys)


def linear_checkpoints(pool, recipe, keys, label, progress=None):  # -> [R, C, d]
    """The linear proxy along its training from w = 0, one run for each pool."""
    m, d = pool.x.shape[1:]
    training = Training(
        loss=lambda weights, batch, _: prefix.linear_loss(weights, batch),
        sample=lambda key, rows: prefix.sample_batch(key, pools.Pool(*rows), recipe.batch),
        optimizer=lambda _: recipe.optimizer(m),
        steps=recipe.steps(m),
        label=f"{label}: linear proxy",
    )
    run = fit(
        training,
        jnp.zeros((len(keys), d), pool.x.dtype),
        keys,
        per_run=(pool.x, pool.y),
        watch=lambda weights: weights,
        chunk=recipe.chunk(m),
        progress=progress,
    )
    refuse_divergence(run.status, training.label, needs_all=True)
    return jnp.asarray(run.history["watch"][:, :-1])
