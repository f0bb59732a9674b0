"""Baselines of gradient matching: random subsets, and strata of labels (A3)."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import check_size
from lsa_lab.tasks import pools


def random_subsets(key: Array, m: int, size: int, count: int) -> Array:  # [count, size]
    """Draw ``count`` independent subsets, each uniform among all of its size."""
    check_size(size, m, "candidates")
    keys = jax.random.split(key, count)
    return jax.vmap(lambda key: jax.random.permutation(key, m)[:size])(keys)


def stratified(key: Array, labels: np.ndarray, size: int) -> Array:  # [m] integers -> [size]
    """Draw a random subset with the pool's own shares of the labels, up to whole numbers.

    The largest remainders round up, ties to the lower label: a group below 1/(2·size) of the pool
    may be left out. The labels are concrete; the key may be traced.
    """
    labels = np.asarray(labels)
    chex.assert_rank(labels, 1, custom_message="labels are [m], one for each candidate")
    groups, labels = np.unique(labels, return_inverse=True)
    m = len(labels)
    check_size(size, m, "candidates")
    quota = pools.counts(np.bincount(labels) / m, size)
    order = jax.random.permutation(key, m)
    member = jnp.asarray(labels)[order][:, None] == jnp.arange(len(groups))[None]  # [m, groups]
    place = jnp.where(member, jnp.cumsum(member, axis=0), m + 1)  # 1, 2, ... within its group
    return order[jnp.nonzero((place <= quota[None]).any(1), size=size)[0]]
