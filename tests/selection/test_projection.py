"""Random projections of streamed gradients: their stated error, and the gap in truth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.selection.gradient_matching import certify, match
from lsa_lab.selection.projection import gap, project

KEY = jax.random.key(5)


def draw(m=40, p=6, seed=0):
    return np.random.default_rng(seed).normal(size=(m, p))


def blocks_of(gradients, size):
    return (gradients[i : i + size] for i in range(0, len(gradients), size))


def test_projected_lengths_have_the_stated_error():
    width, vectors = 50, draw(30, 1500, seed=3)  # two parts of the matrix, the second not full
    keys = jax.random.split(jax.random.key(0), 40)
    lengths = np.stack([np.sum(project([vectors], key, width) ** 2, axis=1) for key in keys])
    ratios = lengths / np.sum(vectors**2, axis=1)
    # The vectors share a key's matrix but are nearly orthogonal: 1200 nearly independent ratios.
    assert abs(ratios.mean() - 1) < 5 * np.sqrt(2 / width / ratios.size)
    np.testing.assert_allclose(ratios.var(), 2 / width, rtol=5 * np.sqrt(2.3 / ratios.size))


def test_blocks_of_any_size_are_projected_alike():
    gradients, key = draw(40, 1100), KEY
    whole = project([gradients], key, 9)
    np.testing.assert_allclose(project(blocks_of(gradients, 20), key, 9), whole, rtol=1e-10)
    assert jnp.abs(project([gradients], jax.random.key(2), 9) - whole).max() > 0.1


def test_columns_far_from_each_other_are_projected_independently():
    units = np.zeros((3, 2100))
    units[np.arange(3), [5, 1029, 2053]] = 1  # the same place in each of three parts
    products = project([units], KEY, 1000)
    products = np.asarray(products @ products.T)
    np.testing.assert_allclose(products, np.eye(3), atol=5 * np.sqrt(2 / 1000))
    # Control: nearer columns would not tell parts that share their numbers.
    assert abs(project([units[:, :1024]], KEY, 9)[1:]).max() == 0


def test_the_gap_of_a_stream_is_that_of_the_whole():
    gradients, indices = draw() + 5, [0, 4, 5, 32, 9]
    np.testing.assert_allclose(
        gap(blocks_of(gradients, 5), indices),
        certify(gradients, np.array(indices)).objective,
        rtol=1e-10,
    )


def test_matching_a_projection_is_matching_when_gradients_have_few_directions():
    # A projection keeps what is in three directions; what is in 400 looks better than it is.
    flat, full = draw(40, 3) @ draw(3, 400, 1), draw(40, 400)
    near, optimistic = (match(project([g], KEY, 9), 8) for g in (flat, full))
    assert gap([flat], near.indices) < 0.25 * near.certificate.random
    assert gap([full], optimistic.indices) > 2 * optimistic.objective


def test_streams_are_refused_with_what_came():
    with pytest.raises(ValueError, match="no blocks"):
        project(iter(()), jax.random.key(0), 4)
    with pytest.raises(ValueError, match="block 1 holds"):
        project([np.ones((2, 3)), np.full((2, 3), np.nan)], jax.random.key(0), 4)
    with pytest.raises(AssertionError, match="same width"):
        project([np.ones((2, 3)), np.ones((2, 4))], jax.random.key(0), 4)
