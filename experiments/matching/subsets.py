"""What subsets of a pool teach a stack, and how near their mean gradients come to the pool's (A3).

The stack is masked, normalised linear attention. Its prediction from a subset S is w(S)·x_query,
and w(S) is read from its last layer map.
"""

import jax
import jax.numpy as jnp

from lsa_lab.models import moments


def members(indices, m):  # [..., n] -> [..., m]
    """1 for the chosen and 0 for the others."""
    chosen = jnp.zeros((*jnp.shape(indices)[:-1], m))
    return jnp.put_along_axis(chosen, jnp.asarray(indices), 1.0, axis=-1, inplace=False)


def scale(gradients):  # [m, p] -> [m, p]
    """Every entry in units of its own standard deviation, as it is where it does not vary."""
    spread = gradients.std(0)
    return gradients / jnp.where(spread > 0, spread, 1)[None]


def taught_weights(stack, rows, chosen):  # [m, e], [S, m] -> [S, d]
    """w(S) of every subset S of the pool: one computation, whatever its size."""

    def weights(chosen):
        moment = rows.T @ (chosen[:, None] * rows) / chosen.sum()
        return -moments.layer_maps(stack, moment)[-1, -1, :-1]

    return jax.lax.map(weights, chosen, batch_size=32)


def gaps(gradients, chosen):  # [m, p], [S, m] -> [S]
    """The objective |mean over the subset - mean over the pool|."""
    means = (chosen / chosen.sum(1, keepdims=True)) @ gradients
    return jnp.linalg.norm(means - gradients.mean(0)[None], axis=1)
