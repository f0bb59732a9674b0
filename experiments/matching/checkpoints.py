"""Pools, learners of their gradients, and the stack that answers: shared by three experiments (A3).

The stack is masked, normalised linear attention with constructed weights, L steps of gradient
descent. Its prediction is w(S)·x_query, and w(S) is read from its last layer map.
"""

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.models import constructions, linear_attention, moments
from lsa_lab.selection import prefix
from lsa_lab.tasks import pools
from lsa_lab.training import Training, fit


def draw(task, queries, keys):  # -> Pool twice, leaves [R, m, ...] and [R, K·queries, ...]
    """A pool for each key, and queries of every cluster of its law."""

    def one(key):
        key_pool, key_queries = jax.random.split(key)
        pool = pools.sample(key_pool, task)
        return pool.replace(law=None), pools.queries(key_queries, task, pool.law, queries)

    return jax.jit(jax.vmap(one))(keys)


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
    return jnp.asarray(run.history["watch"][:, :-1])


def small(d, scale=1.0):  # -> Params
    """One layer, one step of descent, its answer times ``scale``."""
    return constructions.gradient_descent(jnp.full(1, scale), d)


def prefix_checkpoints(pool, lengths, recipe, key, label, progress=None):  # -> [R, K, C, k, e]
    """Prefixes of several lengths in front of the one-layer model, along their training.

    All have the width k of the longest, and zeros behind their own tokens: the model is quadratic
    in each of its tokens, so that these get no gradient and stay zero, and the mean over the tokens
    is made one over those that are there.
    """
    runs, m, d = pool.x.shape
    longest, count = max(lengths), len(lengths)
    there = jnp.arange(longest)[None] < jnp.asarray(lengths)[:, None]  # [K, k]

    def init(key):  # [K, k, e]: a longer prefix begins like a shorter one
        return jnp.where(there[:, :, None], prefix.init(key, longest, d + 1)[None], 0)

    key_init, key_data = jax.random.split(key)
    start = jax.jit(jax.vmap(init))(jax.random.split(key_init, runs))
    again = jax.tree.map(lambda leaf: jnp.repeat(leaf, count, axis=0), (pool.x, pool.y))
    scales = jnp.tile(longest / jnp.asarray(lengths, float), runs)

    def loss(z, batch, own):
        return prefix.batch_loss(linear_attention.forward, small(d, own[2]), z, batch)

    training = Training(
        loss=loss,
        sample=lambda key, own: prefix.sample_batch(key, pools.Pool(*own[:2]), recipe.batch),
        optimizer=lambda _: recipe.optimizer(m),
        steps=recipe.steps(m),
        label=f"{label}: prefixes",
    )
    run = fit(
        training,
        start.reshape(-1, longest, d + 1),
        jnp.repeat(jax.random.split(key_data, runs), count),
        per_run=(*again, scales),
        watch=lambda z: z,
        chunk=recipe.chunk(m),
        progress=progress,
    )
    watched = jnp.asarray(run.history["watch"][:, :-1])
    return watched.reshape(runs, count, *watched.shape[1:])


def prefix_gradients(checkpoints, lengths, pool):  # [K, C, k, e] -> [K, m, C·k·e], of one run
    """As ``prefix.prefix_gradients``, for every length."""
    d = pool.x.shape[1]
    scales = max(lengths) / jnp.asarray(lengths, float)

    def one(scale, checkpoints):
        return prefix.prefix_gradients(linear_attention.forward, small(d, scale), checkpoints, pool)

    return jax.vmap(one)(scales, checkpoints)


def members(indices, m):  # [..., n] -> [..., m], with 1 for the chosen and 0 for the others
    chosen = np.zeros((*np.shape(indices)[:-1], m))
    np.put_along_axis(chosen, np.asarray(indices), 1.0, axis=-1)
    return chosen


def answers(stack, rows, chosen):  # [m, e], [S, m] -> [S, d]
    """w(S) of every subset S of the pool: one computation, whatever its size."""

    def one(chosen):
        moment = rows.T @ (chosen[:, None] * rows) / chosen.sum()
        return -moments.layer_maps(stack, moment)[-1, -1, :-1]

    return jax.lax.map(one, chosen, batch_size=32)


def gaps(gradients, chosen):  # [m, p], [S, m] -> [S]
    """The objective: |mean over the subset - mean over the pool|."""
    means = (chosen / chosen.sum(1, keepdims=True)) @ gradients
    return jnp.linalg.norm(means - gradients.mean(0)[None], axis=1)
