"""Limits of the risk formulas."""

import numpy as np
import pytest

from lsa_lab.theory import risk


@pytest.mark.parametrize(("n", "d"), [(9, 4), (4, 9)])
def test_only_the_ratio_of_signal_and_noise_matters_to_the_bound_and_its_limits_are_right(n, d):
    scaled = 3.0 * risk.rotation_invariant_bound(n, d, 0.5 / 3.0)
    np.testing.assert_allclose(risk.rotation_invariant_bound(n, d, 0.5, 3.0), scaled)
    noiseless = risk.rotation_invariant_bound(n, d, 0.0)
    np.testing.assert_allclose(noiseless, max(1 - n / d, 0))
    np.testing.assert_allclose(risk.rotation_invariant_bound(n, d, 1e12), 1.0)


def test_the_bound_of_a_square_matrix_falls_like_the_root_of_the_noise_however_little_there_is():
    """At n = d the smallest eigenvalue reaches zero, and 1/(x + κ) has to be resolved there."""
    little = risk.rotation_invariant_bound(8, 8, 1e-22)
    for exponent in (26, 30, 40, 100):
        less = risk.rotation_invariant_bound(8, 8, 10.0**-exponent)
        np.testing.assert_allclose(less, little * 10.0 ** (11 - exponent / 2), rtol=1e-9)
