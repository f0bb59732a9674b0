"""Exact risks of least squares and of the shortest interpolator.

    σ² d/(n - d - 1) for n > d + 1,   |w|² (1 - n/d) + σ² n/(d - n - 1) for d > n + 1.

Covariates are standard normal. docs/theory, "The risk of least squares".
"""

import numpy as np

from draws import z_score
from lsa_lab.theory import risk

NOISE_VAR = 0.5


def pseudoinverse_risks(n, d, length, scale=1.0):
    """The risk of pinv(X) y for one w, averaged over the noise, per X."""
    X = scale * np.random.default_rng(0).standard_normal((4000, n, d))
    inverse, w = np.linalg.pinv(X), length * np.eye(d)[0]  # [t, d, n]
    error = np.einsum("tdn,tne,e->td", inverse, X, w) - w
    return (error**2).sum(-1) + NOISE_VAR * (inverse**2).sum((1, 2))


def test_least_squares_costs_its_formula_and_control_covariates_a_tenth_longer_less():
    stated = risk.ols(24, 8, NOISE_VAR)
    assert abs(z_score(pseudoinverse_risks(24, 8, 1.0) - stated)) < 4
    assert z_score(pseudoinverse_risks(24, 8, 1.0, scale=1.1) - stated) < -8


def test_the_shortest_interpolator_costs_its_formula_of_signal_and_noise():
    stated = risk.min_norm(8, 24, NOISE_VAR, 2.25)
    assert abs(z_score(pseudoinverse_risks(8, 24, 1.5) - stated)) < 4
    noise = pseudoinverse_risks(8, 24, 0.0) / NOISE_VAR
    assert abs(z_score(noise - risk.min_norm(8, 24, 1.0, 0.0))) < 4
    assert abs(z_score(noise - 8 / 16)) > 8  # Control: without the term's -1
