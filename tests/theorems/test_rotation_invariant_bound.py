"""No rule g(H) Xᵀy/n beats ridge at one penalty, however sparse w is; the bound rests on the exact
eigenvalue distribution of XᵀX. Least squares and the shortest interpolator cost what is stated.

The rule sees the spectrum alone; derived here. docs/theory, "The rotation-invariant bound", "The
Wishart eigenvalue density", "The risk of least squares".
"""

import numpy as np
import pytest

from draws import z_score
from lsa_lab.theory import risk, wishart

NOISE_VAR, TRIALS = 0.5, 2000


def signal(d, sparsity):  # flat, of unit length
    return (np.arange(d) < sparsity) / np.sqrt(sparsity)


def descent(steps, step_size=0.2):
    return lambda h: step_size * ((1 - step_size * h)[..., None] ** np.arange(steps)).sum(-1)


@pytest.mark.parametrize(("n", "d"), [(40, 16), (10, 16)])
@pytest.mark.parametrize("sparsity", [1, 16])
def test_ridge_attains_the_bound_and_every_other_spectral_rule_stays_above(n, d, sparsity):
    X = np.random.default_rng(0).standard_normal((TRIALS, n, d))
    h, vectors = np.linalg.eigh(X.mT @ X / n)
    h, shares = np.maximum(h, 0), (vectors.mT @ signal(d, sparsity)) ** 2

    def compute_risks(rule):  # of h ↦ g(h), for this one w, per X
        shrunk = rule(h)
        return ((1 - h * shrunk) ** 2 * shares + NOISE_VAR / n * h * shrunk**2).sum(1)

    bound = risk.rotation_invariant_bound(n, d, NOISE_VAR)
    best = compute_risks(lambda h: 1 / (h + NOISE_VAR * d / n))
    assert abs(z_score(best - bound)) < 4
    rules = [lambda h: 1 / (h + 4 * NOISE_VAR * d / n), *(descent(t) for t in (1, 5, 20, 100))]
    rules.append(lambda h: np.where(h > 1e-9, 1 / np.maximum(h, 1e-9), 0))  # the pseudoinverse
    least_squares = risk.ols if n > d else risk.min_norm
    assert abs(z_score(compute_risks(rules[-1]) - least_squares(n, d, NOISE_VAR))) < 4
    other = least_squares(n + 1, d, NOISE_VAR)
    assert abs(z_score(compute_risks(rules[-1]) - other)) > 4  # Control
    rules.append(lambda h: np.full_like(h, n / (n + d + 1 + NOISE_VAR * d)))  # best single layer
    for rule in rules:
        assert z_score(compute_risks(rule) - best) > 4
        assert z_score(compute_risks(rule) - bound) > 4


def preprocessed_errors(n, d, w, steps=10):
    """v ← v + η r² ∘ Xᵀ(y - Xv)/n, r = Xᵀy/n, one over the largest curvature as η: not spectral."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, n, d))
    y = X @ w + np.sqrt(NOISE_VAR) * rng.standard_normal((300, n))
    r, H, v = (X.mT @ y[..., None])[..., 0] / n, X.mT @ X / n, np.zeros((300, d))
    step_size = 1 / np.linalg.eigvalsh(r[:, :, None] * H * r[:, None])[:, -1:]
    for _ in range(steps):
        v = v + step_size * r**2 * (r - (H @ v[..., None])[..., 0])
    return ((v - w) ** 2).sum(1)


def test_control_a_rule_that_sees_coordinates_falls_below_on_sparse_weights_only():
    bound = risk.rotation_invariant_bound(40, 16, NOISE_VAR)
    assert z_score(preprocessed_errors(40, 16, signal(16, 2)) - bound) < -4
    assert z_score(preprocessed_errors(40, 16, signal(16, 16)) - bound) > 4


@pytest.mark.parametrize(("n", "d"), [(7, 4), (5, 9), (1024, 64), (1, 1)])
def test_the_eigenvalues_have_the_moments_of_wishart_matrices(n, d):
    x, counts = wishart.wishart_quadrature(n, d)
    sums = [counts.sum(), counts @ x, counts @ x**2]
    np.testing.assert_allclose(sums, [min(n, d), n * d, n * d * (n + d + 1)], rtol=1e-10)
    if abs(n - d) > 1:
        inverse = min(n, d) / (abs(n - d) - 1)
        np.testing.assert_allclose(counts @ (1 / x), inverse, rtol=1e-10)


@pytest.mark.parametrize(("n", "d"), [(6, 2), (2, 7)])
def test_the_bound_of_two_eigenvalues_agrees_with_their_joint_density(n, d):
    """Density ∝ (x_1 x_2)^{(a-1)/2} e^{-(x_1 + x_2)/2} |x_1 - x_2|, x_i = u_i², u_1 = t u_2."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    u, t = np.meshgrid(10 * (nodes + 1), (nodes + 1) / 2, indexing="ij")
    small, large = (t * u) ** 2, u**2
    density = (t * u**2) ** abs(n - d) * np.exp(-(small + large) / 2) * (large - small) * u
    density *= np.outer(weights, weights)
    shrinkage = 1 / (small + NOISE_VAR * d) + 1 / (large + NOISE_VAR * d)
    exact = NOISE_VAR * (density * shrinkage).sum() / density.sum() + max(d - n, 0) / d
    bound, other = (risk.rotation_invariant_bound(m, d, NOISE_VAR) for m in (n, n + 1))
    np.testing.assert_allclose(bound, exact, rtol=1e-10)
    assert abs(other - exact) > 1e-3  # Control: one demonstration more
