"""Disturbances of trained layers: their sizes are those that are said."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.clipping.condition_numbers.config import KINDS
from experiments.clipping.condition_numbers.disturbed import disturb


@pytest.mark.parametrize("kind", KINDS)
def test_a_disturbance_moves_the_output_by_its_level(kind):
    """E |(W' - W) z|² = level² |W|_F² |z|²/q, of both kinds, for whatever z."""
    rng = np.random.default_rng(1)
    matrix, read, level = jnp.asarray(rng.normal(size=(4, 3))), rng.normal(size=3), 0.2
    keys = jax.random.split(jax.random.key(2), 50_000)
    noisy = jax.vmap(lambda key: disturb(kind, key, matrix, level))(keys)
    moved = (((noisy - matrix[None]) @ read) ** 2).sum(1).mean()
    expected = level**2 * (matrix**2).sum() * (read @ read) / 3
    np.testing.assert_allclose(moved, expected, rtol=0.02)
