"""The exact eigenvalue law of XᵀX behind the rotation-invariant bound (THEORY II.1.9).

No sampling on either side: moments of Wishart matrices, and quadrature of the joint density.
"""

import numpy as np
import pytest

from lsa_lab.theory import wishart

NOISE_VAR = 0.5


@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 4), (5, 9), (1024, 64)])
def test_the_eigenvalue_law_has_the_moments_of_wishart_matrices(n, d):
    x, counts = wishart.wishart_quadrature(n, d)
    found = [counts.sum(), counts @ x, counts @ x**2]
    np.testing.assert_allclose(found, [min(n, d), n * d, n * d * (n + d + 1)], rtol=1e-10)
    if abs(n - d) > 1:
        inverse = min(n, d) / (abs(n - d) - 1)
        np.testing.assert_allclose(counts @ (1 / x), inverse, rtol=1e-10)


@pytest.mark.parametrize(("n", "d"), [(2, 2), (6, 2), (2, 7)])
def test_two_eigenvalues_agree_with_their_joint_density(n, d):
    """Density ∝ (x_1 x_2)^{(a-1)/2} e^{-(x_1 + x_2)/2} |x_1 - x_2|, x_i = u_i², u_1 = t u_2."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    u, t = np.meshgrid(10 * (nodes + 1), (nodes + 1) / 2, indexing="ij")
    small, large = (t * u) ** 2, u**2
    density = (t * u**2) ** abs(n - d) * np.exp(-(small + large) / 2) * (large - small) * u
    density *= np.outer(weights, weights)
    shrinkage = 1 / (small + NOISE_VAR * d) + 1 / (large + NOISE_VAR * d)
    expected = NOISE_VAR * (density * shrinkage).sum() / density.sum() + max(d - n, 0) / d
    np.testing.assert_allclose(
        wishart.rotation_invariant_bound(n, d, NOISE_VAR), expected, rtol=1e-10
    )
    assert abs(wishart.rotation_invariant_bound(n + 1, d, NOISE_VAR) - expected) > 1e-3  # Control.


def test_only_the_ratio_of_signal_and_noise_matters_and_limits_are_right():
    for n, d in [(9, 4), (4, 9)]:
        scaled = 3.0 * wishart.rotation_invariant_bound(n, d, 0.5 / 3.0)
        np.testing.assert_allclose(wishart.rotation_invariant_bound(n, d, 0.5, 3.0), scaled)
        noiseless = wishart.rotation_invariant_bound(n, d, 0.0)
        np.testing.assert_allclose(noiseless, max(1 - n / d, 0))
        np.testing.assert_allclose(wishart.rotation_invariant_bound(n, d, 1e12), 1.0)
    with pytest.raises(ValueError, match="positive and finite"):
        wishart.rotation_invariant_bound(5, 5, 0.5, 0.0)
    with pytest.raises(ValueError, match="up to 300"):
        wishart.rotation_invariant_bound(400, 301, 0.5)
