"""The least risk of L steps of descent obeys R_l = (σ² + R_{l-1})/(α + σ² + R_{l-1}) in the limit.

Gaussian covariates, steps that all prompts share. docs/theory, "Depth is state evolution".
"""

import numpy as np
import pytest
from scipy.optimize import minimize

from lsa_lab.theory import depth, risk


def ridge_limit(alpha, noise_var):
    middle = alpha + noise_var - 1
    return (np.sqrt(middle**2 + 4 * noise_var) - middle) / 2


@pytest.mark.parametrize(("alpha", "noise_var"), [(2.0, 0.1), (0.5, 0.1), (4.0, 1.0)])
def test_the_recursion_is_a_ratio_of_chebyshev_polynomials_that_ends_at_ridge(alpha, noise_var):
    """R_L = 1 - √α U_{L-1}(z)/U_L(z), z = (α + 1 + σ²)/(2√α) = cosh t, U_L = sinh((L+1) t)/sinh t;
    it falls to ridge like ζ^{2L}, ζ = e^{-t}. Large sizes come to the limit."""
    growth = np.arccosh((alpha + 1 + noise_var) / (2 * alpha**0.5))
    stated = 1 - alpha**0.5 * np.sinh(np.arange(9) * growth) / np.sinh(np.arange(1, 10) * growth)
    risks, ridge = depth.best_descent(alpha, noise_var, 8), ridge_limit(alpha, noise_var)
    np.testing.assert_allclose(risks, stated, atol=1e-12)
    falls = np.diff(np.log(risks - ridge))
    np.testing.assert_allclose(falls[-1], -2 * growth, rtol=0.02)
    # Control: another noise.
    assert np.abs(depth.best_descent(alpha, 2 * noise_var, 8) - stated).max() > 1e-2
    np.testing.assert_allclose((noise_var + ridge) / (alpha + noise_var + ridge), ridge, rtol=1e-12)
    exact = risk.rotation_invariant_bound(round(alpha * 120), 120, noise_var)
    np.testing.assert_allclose(ridge, exact, rtol=0.03)
    exact = [depth.best_descent_at(round(alpha * d), d, noise_var, 4) for d in (20, 80)]
    gaps = np.abs(exact - stated[:5]).max(1)
    assert gaps[1] < min(gaps[0] / 3, 0.01)


def least_risk_of_real_steps(alpha, noise_var, length):
    """The best risk of real steps in the limit, by descent from many starts on the density of
    Marchenko and Pastur, which times h is a semicircle."""
    angle = np.arange(1, 401) * np.pi / 401
    h = 1 + 1 / alpha + 2 / alpha**0.5 * np.cos(angle)
    mass, s = 2 / 401 * np.sin(angle) ** 2 / h, noise_var / alpha

    def loss(steps):
        factors = 1 - h[:, None] * steps
        left = factors.prod(1)  # 1 - hg
        others = np.stack([np.delete(factors, k, 1).prod(1) for k in range(length)], 1)
        slope = mass * (2 * left - 2 * s * (1 - left) / h) * -h
        return mass @ (left**2 + s * (1 - left) ** 2 / h), slope @ others

    starts = np.random.default_rng(1).uniform(0.1, 1.2, (4, length))
    return min(minimize(loss, start, jac=True, method="BFGS", tol=1e-9).fun for start in starts)


def test_real_steps_reach_the_bound_only_where_it_has_real_factors():
    least = least_risk_of_real_steps(2.0, 0.1, 2)
    np.testing.assert_allclose(least, depth.best_descent(2.0, 0.1, 2)[-1], rtol=1e-6)
    # Control: at α = 4, σ² = 1 two equal steps are the best real ones. E h^k are Narayana's.
    c, s = 1 / 4, 1 / 4
    first, second, third, fourth = 1, 1 + c, 1 + 3 * c + c**2, 1 + 6 * c + 6 * c**2 + c**3
    terms = -4 * first, 6 * second + 4 * s * first, -4 * (third + s * second), fourth + s * third
    risks = np.polynomial.Polynomial([1, *terms])
    ends = [risks(root.real) for root in risks.deriv().roots() if abs(root.imag) < 1e-9]
    np.testing.assert_allclose(least_risk_of_real_steps(4.0, 1.0, 2), min(ends), rtol=1e-9)
    assert min(ends) > depth.best_descent(4.0, 1.0, 2)[-1] + 0.002


def test_no_number_of_real_steps_comes_to_ridge():
    """Their gap to ridge ends at a level; that of the best rules falls like ζ^{2L}."""
    lengths = np.array([2, 4, 6, 8])
    real = np.array([least_risk_of_real_steps(4.0, 1.0, length) for length in lengths])
    gaps, best = (
        r - ridge_limit(4.0, 1.0) for r in (real, depth.best_descent(4.0, 1.0, 8)[lengths])
    )
    falls = gaps[1:] / gaps[:-1]
    assert (np.diff(falls) > 0).all()
    assert falls[-1] > 0.9
    assert gaps[-1] > 1e4 * best[-1]
