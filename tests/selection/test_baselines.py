"""Random subsets and strata."""

import jax
import numpy as np
import pytest

from lsa_lab.selection import baselines


def test_random_subsets_are_subsets_and_uniform():
    subsets = np.asarray(baselines.random_subsets(jax.random.key(0), 5, 2, 4000))
    assert (subsets[:, 0] != subsets[:, 1]).all()
    counts = np.bincount(subsets.ravel(), minlength=5)
    assert np.abs(counts - 1600).max() < 5 * np.sqrt(4000 * 0.4 * 0.6)


@pytest.mark.parametrize("size", [10, 13])
def test_strata_keep_their_shares(size):
    labels = np.repeat([4, 7, 9], [90, 9, 1])
    keys = jax.random.split(jax.random.key(5), 2)
    drawn = np.stack([baselines.stratified(key, labels, size) for key in keys])
    for indices in drawn:
        assert len(np.unique(indices)) == size
        counts = np.bincount(labels[indices], minlength=10)[[4, 7, 9]]
        np.testing.assert_array_less(np.abs(counts - size * np.array([0.9, 0.09, 0.01])), 1)
    assert len(np.unique(drawn)) > size
