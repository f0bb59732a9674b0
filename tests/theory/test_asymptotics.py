"""The risk after pretraining on few tasks keeps its digits, however few they are."""

from decimal import Decimal, localcontext

import jax
import numpy as np
import pytest

from lsa_lab.theory.asymptotics import ridge_risk, ridgeless_risk

ALPHA, NOISE_VAR = 2.0, 0.1


def in_many_digits(kappa, tau):
    """The formulas of docs/theory, "Pretraining on finite data", in 120 digits."""
    with localcontext() as context:
        context.prec = 120
        alpha, kappa, tau, noise_var = map(Decimal, (ALPHA, kappa, tau, NOISE_VAR))
        q, c = (1 + noise_var) / alpha, 1 / kappa

        def stieltjes(z):
            linear = z + 1 - c
            transform = 2 / (linear + (linear**2 + 4 * c * z).sqrt())
            return transform, -(c * transform**2 + transform) / (2 * c * z * transform + linear)

        share, unfitted = min(tau, Decimal(1)), max(1 - tau, Decimal(0))
        linear = unfitted * (q + 1 - c * share)
        level = (linear + (linear**2 + 4 * share * c * q * unfitted**2).sqrt()) / (2 * share)
        (transform, slope), own = stieltjes(q + level), stieltjes(q)[0]
        unexplained = noise_var + q * (1 - q * own)
        shrunk = q**2 * own + (level**2 - q**2) * transform + level * (q + level) ** 2 * slope
        degrees = 1 - 2 * level * transform - level**2 * slope
        pretraining = (unexplained + shrunk) / (1 - degrees / tau)
        square = 1 - 2 * (q + level) * transform - (q + level) ** 2 * slope
        square += pretraining / tau * (transform + level * slope)
        new = 1 + noise_var - 2 * (1 - (q + level) * transform) + (1 + q) * square
        return float(new), float(pretraining)


@pytest.mark.parametrize("tau", [0.5, 3.0])
@pytest.mark.parametrize("kappa", [1e3, 1.0, 1e-4, 1e-8, 1e-12, 1e-16, 1e-30])
def test_both_risks_are_right_to_the_last_digits(kappa, tau):
    risks = ridgeless_risk(ALPHA, kappa, tau, NOISE_VAR)
    np.testing.assert_allclose(risks, in_many_digits(kappa, tau), rtol=1e-14)


def test_with_a_vanishing_penalty_and_one_task_the_risks_are_those_without():
    ridge = ridge_risk(ALPHA, 1e-12, 3.0, NOISE_VAR, 1e-13)
    np.testing.assert_allclose(ridge, ridgeless_risk(ALPHA, 1e-12, 3.0, NOISE_VAR), rtol=1e-9)


def test_the_derivative_is_that_of_the_risk():
    slope = jax.grad(lambda kappa: ridgeless_risk(ALPHA, kappa, 0.5, NOISE_VAR)[0])(1e-8)
    above, below = (in_many_digits(kappa, 0.5)[0] for kappa in (1.01e-8, 0.99e-8))
    np.testing.assert_allclose(slope, (above - below) / 2e-10, rtol=1e-4)
