"""Tokens in a basis that no model chooses.

Turning or stretching the scratch slots of a stream, and the layers that read them with it, changes
no prediction, but descent on its tokens. Descent on white tokens stays the same (derived here).
"""

import jax.numpy as jnp
from jax import Array


def whitened(features: Array) -> Array:  # [2 B, T, D] -> [2 B, T, D]
    """The tokens with a second moment of 1, over the first half, in each of their directions."""
    first = features[: len(features) // 2].reshape(-1, features.shape[-1])
    values, basis = jnp.linalg.eigh(first.T @ first / len(first))
    kept = values > 1e-9 * values[-1]
    gains = jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, values, 1)), 0)
    return features @ (basis * gains[None])
