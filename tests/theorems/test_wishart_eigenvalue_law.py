"""The exact eigenvalue distribution of XᵀX, on which the rotation-invariant bound rests.

docs/theory, "The Wishart eigenvalue density". Sides: ``wishart_quadrature`` and the bound; moments
of Wishart matrices, and a sum over the joint density of two eigenvalues. No sampling on either.
"""

import numpy as np
import pytest

from lsa_lab.theory import risk, wishart

NOISE_VAR = 0.5


@pytest.mark.parametrize(("n", "d"), [(7, 4), (5, 9), (1024, 64)])
def test_the_eigenvalues_have_the_moments_of_wishart_matrices(n, d):
    x, counts = wishart.wishart_quadrature(n, d)
    sums = [counts.sum(), counts @ x, counts @ x**2]
    np.testing.assert_allclose(sums, [min(n, d), n * d, n * d * (n + d + 1)], rtol=1e-10)
    if abs(n - d) > 1:
        inverse = min(n, d) / (abs(n - d) - 1)
        np.testing.assert_allclose(counts @ (1 / x), inverse, rtol=1e-10)


def bound_by_density(n, d):
    """Density ∝ (x_1 x_2)^{(a-1)/2} e^{-(x_1 + x_2)/2} |x_1 - x_2|, x_i = u_i², u_1 = t u_2."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    u, t = np.meshgrid(10 * (nodes + 1), (nodes + 1) / 2, indexing="ij")
    small, large = (t * u) ** 2, u**2
    density = (t * u**2) ** abs(n - d) * np.exp(-(small + large) / 2) * (large - small) * u
    density *= np.outer(weights, weights)
    shrinkage = 1 / (small + NOISE_VAR * d) + 1 / (large + NOISE_VAR * d)
    return NOISE_VAR * (density * shrinkage).sum() / density.sum() + max(d - n, 0) / d


two_eigenvalues = pytest.mark.parametrize(("n", "d"), [(6, 2), (2, 7)])


@two_eigenvalues
def test_the_bound_of_two_eigenvalues_agrees_with_their_joint_density(n, d):
    bound = risk.rotation_invariant_bound(n, d, NOISE_VAR)
    np.testing.assert_allclose(bound, bound_by_density(n, d), rtol=1e-10)


@two_eigenvalues
def test_control_one_demonstration_more_has_another_bound(n, d):
    bound = risk.rotation_invariant_bound(n + 1, d, NOISE_VAR)
    assert abs(bound - bound_by_density(n, d)) > 1e-3
