"""The least risk of all rules g(H) Xᵀy/n with deg g < L at finite n and d, exactly.

docs/theory, "The best steps at finite sizes". Sides: a quadratic form in moments, the best
polynomial on drawn spectra, one layer's optimum; orthogonal polynomials over the density.
Hypothesis: Gaussian covariates.
"""

import numpy as np
import pytest

from lsa_lab.theory import depth, risk


def least_risk_of_moments(n, d, noise_var, length):
    """The minimum over g of degree below the length where H has one eigenvalue that is not 0, a
    χ² variable over n: 1 - bᵀA⁻¹b by its moments E χ^{2m} = k(k + 2)...(k + 2m - 2)."""
    k, s = max(n, d), noise_var * d / n
    moment = [np.prod(k + 2.0 * np.arange(m)) / n**m / d for m in range(2 * length + 3)]
    rows = np.arange(length)
    curvature = np.array([[moment[i + j + 2] + s * moment[i + j + 1] for j in rows] for i in rows])
    towards = np.array([moment[i + 1] for i in rows])
    return 1 - towards @ np.linalg.solve(curvature, towards)


@pytest.mark.parametrize(("n", "d"), [(5, 1), (1, 4)])
def test_finite_sizes_are_the_least_of_a_quadratic_form_in_moments(n, d):
    exact = depth.best_descent_at(n, d, 0.3, 5)
    moments = [least_risk_of_moments(n, d, 0.3, length) for length in range(1, 6)]
    np.testing.assert_allclose(exact[1:], moments, rtol=1e-9)


def test_control_with_noise_that_counts_half_the_form_is_another():
    other = [least_risk_of_moments(5, 1, 0.15, length) for length in range(1, 6)]
    assert np.abs(depth.best_descent_at(5, 1, 0.3, 5)[1:] / other - 1).max() > 1e-2


def test_finite_sizes_are_the_best_polynomial_on_drawn_spectra():
    n, d, noise_var, rng = 16, 8, 0.1, np.random.default_rng(0)
    x = rng.standard_normal((6000, n, d))
    h = np.linalg.eigvalsh(np.swapaxes(x, 1, 2) @ x / n).ravel()
    exact = depth.best_descent_at(n, d, noise_var, 4)
    for length in range(1, 5):
        powers = h[:, None] ** np.arange(length)
        # mean of (1 - hg)² + s h g²: residuals of two stacked blocks of rows
        noise = np.sqrt(noise_var * d / n * h)[:, None] * powers
        rows = np.concatenate([h[:, None] * powers, noise])
        aim = np.concatenate([np.ones_like(h), np.zeros_like(h)])
        best = np.linalg.lstsq(rows, aim, rcond=None)[0]
        np.testing.assert_allclose(
            ((aim - rows @ best) ** 2).sum() / len(h), exact[length], rtol=0.02
        )
    assert (np.diff(exact) < 0).all()


def test_the_first_step_is_that_of_one_layer_and_the_last_come_to_ridge():
    exact = depth.best_descent_at(16, 8, 0.1, 60)
    np.testing.assert_allclose(exact[1], 1 - 1 / (1 + (8 + 1 + 8 * 0.1) / 16), rtol=1e-12)
    np.testing.assert_allclose(exact[-1], risk.rotation_invariant_bound(16, 8, 0.1), rtol=1e-7)
