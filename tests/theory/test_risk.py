"""Limits of the risk formulas, and sizes that they refuse."""

import numpy as np
import pytest

from lsa_lab.theory import risk

NOISE_VAR = 0.5


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


@pytest.mark.parametrize(("n", "d"), [(9, 4), (4, 9)])
def test_only_the_ratio_of_signal_and_noise_matters_to_the_bound_and_its_limits_are_right(n, d):
    scaled = 3.0 * risk.rotation_invariant_bound(n, d, 0.5 / 3.0)
    np.testing.assert_allclose(risk.rotation_invariant_bound(n, d, 0.5, 3.0), scaled)
    noiseless = risk.rotation_invariant_bound(n, d, 0.0)
    np.testing.assert_allclose(noiseless, max(1 - n / d, 0))
    np.testing.assert_allclose(risk.rotation_invariant_bound(n, d, 1e12), 1.0)


def test_a_bound_without_a_signal_or_of_too_many_coordinates_is_refused():
    with pytest.raises(ValueError, match="positive and finite"):
        risk.rotation_invariant_bound(5, 5, 0.5, 0.0)
    with pytest.raises(ValueError, match="up to 300"):
        risk.rotation_invariant_bound(400, 301, 0.5)


def test_the_bound_of_a_square_matrix_falls_like_the_root_of_the_noise_however_little_there_is():
    """At n = d the smallest eigenvalue reaches zero, and 1/(x + κ) has to be resolved there."""
    little = risk.rotation_invariant_bound(8, 8, 1e-22)
    for exponent in (26, 30, 40, 100):
        less = risk.rotation_invariant_bound(8, 8, 10.0**-exponent)
        np.testing.assert_allclose(less, little * 10.0 ** (11 - exponent / 2), rtol=1e-9)
