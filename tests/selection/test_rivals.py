"""Chance, tries, strata and moments; projections of streamed gradients, with their stated error."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

from lsa_lab.selection import rivals
from lsa_lab.selection.gradient_matching import certify
from lsa_lab.selection.projection import gap, project

KEY = jax.random.key(5)


def draw(m=40, p=6, seed=0):
    return np.random.default_rng(seed).normal(size=(m, p))


def test_random_subsets_are_subsets_and_uniform():
    subsets = np.asarray(rivals.random_subsets(jax.random.key(0), 5, 2, 4000))
    assert (subsets[:, 0] != subsets[:, 1]).all()
    counts = np.bincount(subsets.ravel(), minlength=5)
    assert np.abs(counts - 1600).max() < 5 * np.sqrt(4000 * 0.4 * 0.6)


def test_the_best_of_five_is_the_best_and_no_nan_is():
    errors, subsets = jnp.array([3.0, 1.0, 2.0, jnp.inf, 5.0]), jnp.arange(10).reshape(5, 2)
    best, error = rivals.best_of(lambda indices: errors[indices[0] // 2], subsets)
    np.testing.assert_array_equal(best, [2, 3])
    assert error == 1.0
    with pytest.raises(ValueError, match="2 of 5 errors are NaN or minus infinity"):
        rivals.best_of(lambda i: jnp.where(i[0] < 4, jnp.nan, 1.0), subsets)
    with pytest.raises(ValueError, match="1 of 5 errors are NaN or minus"):
        rivals.best_of(lambda i: jnp.where(i[0] < 2, -jnp.inf, 1.0), subsets)
    with pytest.raises(ValueError, match="no error is finite"):
        rivals.best_of(lambda i: jnp.where(i[0] < 4, jnp.inf, jnp.inf), subsets)


@pytest.mark.parametrize("size", [10, 13])
def test_strata_keep_their_shares(size):
    labels = np.repeat([4, 7, 9], [90, 9, 1])
    drawn = np.stack([rivals.stratified(key, labels, size) for key in jax.random.split(KEY, 2)])
    for indices in drawn:
        assert len(np.unique(indices)) == size
        counts = np.bincount(labels[indices], minlength=10)[[4, 7, 9]]
        np.testing.assert_array_less(np.abs(counts - size * np.array([0.9, 0.09, 0.01])), 1)
    assert len(np.unique(drawn)) > size


def test_moment_features_are_the_moment_up_to_a_rotation():
    tokens = jnp.asarray(draw(10, 4))
    features = rivals.moment_features(tokens)
    assert features.shape == (10, 10)
    moment = np.einsum("mi,mj->mij", tokens, tokens)
    for part in (np.arange(3), np.array([4, 9])):
        between = np.linalg.norm(moment[part].mean(0) - moment.mean(0))
        np.testing.assert_allclose(certify(features, part).objective, between, rtol=1e-10)


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


def beyond_the_bound(width, exponent):
    """The chance of a length that is off by each share ε, over 2 exp(-width ε²/8 · exponent)."""
    epsilon, law = np.linspace(0.01, 0.99, 50), chi2(width)
    far = law.cdf((1 - epsilon) * width) + law.sf((1 + epsilon) * width)
    return far / (2 * np.exp(-width * epsilon**2 / 8 * exponent))


@pytest.mark.parametrize("width", [1, 4, 30, 400])
def test_few_lengths_are_far_off(width):
    assert beyond_the_bound(width, 1).max() <= 1


def test_control_with_twice_the_exponent_it_is_no_bound():
    assert beyond_the_bound(400, 2).max() > 1


def test_all_lengths_of_thirty_vectors_are_near_with_the_stated_probability():
    epsilon, delta, vectors = 0.5, 0.1, draw(30, 300, seed=4)
    width = int(np.ceil(8 * np.log(2 * len(vectors) / delta) / epsilon**2))
    keys = jax.random.split(jax.random.key(1), 40)
    lengths = np.stack([np.sum(project([vectors], key, width) ** 2, axis=1) for key in keys])
    near = (abs(lengths / np.sum(vectors**2, axis=1) - 1) < epsilon).all(1)
    assert near.mean() >= 1 - delta


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


def test_streams_are_refused_with_what_came():
    with pytest.raises(ValueError, match="no blocks"):
        project(iter(()), jax.random.key(0), 4)
    with pytest.raises(ValueError, match="block 1 holds"):
        project([np.ones((2, 3)), np.full((2, 3), np.nan)], jax.random.key(0), 4)
    with pytest.raises(AssertionError, match="same width"):
        project([np.ones((2, 3)), np.ones((2, 4))], jax.random.key(0), 4)
