"""The least risk of L steps of descent obeys R_l = (σ² + R_{l-1})/(α + σ² + R_{l-1}) in the limit.

docs/theory, "Depth is state evolution". Sides: the recursion, Chebyshev's polynomials, and the best
polynomial at finite sizes on drawn spectra; the closed forms. Hypotheses: Gaussian covariates,
steps that all prompts share.
"""

import jax
import numpy as np
import pytest

from lsa_lab.theory import depth, risk

LIMITS = pytest.mark.parametrize(("alpha", "noise_var"), [(2.0, 0.1), (0.5, 0.1), (4.0, 1.0)])


@LIMITS
def test_the_recursion_is_a_ratio_of_chebyshev_polynomials(alpha, noise_var):
    """R_L = 1 - √α U_{L-1}(z)/U_L(z), z = (α + 1 + σ²)/(2√α)."""
    z = (alpha + 1 + noise_var) / (2 * alpha**0.5)
    growth = np.arccosh(z)  # U_L(cosh t) = sinh((L + 1) t)/sinh t
    levels = np.arange(9)
    stated = 1 - alpha**0.5 * np.sinh(levels * growth) / np.sinh((levels + 1) * growth)
    found = depth.best_descent(alpha, noise_var, 8)
    np.testing.assert_allclose(found, stated, atol=1e-12)
    # Controls: noise counted twice, and a recursion without the noise below.
    assert np.abs(depth.best_descent(alpha, 2 * noise_var, 8) - stated).max() > 1e-2
    falls = np.diff(np.log(found - depth.ridge_limit(alpha, noise_var)))
    np.testing.assert_allclose(falls[-1], -2 * growth, rtol=0.02)  # like ζ^{2L}, ζ = e^{-t}


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
    # Control: noise that counts half.
    other = [least_risk_of_moments(n, d, 0.15, length) for length in range(1, 6)]
    assert np.abs(exact[1:] / other - 1).max() > 1e-2


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


def test_finite_sizes_are_the_records_of_descent_with_its_best_steps():
    """n 16, d 8, σ² .1: .380 .214 .151 .123 of fits by quadrature, before the closed form."""
    exact = depth.best_descent_at(16, 8, 0.1, 60)
    np.testing.assert_allclose(exact[1:5], [0.380, 0.214, 0.151, 0.1225], atol=6e-4)
    np.testing.assert_allclose(exact[-1], risk.rotation_invariant_bound(16, 8, 0.1), rtol=1e-7)
    one_step = 1 - 1 / (1 + (8 + 1 + 8 * 0.1) / 16)
    np.testing.assert_allclose(exact[1], one_step, rtol=1e-12)


@LIMITS
def test_large_sizes_come_to_the_limit(alpha, noise_var):
    limit = depth.best_descent(alpha, noise_var, 4)
    gaps = []
    for d in (20, 80):
        exact = depth.best_descent_at(round(alpha * d), d, noise_var, 4)
        gaps.append(np.abs(exact - limit).max())
    assert gaps[1] < gaps[0] / 3
    assert gaps[1] < 0.01


@LIMITS
def test_ridge_is_the_fixed_point(alpha, noise_var):
    ridge = depth.ridge_limit(alpha, noise_var)
    np.testing.assert_allclose((noise_var + ridge) / (alpha + noise_var + ridge), ridge, rtol=1e-12)
    d = 120
    np.testing.assert_allclose(
        ridge, risk.rotation_invariant_bound(round(alpha * d), d, noise_var), rtol=0.03
    )


def least_risk_of_real_steps(alpha, noise_var, length):
    """The best risk of real steps in the limit, by descent from many starts on the density of
    Marchenko and Pastur."""
    from scipy.optimize import minimize

    c = 1 / alpha
    low, high = (1 - c**0.5) ** 2, (1 + c**0.5) ** 2
    nodes, weights = np.polynomial.legendre.leggauss(400)
    angle = (nodes + 1) * np.pi / 2
    h = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
    density = np.sqrt(np.maximum((high - h) * (h - low), 0)) / (2 * np.pi * c * h)
    mass = weights * np.pi / 2 * density * (high - low) / 2 * np.sin(angle)
    s = noise_var * c

    def loss(steps):
        left = np.prod(1 - h[:, None] * steps[None], axis=1)  # 1 - hg
        return mass @ (left**2 + s * (1 - left) ** 2 / h)

    rng = np.random.default_rng(1)
    starts = [rng.uniform(0.1, 1.2, length) for _ in range(12)]
    return min(minimize(loss, start, method="BFGS").fun for start in starts)


def test_real_steps_reach_the_bound_only_where_it_has_real_factors():
    np.testing.assert_allclose(
        least_risk_of_real_steps(2.0, 0.1, 2), depth.best_descent(2.0, 0.1, 2)[-1], rtol=1e-4
    )
    found = least_risk_of_real_steps(4.0, 1.0, 2)
    np.testing.assert_allclose(found, 0.25231, atol=2e-5)
    assert found > depth.best_descent(4.0, 1.0, 2)[-1] + 0.002


def test_bad_sizes_are_refused():
    for call, words in (
        (lambda: depth.best_descent(0.0, 0.1, 2), "alpha = 0.0"),
        (lambda: depth.best_descent(1.0, -0.1, 2), "noise_var = -0.1"),
        (lambda: depth.best_descent(1.0, 0.1, -1), "depth = -1"),
        (lambda: depth.best_descent_at(0, 3, 0.1, 2), "both are at least 1"),
        (lambda: depth.best_descent_at(4, 3, 0.1, 10_000), "depth = 10000: at most"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_the_recursion_can_be_traced_and_differentiated():
    slope = jax.jit(jax.grad(lambda alpha: depth.best_descent(alpha, 0.1, 3)[-1]))(2.0)
    step = 1e-6
    ends = [float(depth.best_descent(2.0 + e, 0.1, 3)[-1]) for e in (-step, step)]
    np.testing.assert_allclose(slope, (ends[1] - ends[0]) / (2 * step), rtol=1e-6)
