"""Exact risks of least squares and of the shortest interpolator (THEORY II.1.9)."""

import numpy as np
import pytest

from lsa_lab.theory import risk

NOISE_VAR, TRIALS = 0.5, 4000


def pseudoinverse_risks(n, d, w, scale=1.0):
    """The risk of pinv(X) y for this one w, averaged over the noise, per X."""
    X = scale * np.random.default_rng(0).standard_normal((TRIALS, n, d))
    inverse = np.linalg.pinv(X)  # [t, d, n]
    error = np.einsum("tdn,tne,e->td", inverse, X, w) - w
    return (error**2).sum(-1) + NOISE_VAR * (inverse**2).sum((1, 2))


def standard_scores(samples, expected):
    return (samples.mean() - expected) / (samples.std(ddof=1) / np.sqrt(samples.size))


@pytest.mark.parametrize(("n", "d"), [(24, 8), (20, 3)])
def test_least_squares_costs_its_formula(n, d):
    w, expected = np.eye(d)[0], risk.ols(n, d, NOISE_VAR)
    assert abs(standard_scores(pseudoinverse_risks(n, d, w), expected)) < 4
    # Control: covariates a tenth longer.
    assert standard_scores(pseudoinverse_risks(n, d, w, scale=1.1), expected) < -8


@pytest.mark.parametrize(("n", "d"), [(8, 24), (3, 20)])
def test_the_shortest_interpolator_costs_its_formula(n, d):
    w = 1.5 * np.eye(d)[0]
    samples = pseudoinverse_risks(n, d, w)
    assert abs(standard_scores(samples, risk.min_norm(n, d, NOISE_VAR, 2.25))) < 4
    # Control: the signal's length counts.
    assert standard_scores(samples, risk.min_norm(n, d, NOISE_VAR, 1.0)) > 8


def test_sizes_without_a_finite_risk_are_refused():
    for n in (8, 9):
        with pytest.raises(ValueError, match="infinite with noise"):
            risk.ols(n, 8, NOISE_VAR)
    with pytest.raises(ValueError, match="use min_norm"):
        risk.ols(7, 8, NOISE_VAR)
    for n in (7, 8, 9):
        with pytest.raises(ValueError, match="infinite with noise"):
            risk.min_norm(n, 8, NOISE_VAR)
    with pytest.raises(ValueError, match="use ols"):
        risk.min_norm(10, 8, NOISE_VAR)
    with pytest.raises(ValueError, match="finite and not negative"):
        risk.ols(10, 8, -1.0)
