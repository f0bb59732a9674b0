"""The subsets that each rule of `coverage` chooses from pools of two clusters."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching.coverage.config import shares
from lsa_lab.selection import diversity, gradient_matching, rivals
from lsa_lab.tasks import pools


@partial(jax.jit, static_argnums=(0, 1))
def choose(config, size, pool, features, random, keys):  # of K·R runs -> indices [.., 7 + 2 S, n]
    """The choices of the first seven rules, random subsets, and random ones within the clusters."""
    labels = np.repeat(np.arange(2), pools.counts(shares(config), config.m))

    def of_run(row):
        pool, features, random, key = row
        rows, keys = pools.tokens(pool), jax.random.split(key, 1 + config.random_draws)
        by_cluster = jnp.argsort(pool.cluster, stable=True)
        matched = jax.vmap(lambda part: gradient_matching.match(part, size).indices)(features)
        diverse = [
            diversity.medoids(rows, size, keys[0]),
            diversity.determinantal(rows, size, ridge=1.0),
            gradient_matching.match(gradient_matching.whitened(features[0], size), size).indices,
        ]
        strata = jax.vmap(lambda key: by_cluster[rivals.stratified(key, labels, size)])(keys[1:])
        return jnp.concatenate([matched, jnp.stack(diverse), random[:, :size], strata])

    return jax.lax.map(of_run, (pool, features, random, keys))
