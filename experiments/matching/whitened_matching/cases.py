"""Pools of each case with their queries, the gradients of the proxy, and what a subset teaches."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching import checkpoints
from lsa_lab.models import constructions, moments
from lsa_lab.selection import prefix
from lsa_lab.tasks import pools

_ABSENT = 1e-30  # the variance of covariates beyond d: a pool of fewer ones, padded


def variances(spectrum, d, width):  # -> [width]
    return np.r_[np.linspace(*spectrum, d), np.full(width - d, _ABSENT)]


def sample(config, case, pooled, queried, keys):  # [R, D] twice -> Pool [R, m, ...], queries
    """Pools whose covariates have the variances ``pooled``, and queries of the same clusters, in
    the pool's shares, and of the same weights, with variances ``queried``."""
    words = {"noise_std": case.noise_std} | dict(case.words)
    shares = words.get("shares", (1.0,))
    counts = pools.counts(shares, config.queries)
    kept = np.concatenate([k * config.queries + np.arange(count) for k, count in enumerate(counts)])

    def task(variances):
        covariances = jnp.stack([jnp.diag(variances)] * len(shares))
        return pools.PoolTask(config.m, len(variances), covariances=covariances, **words)

    def sample_run(key, pooled, queried):
        key_pool, key_queries = jax.random.split(key)
        pool, count = pools.sample(key_pool, task(pooled)), config.queries
        queries = pools.queries(key_queries, task(queried), pool.population, count)
        present = (pooled > _ABSENT).astype(pool.x.dtype)[None]
        pool, queries = (part.replace(x=part.x * present) for part in (pool, queries))
        queries = pools.take(queries.replace(population=None), kept)
        return pool.replace(population=None), queries

    return jax.jit(jax.vmap(sample_run))(keys, pooled, queried)


def gradients(config, pool, count, keys, progress):  # -> [R, m, count·D]
    """Those of the linear proxy at ``count`` checkpoints of its training."""
    recipe = prefix.Recipe(batch=config.batch, learning_rate=config.rate, saves=count)
    path = checkpoints.linear_checkpoints(pool, recipe, keys, "whitened_matching", progress)
    return jax.jit(jax.vmap(prefix.linear_gradients))(path, pool)


def taught_weights(config, pool, chosen):  # [m, ...], [m] -> [D, d]
    """The weights that descent of each depth learns from the chosen: its map's last row."""
    rows = pools.tokens(pool)
    steps = jnp.full(max(config.depths), config.step, rows.dtype)
    stack = constructions.gradient_descent(steps, rows.shape[1] - 1)
    moment = rows.T @ (chosen[:, None] * rows) / chosen.sum()
    return -moments.layer_maps(stack, moment)[jnp.array(config.depths), -1, :-1]


def measure_subsets(config, pool, queries, chosen):  # [S, m] of one run
    """Gaps and errors [S, D] after every subset, and the weights that subsets [S, D, d] and pool
    [D, d] have taught."""
    weights = jax.lax.map(partial(taught_weights, config, pool), chosen, batch_size=32)
    whole = taught_weights(config, pool, jnp.ones_like(chosen[0]))
    answers, right = weights @ queries.x.T, whole @ queries.x.T  # [S, D, Q], [D, Q]
    scale = (right**2).mean(-1)[None]
    gap = jnp.sqrt(((answers - right[None]) ** 2).mean(-1) / scale)
    error = ((answers - queries.clean[None, None]) ** 2).mean(-1)
    return gap, error, weights, whole
