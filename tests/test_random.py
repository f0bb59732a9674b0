"""Flat draws follow their laws: χ from the smallest shape to the largest, and subsets."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from lsa_lab import random

DRAWS = 50_000
DEGREES = np.array([1, 2, 3, 6, 20, 1000, 1_000_000])
PROBABILITY = 1e-4  # that one of the tests below, each with another seed, errs


@functools.cache
def chis(dtype):  # [r, B]
    draw = jax.jit(lambda key: random.chi(key, jnp.asarray(DEGREES), DRAWS, dtype))
    return np.asarray(draw(jax.random.key(0)), float)


def p_values(rows):  # [r]
    """Kolmogorov and Smirnov: how improbable the samples of each row are, were they χ."""
    pairs = zip(rows, DEGREES, strict=True)
    return np.array([stats.kstest(row, stats.chi(k).cdf).pvalue for row, k in pairs])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chi_variates_follow_their_distribution(dtype):
    assert (p_values(chis(dtype)) > PROBABILITY).all()


def test_chi_variates_of_one_prompt_are_independent():
    correlations = np.corrcoef(chis("float64"))
    np.fill_diagonal(correlations, 0)
    assert abs(correlations).max() < 5 / np.sqrt(DRAWS)


@pytest.mark.parametrize(("sparsity", "active"), [(1, None), (3, None), (3, 5), (3, 2)])
def test_subsets_are_uniform_among_the_active(sparsity, active):
    d = 6
    draw = jax.jit(lambda key, active: random.subsets(key, d, DRAWS, sparsity, active))
    masks = np.asarray(draw(jax.random.key(2), active)).T
    assert (masks.sum(1) == sparsity).all()
    allowed = d if active is None else active
    masks = masks[:, :allowed]
    size = min(sparsity, allowed)
    assert (masks.sum(1) == size).all()
    counts = np.unique(masks, axis=0, return_counts=True)[1]
    assert len(counts) == math.comb(allowed, size)
    assert len(counts) == 1 or stats.chisquare(counts).pvalue > PROBABILITY


def test_equal_scores_leave_a_subset_of_the_right_size(monkeypatch):
    equal = jnp.zeros((4, 3), jnp.uint32)
    monkeypatch.setattr(jax.random, "bits", lambda *arguments: equal)
    masks = random.subsets(jax.random.key(0), 4, 3, 2)
    np.testing.assert_array_equal(masks.sum(0), 2)


def test_the_first_of_each_column_is_marked():
    mask = jnp.array([[0, 1, 0], [1, 1, 0], [1, 0, 0]], bool)
    expected = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], bool)
    np.testing.assert_array_equal(random._first(mask), expected)


def normals_of_jax_and_here(dtype, make_key):
    keys = jax.vmap(make_key)(jnp.arange(3))
    pairs = [
        jax.jit(jax.vmap(lambda key, draw=draw: draw(key, (5, 7), dtype)))(keys)
        for draw in (jax.random.normal, random.normal)
    ]
    return [np.asarray(numbers, float) for numbers in pairs]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("make_key", [jax.random.key, jax.random.PRNGKey])
def test_normals_are_those_of_jax_to_the_bit(dtype, make_key):
    expected, numbers = normals_of_jax_and_here(dtype, make_key)
    assert (numbers == expected).all()
    assert len(np.unique(numbers)) > 50
