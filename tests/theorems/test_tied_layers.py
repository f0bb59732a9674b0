"""Layers that share one step lose much without noise, and with noise may be the best real ones. No
number of real steps reaches ridge.

Steps are real and shared by all prompts. docs/theory, "Tied layers", "Depth is state evolution".
"""

from functools import cache
from math import comb

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from draws import z_score
from lsa_lab.theory import depth

MINIMA = (4, 1.0, 2), (4, 1.0, 3), (4, 1.0, 4), (2, 0.5, 4)
SADDLES = (2, 0.0, 2), (1.5, 0.0, 3), (2, 0.1, 2)


def limit(alpha, count=1000):
    """Nodes h and masses of Marchenko and Pastur's law times h, a semicircle (Chebyshev)."""
    angle = np.arange(1, count + 1) * np.pi / (count + 1)
    h = 1 + 1 / alpha + 2 / np.sqrt(alpha) * np.cos(angle)
    return h, 2 / (count + 1) * np.sin(angle) ** 2


def risk(steps, alpha, noise_var):
    h, mass = limit(alpha)
    left = np.prod(1 - np.asarray(steps)[:, None] * h, axis=0)
    return (mass / h) @ (left**2 + noise_var / alpha / h * (1 - left) ** 2)


@cache
def best_steps(alpha, noise_var, length, tied):
    def objective(theta):
        return risk(np.full(length, theta[0]) if tied else theta, alpha, noise_var)

    starts = [[a] for a in (0.3, 0.8)] if tied else np.linspace([0.3, 0.2], [0.5, 1.2], length).T
    return min((minimize(objective, s, tol=1e-12) for s in starts), key=lambda end: end.fun)


@pytest.mark.parametrize("length", [1, 3])
def test_looped_descent_of_drawn_prompts_has_that_risk(length):
    n, d, noise_var = 16, 4, 0.5
    h = (
        np.linalg.svd(np.random.default_rng(0).normal(size=(20_000, n, d)), compute_uv=False) ** 2
        / n
    )

    def risks(step):  # E|ŵ - w|² over w ~ N(0, I/d) and the noise
        left = (1 - step * h) ** length
        return (left**2 / d + noise_var / n / h * (1 - left) ** 2).sum(1)

    best = minimize_scalar(lambda step: risks(step).mean(), bounds=(0.1, 1), method="bounded").x
    assert abs(z_score(risks(best) - depth.tied_descent_at(n, d, noise_var, length)[-1])) < 4


@pytest.mark.parametrize("place", MINIMA + SADDLES)
def test_without_noise_equal_steps_are_a_saddle_and_with_noise_a_minimum(place):
    """By ∫ h (1 - ah)^{L-2} ((h + s)(1 - ah)^L - s) dμ, s = σ²/α, which is what two steps gain that
    part by 2ε around the best equal ones a, over 2ε²."""
    (alpha, noise_var, length), (h, mass) = place, limit(place[0])
    tied, free = (best_steps(*place, kind) for kind in (True, False))
    left, s = 1 - tied.x[0] * h, noise_var / alpha
    integral = mass @ (left ** (length - 2) * ((h + s) * left**length - s))
    parted = tied.x[0] + 1e-3 * (np.eye(length)[0] - np.eye(length)[1])
    gain = (tied.fun - risk(parted, alpha, noise_var)) / 2e-6
    np.testing.assert_allclose(gain, integral, rtol=1e-4)
    assert (gain < 0) == (place in MINIMA)
    least = depth.best_descent(*place)[-1]  # of complex steps
    if place in MINIMA:
        np.testing.assert_allclose(free.fun, tied.fun, rtol=1e-6)
        assert least < tied.fun - 1e-4
    else:
        np.testing.assert_allclose(free.fun, least, rtol=1e-5)
        assert free.fun < 0.9 * tied.fun


def test_real_steps_never_reach_ridge():
    """Their gap to ridge ends at a level; that of the best rules falls like ζ^{2L}."""
    lengths, best = [2, 4, 6, 8], np.asarray(depth.best_descent(4.0, 1.0, 40))
    real = np.array([best_steps(4, 1.0, length, False).fun for length in lengths])
    assert real[0] > best[2] + 0.002
    gaps, best_gaps = real - best[-1], best[lengths] - best[-1]
    falls = gaps[1:] / gaps[:-1]
    assert (np.diff(falls) > 0).all()
    assert falls[-1] > 0.9
    assert gaps[-1] > 1e4 * best_gaps[-1]


def test_control_a_square_prompt_without_noise_gains_half_of_the_exponent():
    central = [comb(2 * length, length) / 4**length for length in range(5)]
    risks = [best_steps(1, 0.0, length, True).fun for length in range(1, 5)]
    np.testing.assert_allclose(risks, central[1:], rtol=1e-2)
    np.testing.assert_allclose(depth.tied_descent_at(100, 100, 0.0, 4), central, rtol=0.02)
    assert np.abs(depth.best_descent(1.0, 0.0, 4) / np.array(central) - 1).max() > 0.2
