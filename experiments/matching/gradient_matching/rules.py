"""What each rule of `gradient_matching` chooses from a pool, and what the ablations choose."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.selection import diversity, gradient_matching, rivals, scores
from lsa_lab.tasks import pools


@partial(jax.jit, static_argnums=0)
def rank_all(config, pool, x_queries, key):  # -> [1 + tries + draws + Q, m], of one run
    """What any size is the beginning of: by leverage, at random, and like each query."""
    rows, m = pools.tokens(pool), config.m
    like = jax.vmap(lambda x: scores.select(scores.similarity(rows, x), m))(x_queries)
    by_leverage = scores.select(diversity.leverage(rows), m)[None]
    random = rivals.random_subsets(key, m, m, config.tries + config.random_draws)
    return jnp.concatenate([by_leverage, random, like])


@partial(jax.jit, static_argnums=(0, 1))
def choose(config, size, pool, features, ranked, keys):  # of R runs -> indices [R, S, n]
    """The choices of ``MATCHING`` and ``OTHERS``, the tries of best-of-5, random subsets, and a
    choice for each query."""
    match = partial(gradient_matching.match, size=size)
    labels = np.arange(config.m) * config.strata // config.m

    def choose_run(row):
        pool, features, ranked, key = row
        keys, rows = jax.random.split(key), pools.tokens(pool)
        once = [
            match(features[0], max_swaps=0).indices,
            match(features[0], reverse=True).indices,
            diversity.medoids(rows, size, keys[0]),
            diversity.determinantal(rows, size, ridge=1.0),
            ranked[0, :size],
            jnp.argsort(pool.y)[rivals.stratified(keys[1], labels, size)],
        ]
        white = gradient_matching.whitened(features[0], size)
        white = jnp.pad(white, ((0, 0), (0, features.shape[2] - white.shape[1])))
        every = jnp.concatenate([features, white[None]])
        matched = jax.vmap(lambda gradients: match(gradients).indices)(every)
        return jnp.concatenate([matched, jnp.stack(once), ranked[1:, :size]])

    return jax.lax.map(choose_run, (pool, features, ranked, keys))


@partial(jax.jit, static_argnums=0)
def ablate(config, linear, others):  # [m, p], [A, m, p'] of one run -> indices [A + budgets, n]
    """The choices from fewer checkpoints and other prefixes, and with fewer swaps."""
    match = partial(gradient_matching.match, size=config.ablation_size)
    fewer = jnp.arange(linear.shape[1])[None] < config.d * jnp.asarray(config.used)[:, None]
    cut = jnp.where(fewer[:, None], linear[None], 0)
    cut = jnp.pad(cut, ((0, 0), (0, 0), (0, others.shape[2] - cut.shape[2])))
    every = jnp.concatenate([cut, others])
    matched = jax.vmap(lambda gradients: match(gradients).indices)(every)
    swapped = [match(linear, max_swaps=swaps).indices for swaps in config.budgets]
    return jnp.concatenate([matched, jnp.stack(swapped)])
