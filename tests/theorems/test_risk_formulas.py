"""Exact risks of least squares and of the shortest interpolator.

docs/theory, "The risk of least squares".

    σ² d/(n - d - 1) for n > d + 1,   |w|² (1 - n/d) + σ² n/(d - n - 1) for d > n + 1.

Sides: the pseudoinverse of sampled X, the noise averaged exactly; the closed forms. Hypothesis: the
covariates are standard normal. Means agree to 4 standard errors.
"""

import numpy as np

from lsa_lab.theory import risk

MANY, FEW = (24, 8), (8, 24)  # n and d
NOISE_VAR, TRIALS = 0.5, 4000


def pseudoinverse_risks(n, d, w, scale=1.0):
    """The risk of pinv(X) y for this one w, averaged over the noise, per X."""
    X = scale * np.random.default_rng(0).standard_normal((TRIALS, n, d))
    inverse = np.linalg.pinv(X)  # [t, d, n]
    error = np.einsum("tdn,tne,e->td", inverse, X, w) - w
    return (error**2).sum(-1) + NOISE_VAR * (inverse**2).sum((1, 2))


def standard_score(samples, expected):
    return (samples.mean() - expected) / (samples.std(ddof=1) / np.sqrt(samples.size))


def test_least_squares_costs_its_formula():
    n, d = MANY
    samples = pseudoinverse_risks(n, d, np.eye(d)[0])
    assert abs(standard_score(samples, risk.ols(n, d, NOISE_VAR))) < 4


def test_control_covariates_a_tenth_longer_cost_less():
    n, d = MANY
    samples = pseudoinverse_risks(n, d, np.eye(d)[0], scale=1.1)
    assert standard_score(samples, risk.ols(n, d, NOISE_VAR)) < -8


def test_the_shortest_interpolator_costs_its_formula():
    n, d = FEW
    samples = pseudoinverse_risks(n, d, 1.5 * np.eye(d)[0])
    assert abs(standard_score(samples, risk.min_norm(n, d, NOISE_VAR, 2.25))) < 4


def test_noise_alone_costs_the_shortest_interpolator_its_term():
    n, d = FEW
    samples = pseudoinverse_risks(n, d, np.zeros(d)) / NOISE_VAR
    assert abs(standard_score(samples, risk.min_norm(n, d, 1.0, 0.0))) < 4
    assert abs(standard_score(samples, n / (d - n))) > 8  # Control: without the term's -1
