"""Whitened rows: what they do not see, how long they are, and when they cannot tell subsets apart.

docs/theory, "Whitened gradients". Sides: ``whiten_gradients`` and ``match``; eigenvalues of
the pool's covariance, and the mean over every subset there is.
"""

import itertools
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq

from draws import jit_numpy, seeds
from lsa_lab.selection.gradient_matching import gap, match, random_gap
from lsa_lab.selection.whitening import whiten_gradients

SHAPES = [(16, 3, 8), (16, 30, 5)]  # m, p, n
gap_of, white = jit_numpy(gap), jit_numpy(whiten_gradients, static_argnums=1)
chosen = jit_numpy(partial(match, whiten=True), static_argnums=1)
root_mean_square = jit_numpy(random_gap, static_argnums=1)


def draw(seed, m, p):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, p)) * rng.uniform(0.1, 10, size=p) + rng.normal(size=p), rng


def inverse_covariance(gradients, size):
    """(C + λ)⁺ with tr C (C + λ)⁺ = min(rank, n - 1)."""
    centred = gradients - gradients.mean(0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(gradients))
    values, vectors = (part[..., values > 1e-12 * values[-1]] for part in (values, vectors))
    served, ridge = max(size - 1, 1), 0.0
    if len(values) > served:
        ends = 1e-12 * values[0], values.sum()
        ridge = brentq(lambda ridge: (values / (values + ridge)).sum() - served, *ends, xtol=1e-15)
    return vectors / (values + ridge) @ vectors.T


@pytest.mark.parametrize(("m", "p", "size"), SHAPES)
@seeds
def test_their_gap_is_that_of_the_shrunken_covariance(m, p, size, seed):
    gradients, rng = draw(seed, m, p)
    subset = rng.permutation(m)[:size]
    delta = gradients[subset].mean(0) - gradients.mean(0)
    by_hand = np.sqrt(max(delta @ inverse_covariance(gradients, size) @ delta, 0))
    np.testing.assert_allclose(gap_of(white(gradients, size), subset), by_hand, atol=1e-10)


@seeds
def test_with_more_demonstrations_than_directions_no_linear_map_matters(seed):
    m, p, size = SHAPES[0]
    gradients, rng = draw(seed, m, p)
    mixed = gradients @ rng.normal(size=(p, p)) + rng.normal(size=p)
    first, other = (chosen(rows, size) for rows in (gradients, mixed))
    np.testing.assert_array_equal(first.indices, other.indices)
    np.testing.assert_allclose(first.objective, other.objective, atol=1e-10)


@pytest.mark.parametrize(("m", "p", "size"), [(8, 2, 4), (8, 20, 3)])
def test_random_subsets_have_a_gap_of_one(m, p, size):
    rows = white(draw(0, m, p)[0], size)
    subsets = np.array(list(itertools.combinations(range(m), size)))
    squares = (rows[subsets].mean(1) ** 2).sum(1).mean()
    directions = min(p, m - 1, size - 1)
    np.testing.assert_allclose(squares, (1 - size / m) * m / (m - 1) * directions / size)
    np.testing.assert_allclose(squares, root_mean_square(rows, size) ** 2)


@seeds
def test_the_plain_gap_is_bounded_by_theirs(seed):
    gradients, rng = draw(seed, 16, 3)
    subset, centred = rng.permutation(16)[:8], gradients - gradients.mean(0)
    bound = np.linalg.norm(centred, 2) / 4 * gap_of(white(gradients, 8), subset)
    assert gap_of(gradients, subset) <= bound * (1 + 1e-10)


def test_control_without_a_ridge_a_simplex_has_no_best_subset():
    m, p, size = SHAPES[1]
    gradients, rng = draw(0, m, p)  # as many directions as candidates but one
    equal = np.linalg.svd(gradients - gradients.mean(0), full_matrices=False)[0][:, :-1]
    subsets = [rng.permutation(m)[:size] for _ in range(20)]
    gaps = [gap_of(equal, subset) for subset in subsets]
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-10)
    gaps = [gap_of(white(gradients, size), subset) for subset in subsets]
    assert np.ptp(gaps) > 0.2 * np.mean(gaps)


def test_control_with_fewer_demonstrations_than_directions_units_matter():
    m, p, size = SHAPES[1]
    units = [np.r_[scale, np.ones(p - 1)] for scale in (1e-3, 1e3)]
    short, long = (chosen(draw(0, m, p)[0] * unit, size).indices for unit in units)
    assert set(short) != set(long)
