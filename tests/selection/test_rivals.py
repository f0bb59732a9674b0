"""Chance, tries, strata, moments and hybrids."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.selection import rivals
from lsa_lab.selection.gradient_matching import certify

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
