"""The subsets that each rule of `whitened_matching` chooses from one pool."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching.subsets import scale
from lsa_lab.selection import diversity, gradient_matching, rivals
from lsa_lab.tasks import pools


def matched_subsets(size, gradients):  # [m, p] -> indices [3, n], whitened rows [m, p]
    """The choice of each of ``MATCHING``."""
    white = gradient_matching.whitened(gradients, size)
    rows = jnp.stack([white, gradients, scale(gradients)])
    return jax.lax.map(lambda rows: gradient_matching.match(rows, size).indices, rows), white


def random_subsets(config, size, key):  # -> [draws, n]
    return rivals.random_subsets(key, config.m, size, config.random_draws)


def rival_subsets(config, size, pool, key):  # -> [2 + 2 draws, n]
    """The choice of each of ``RIVALS``, of the last two several."""
    key_means, key_random, key_strata = jax.random.split(key, 3)
    rows, labels = pools.tokens(pool), np.arange(config.m) * config.strata // config.m
    by_label, keys = jnp.argsort(pool.y), jax.random.split(key_strata, config.random_draws)
    diverse = [
        diversity.medoids(rows, size, key_means),
        diversity.determinantal(rows, size, ridge=1.0),
    ]
    strata = jax.vmap(lambda key: by_label[rivals.stratified(key, labels, size)])(keys)
    return jnp.concatenate([jnp.stack(diverse), random_subsets(config, size, key_random), strata])


def checkpoint_subsets(config, gradients):  # of one run -> indices [most, 2, n]
    """Whitened and plain matching of the first 1, 2, ... checkpoints."""
    most = jnp.arange(1, config.most + 1)[:, None]
    keep = jnp.arange(gradients.shape[1])[None] < config.d * most

    def match_part(part):
        rows = jnp.stack([gradient_matching.whitened(part, config.n), part])
        match = gradient_matching.match
        return jax.lax.map(lambda rows: match(rows, config.n).indices, rows)

    return jax.lax.map(match_part, jnp.where(keep[:, None], gradients[None], 0))
