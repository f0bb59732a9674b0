"""Layers that share one step lose much without noise, and with noise may be the best real ones.

Steps are real and shared by all prompts. docs/theory, "Tied layers".
"""

from functools import cache, partial
from itertools import product
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from draws import jit_numpy, z_score
from lsa_lab.models import constructions
from lsa_lab.models.moments import predictions
from lsa_lab.tasks.linear import LinearTask, sample_batch
from lsa_lab.theory import depth

MINIMA = (4, 1.0, 2), (4, 1.0, 3), (4, 1.0, 4), (2, 0.5, 4)
SADDLES = (2, 0.0, 2), (1.5, 0.0, 3), (2, 0.1, 2)
WRONG = (  # twice the noise, h for h + s, one more h
    lambda h, s, p: (h + 2 * s) * p - 2 * s,
    lambda h, s, p: h * p - s,
    lambda h, s, p: h * ((h + s) * p - s),
)


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


def bend(alpha, noise_var, length, factor=lambda h, s, p: (h + s) * p - s):
    """∫ h (1 - ah)^{L-2} ((h + s)(1 - ah)^L - s) dμ at the best equal steps."""
    h, mass = limit(alpha)
    left = 1 - best_steps(alpha, noise_var, length, True).x[0] * h
    return mass @ (left ** (length - 2) * factor(h, noise_var / alpha, left**length))


def fall(alpha, noise_var, length):
    """What two steps gain that part by 2ε around the best equal ones, over 2ε²."""
    a = np.full(length, best_steps(alpha, noise_var, length, True).x[0])
    parted = a + 1e-3 * (np.eye(length)[0] - np.eye(length)[1])
    return (risk(a, alpha, noise_var) - risk(parted, alpha, noise_var)) / 2e-6


@partial(jit_numpy, static_argnums=1)
def errors(step, length, batch):  # [B]
    params = constructions.gradient_descent(jnp.full(length, step), batch.x.shape[2])
    return (predictions(params, batch) - batch.y_query) ** 2


def test_looped_stacks_of_drawn_prompts_have_that_risk():
    n, d, noise_var = 16, 4, 0.5
    task = LinearTask(n, d, noise_std=noise_var**0.5, weight_std=d**-0.5)
    batch = jax.jit(sample_batch, static_argnums=2)(jax.random.key(0), task, 20_000)
    for length in (1, 3):
        found = [errors(a, length, batch) for a in np.linspace(0.2, 0.9, 15)]
        best = found[int(np.argmin(np.mean(found, axis=1)))]
        assert abs(z_score(best - depth.tied_descent_at(n, d, noise_var, length)[-1])) < 4


def test_the_integral_is_what_steps_gain_that_part_and_control_another_factor_is_not():
    for place in MINIMA + SADDLES:
        np.testing.assert_allclose(fall(*place), bend(*place), rtol=1e-4)
    for place, wrong in product(MINIMA, WRONG):  # all of the right sign
        assert bend(*place, wrong) < 1.1 * fall(*place) < 0


@pytest.mark.parametrize("place", MINIMA + SADDLES)
def test_without_noise_equal_steps_are_a_saddle_and_with_noise_a_minimum(place):
    tied, free = (best_steps(*place, kind).fun for kind in (True, False))
    assert (bend(*place) < 0) == (place in MINIMA)
    least = depth.best_descent(*place)[-1]  # of complex steps
    equal, rtol = (tied, 1e-6) if place in MINIMA else (least, 1e-5)
    np.testing.assert_allclose(free, equal, rtol=rtol)
    assert least < tied - 1e-4 if place in MINIMA else free < 0.9 * tied


def test_control_a_square_prompt_without_noise_gains_half_of_the_exponent():
    central = [comb(2 * length, length) / 4**length for length in range(5)]
    risks = [best_steps(1, 0.0, length, True).fun for length in range(1, 5)]
    np.testing.assert_allclose(risks, central[1:], rtol=1e-2)
    np.testing.assert_allclose(depth.tied_descent_at(100, 100, 0.0, 4), central, rtol=0.02)
    assert np.abs(depth.best_descent(1.0, 0.0, 4) / np.array(central) - 1).max() > 0.2
