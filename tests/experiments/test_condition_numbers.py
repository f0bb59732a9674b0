"""Disturbances of trained layers: heads of a projection are one matrix, and sizes are theirs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.clipping.condition_numbers.compute import disturb, leaf_of, matrix_of
from experiments.clipping.condition_numbers.config import KINDS


@pytest.mark.parametrize(("name", "shape"), [("w_q", (2, 3, 5)), ("w_o", (2, 5, 3))])
def test_heads_side_by_side_are_one_matrix(name, shape):
    rng = np.random.default_rng(0)
    leaf, read = rng.normal(size=shape), rng.normal(size=5)
    matrix = matrix_of(name, jnp.asarray(leaf))
    np.testing.assert_array_equal(leaf_of(name, shape, matrix), leaf)
    if name == "w_q":
        expected = np.concatenate([head @ read for head in leaf])
        np.testing.assert_allclose(matrix @ read, expected, rtol=1e-12)
    else:
        own = rng.normal(size=(2, 3))
        expected = sum(head @ values for head, values in zip(leaf, own, strict=True))
        np.testing.assert_allclose(matrix @ own.ravel(), expected, rtol=1e-12)


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
