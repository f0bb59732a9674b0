"""Layers that share one step lose much without noise, and with noise may be the best real ones.

docs/theory, "Tied layers". Sides: looped stacks of linear attention on drawn prompts, a search
over real steps, central binomial coefficients; one integral over the density of eigenvalues.
Hypothesis: steps are real and shared by all prompts.
"""

from functools import partial
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from draws import on_host
from lsa_lab.models import constructions
from lsa_lab.models.moments import predictions
from lsa_lab.tasks.linear import LinearTask, sample_batch
from lsa_lab.theory import depth


def limit(alpha, count=1000):
    """Nodes h and masses of Marchenko and Pastur's law times h, a semicircle (Chebyshev)."""
    angle = np.arange(1, count + 1) * np.pi / (count + 1)
    h = 1 + 1 / alpha + 2 / np.sqrt(alpha) * np.cos(angle)
    return h, 2 / (count + 1) * np.sin(angle) ** 2


def risk_of_steps(steps, alpha, noise_var):
    h, mass = limit(alpha)
    left = np.prod(1 - np.asarray(steps)[:, None] * h, axis=0)
    unseen = max(1 - alpha, 0)
    return unseen + (mass / h) @ (left**2 + noise_var / alpha / h * (1 - left) ** 2)


def best_steps(alpha, noise_var, length, tied):
    def risk(theta):
        return risk_of_steps(np.full(length, theta[0]) if tied else theta, alpha, noise_var)

    starts = [[a] for a in (0.3, 0.8)] if tied else np.linspace([0.3, 0.2], [0.5, 1.2], length).T
    ends = [minimize(risk, start, tol=1e-12) for start in starts]
    return min(ends, key=lambda end: end.fun)


def bend(alpha, noise_var, length):
    """∫ h (1 - ah)^{L-2} ((h + s)(1 - ah)^L - s) dμ at the best equal steps."""
    a, (h, mass), s = best_steps(alpha, noise_var, length, True).x[0], limit(alpha), noise_var
    left, s = 1 - a * h, s / alpha
    return mass @ (left ** (length - 2) * ((h + s) * left**length - s))


@partial(on_host, static_argnums=1)
def errors_of(step, length, batch):  # [B]
    params = constructions.gradient_descent(jnp.full(length, step), batch.x.shape[2])
    return (predictions(params, batch) - batch.y_query) ** 2


def test_looped_stacks_of_drawn_prompts_have_that_risk():
    n, d, noise_var = 16, 4, 0.5
    task = LinearTask(n, d, noise_std=noise_var**0.5, weight_std=d**-0.5)
    batch = jax.jit(sample_batch, static_argnums=2)(jax.random.key(0), task, 20_000)
    exact = depth.tied_descent_at(n, d, noise_var, 3)
    for length in (1, 3):
        risks = [errors_of(a, length, batch) for a in np.linspace(0.2, 0.9, 15)]
        mean = np.mean(risks, axis=1)
        best = risks[int(np.argmin(mean))]
        error = best.std() / np.sqrt(best.size)
        assert abs(best.mean() - exact[length]) < 4 * error


def test_without_noise_equal_steps_are_a_saddle_and_with_noise_a_minimum():
    for alpha, noise_var, length in ((4, 1.0, 2), (4, 1.0, 3), (4, 1.0, 4), (2, 0.5, 4)):
        tied, free = (best_steps(alpha, noise_var, length, kind).fun for kind in (True, False))
        assert bend(alpha, noise_var, length) < 0
        np.testing.assert_allclose(free, tied, rtol=1e-6)
        assert depth.best_descent(alpha, noise_var, length)[-1] < tied - 1e-4  # complex steps
    for alpha, noise_var, length in ((2, 0.0, 2), (1.5, 0.0, 3), (2, 0.1, 2)):  # the controls
        tied, free = (best_steps(alpha, noise_var, length, kind).fun for kind in (True, False))
        assert bend(alpha, noise_var, length) > 0
        assert free < 0.9 * tied
        np.testing.assert_allclose(
            free, depth.best_descent(alpha, noise_var, length)[-1], rtol=1e-5
        )


def test_control_a_square_prompt_without_noise_gains_half_of_the_exponent():
    central = [comb(2 * length, length) / 4**length for length in range(5)]
    risks = [1, *(best_steps(1, 0.0, length, True).fun for length in range(1, 5))]
    np.testing.assert_allclose(risks, central, rtol=1e-2)
    np.testing.assert_allclose(depth.tied_descent_at(100, 100, 0.0, 4), central, rtol=0.02)
    assert np.abs(depth.best_descent(1.0, 0.0, 4) / np.array(central) - 1).max() > 0.2
