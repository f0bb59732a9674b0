"""Random numbers: χ from the smallest shape to the largest, subsets, and normals."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from draws import jit_numpy
from lsa_lab import random

DRAWS = 50_000
DEGREES = np.array([1, 2, 3, 6, 20, 1000, 1_000_000])
PROBABILITY = 1e-4  # that one of the tests below, each with another seed, errs


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chi_variates_follow_their_distribution_and_are_independent(dtype):
    draw = jit_numpy(lambda key: random.chi(key, DEGREES, DRAWS, dtype))
    rows = draw(jax.random.key(0)).astype(float)  # [r, B]
    for row, k in zip(rows, DEGREES, strict=True):
        assert stats.kstest(row, stats.chi(k).cdf).pvalue > PROBABILITY
    correlations = np.corrcoef(rows) - np.eye(len(rows))
    assert abs(correlations).max() < 5 / np.sqrt(DRAWS)


@pytest.mark.parametrize("sparsity", [1, 3])
def test_subsets_are_uniform(sparsity):
    draw = jit_numpy(lambda key: random.subsets(key, 6, DRAWS, sparsity))
    masks = draw(jax.random.key(2)).T
    assert (masks.sum(1) == sparsity).all()
    counts = np.unique(masks, axis=0, return_counts=True)[1]
    assert len(counts) == math.comb(6, sparsity)
    assert stats.chisquare(counts).pvalue > PROBABILITY


def test_equal_scores_leave_a_subset_of_the_right_size(monkeypatch):
    equal = jnp.zeros((4, 3), jnp.uint32)
    monkeypatch.setattr(jax.random, "bits", lambda *arguments: equal)
    masks = random.subsets(jax.random.key(0), 4, 3, 2)
    np.testing.assert_array_equal(masks.sum(0), 2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("make_key", [jax.random.key, jax.random.PRNGKey])
def test_normals_are_those_of_jax(dtype, make_key):
    keys = jax.vmap(make_key)(jnp.arange(3))
    expected, numbers = (
        jit_numpy(jax.vmap(lambda key, draw=draw: draw(key, (5, 7), dtype)))(keys).astype(float)
        for draw in (jax.random.normal, random.normal)
    )
    assert (numbers == expected).all()
    assert len(np.unique(numbers)) > 50
