"""The gap of whitened gradients is that of the pool's shrunken covariance: no linear map matters.

docs/theory, "Whitened gradients".
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
shapes = pytest.mark.parametrize(("m", "p", "size"), SHAPES)
compute_gap, whiten = jit_numpy(gap), jit_numpy(whiten_gradients, static_argnums=1)
choose = jit_numpy(partial(match, whiten=True), static_argnums=1)


def draw(seed, m, p):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, p)) * rng.uniform(0.1, 10, size=p) + rng.normal(size=p), rng


def inverse_covariance(gradients, size):
    """(C + λ)⁺ with tr C (C + λ)⁺ = min(rank, n - 1)."""
    values, vectors = np.linalg.eigh(np.cov(gradients.T, bias=True))
    values, vectors = (part[..., values > 1e-12 * values[-1]] for part in (values, vectors))
    served, ridge = max(size - 1, 1), 0.0
    if len(values) > served:
        ends = 1e-12 * values[0], values.sum()
        ridge = brentq(lambda ridge: (values / (values + ridge)).sum() - served, *ends, xtol=1e-15)
    return vectors / (values + ridge) @ vectors.T


@shapes
@seeds
def test_their_gap_is_that_of_the_shrunken_covariance(m, p, size, seed):
    gradients, rng = draw(seed, m, p)
    subset, centred = rng.permutation(m)[:size], gradients - gradients.mean(0)
    delta = centred[subset].mean(0)
    stated = np.sqrt(max(delta @ inverse_covariance(gradients, size) @ delta, 0))
    found = compute_gap(whiten(gradients, size), subset)
    np.testing.assert_allclose(found, stated, atol=1e-10)
    if p < size:
        bound = np.linalg.norm(centred, 2) / m**0.5 * found  # of the plain gap
        assert compute_gap(gradients, subset) <= bound * (1 + 1e-10)


@seeds
def test_with_more_demonstrations_than_directions_no_linear_map_matters(seed):
    m, p, size = SHAPES[0]
    gradients, rng = draw(seed, m, p)
    mixed = gradients @ rng.normal(size=(p, p)) + rng.normal(size=p)
    first, other = (choose(rows, size) for rows in (gradients, mixed))
    np.testing.assert_array_equal(first.indices, other.indices)
    np.testing.assert_allclose(first.objective, other.objective, atol=1e-10)


@shapes
def test_random_subsets_have_a_gap_of_one(m, p, size):
    rows = whiten(draw(0, m, p)[0], size)
    subsets = np.array(list(itertools.combinations(range(m), size)))
    squares = (rows[subsets].mean(1) ** 2).sum(1).mean()
    directions = min(p, m - 1, size - 1)
    np.testing.assert_allclose(squares, (1 - size / m) * m / (m - 1) * directions / size)
    np.testing.assert_allclose(squares, random_gap(rows, size) ** 2)


def test_control_with_fewer_demonstrations_than_directions_units_and_the_ridge_matter():
    m, p, size = SHAPES[1]
    gradients, rng = draw(0, m, p)  # as many directions as candidates but one
    units = [np.r_[scale, np.ones(p - 1)] for scale in (1e-3, 1e3)]
    short, long = (choose(gradients * unit, size).indices for unit in units)
    assert set(short) != set(long)
    # Without a ridge a simplex has no best subset.
    equal = np.linalg.svd(gradients - gradients.mean(0), full_matrices=False)[0][:, :-1]
    subsets = [rng.permutation(m)[:size] for _ in range(20)]
    plain = [np.linalg.norm(equal[s].mean(0) - equal.mean(0)) for s in subsets]
    np.testing.assert_allclose(plain, plain[0], rtol=1e-10)
    ridged = [compute_gap(whiten(gradients, size), s) for s in subsets]
    assert np.ptp(ridged) > 0.2 * np.mean(ridged)
