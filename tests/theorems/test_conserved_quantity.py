"""u² - |U|² does not change while a linear-attention layer trains by gradient flow.

Zhang et al. 2306.09927; docs/theory, "The conserved quantity". Sides: the gradient of the
population loss; the solver of the matrix ODE. Hypothesis: u and U learn at one rate.
"""

from functools import partial

import jax
import jax.numpy as jnp

import draws
import population
from lsa_lab.theory import training_dynamics

D = 3
N = 5
TIMES = jnp.linspace(0.0, 4.0, 9)


def population_loss(weights, covariance, noise_var):
    u, U = weights
    return population.one_layer_loss(u * U, covariance, N, noise_var)


def draw(seed, d):
    keys = jax.random.split(jax.random.key(seed), 3)
    weights = 0.5 * jax.random.normal(keys[0]), 0.5 * jax.random.normal(keys[1], (d, d))
    return draws.covariance(keys[2], d, 0.3, 1.5), weights


@partial(jax.jit, static_argnames="d")
def imbalance(seed, d, noise_var, rate_of_u):
    """d/dt (u² - |U|²)/2 with u' = -rate ∂L/∂u and U' = -∂L/∂U."""
    covariance, (u, U) = draw(seed, d)
    by_u, by_U = jax.grad(population_loss)((u, U), covariance, noise_var)
    return jnp.abs(rate_of_u * u * by_u - jnp.sum(U * by_U))


@partial(jax.jit, static_argnames="d")
def drift(seed, d, noise_var):
    covariance, (u, U) = draw(seed, d)
    path = training_dynamics.solve(TIMES, covariance, N, u, U, noise_var)
    change = training_dynamics.conserved(*path) - (u**2 - jnp.trace(U @ U.T))
    return jnp.max(jnp.abs(change))


@draws.seeded(noise_var=(0.0, 2.0))
def test_u_squared_minus_the_norm_of_U_squared_is_conserved(seed, noise_var):
    assert imbalance(seed, D, noise_var, rate_of_u=1.0) < 1e-10
    assert drift(seed, D, noise_var) < 1e-7


def test_control_unequal_learning_rates_break_the_conservation():
    assert imbalance(0, 3, 0.5, rate_of_u=2.0) > 1e-2
