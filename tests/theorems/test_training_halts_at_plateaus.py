"""Separate heads escape small weights one by one, and between escapes the loss stands still.

Derived here (agrees in outline with 2501.16265); docs/theory, "Training halts at plateaus". Head i
needs the time ∫ dm / (λ_i² m² (1 - γ_i m³)); half-way to the next escape the next head, still of
the order of its initial size m, has changed the loss by O(m³). Sides: the ODE of the heads; that
integral by Gauss-Legendre, and the closed form of the plateaus.
"""

import jax
import jax.numpy as jnp
import numpy as np

from draws import jit_numpy, seed_and
from lsa_lab.theory import plateaus, training_dynamics

N = 10
SPECTRUM = np.array([2.0, 1.0, 0.5])
heads_at = jit_numpy(plateaus.solve_heads, static_argnums=2)


def limits(eigenvalues, noise_var):
    return np.cbrt(N / ((N + 1) * eigenvalues + eigenvalues.sum() + noise_var))


def arrivals(eigenvalues, noise_var, size):
    """When each head reaches 90 % of its limit, by Gauss-Legendre in 1/m."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    limit = limits(eigenvalues, noise_var)
    low, high = 1 / (0.9 * limit), 1 / size
    inverse = low[:, None] + (high - low)[:, None] * (nodes[None] + 1) / 2
    speed = eigenvalues[:, None] ** 2 * (1 - 1 / (limit[:, None] * inverse) ** 3)
    return (high - low) / 2 * (weights / speed).sum(1)


def error_at_arrival(seed, noise_var, size, clock):
    eigenvalues = np.random.default_rng(seed).uniform(0.3, 2, 3)
    times = clock * arrivals(eigenvalues, noise_var, size)
    order = np.argsort(times)
    sizes = heads_at(times[order], eigenvalues, N, np.full(3, size), noise_var)
    reached = sizes[np.arange(3), order] / limits(eigenvalues, noise_var)[order]
    return np.abs(reached - 0.9).max()


@jit_numpy
def levels(sizes, noise_var):
    """The losses at the heads' sizes, and the plateaus."""
    loss = jax.vmap(
        lambda m: training_dynamics.loss(1.0, jnp.diag(m**3), jnp.diag(SPECTRUM), N, noise_var)
    )
    return loss(sizes), plateaus.plateaus(SPECTRUM, N, noise_var)


def distance_from_plateaus(size, noise_var):
    """How far the loss is half-way between escapes, at the worst plateau but the last."""
    escapes = arrivals(SPECTRUM, noise_var, size)
    times = (np.append(0, escapes[:-1]) + escapes) / 2
    losses, stated = levels(heads_at(times, SPECTRUM, N, np.full(3, size), noise_var), noise_var)
    return np.abs(losses - stated[:-1]).max()


@seed_and(noise_var=(0.0, 2.0), size=(0.02, 0.2))
def test_a_head_arrives_when_the_integral_says(seed, noise_var, size):
    assert error_at_arrival(seed, noise_var, size, clock=1.0) < 1e-7


def test_the_loss_halts_at_the_plateaus_the_smaller_the_weights_start():
    near, nearer = distance_from_plateaus(0.01, 0.5), distance_from_plateaus(0.005, 0.5)
    assert nearer < 1e-5
    assert abs(np.log2(near / nearer) - 3.0) < 0.1


def test_control_another_clock_or_large_weights_at_the_start_break_it():
    assert error_at_arrival(0, 0.5, 0.1, clock=0.5) > 1e-2
    assert distance_from_plateaus(0.3, 0.5) > 1e-2
