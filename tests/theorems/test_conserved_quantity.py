"""u² - |U|² does not change while a linear-attention layer trains by gradient flow.

Zhang et al. 2306.09927; docs/theory, "The conserved quantity". Sides: the gradient of the
population loss; the solver of the matrix ODE. Hypothesis: u and U learn at one rate.
"""

import jax
import numpy as np

import draws
import population
from draws import jit_numpy
from lsa_lab.theory import training_dynamics

D, N = 3, 5
TIMES = np.linspace(0.0, 4.0, 10)


conserved = jit_numpy(training_dynamics.conserved)


def population_loss(weights, covariance, noise_var):
    u, U = weights
    return population.one_layer_loss(u * U, covariance, N, noise_var)


def draw(seed):  # Λ, u and U
    rng = np.random.default_rng(seed)
    return (
        draws.draw_covariance(rng, D, 0.3, 1.5),
        0.5 * rng.normal(),
        0.5 * rng.normal(size=(D, D)),
    )


slopes = jit_numpy(jax.grad(population_loss))


def imbalance(covariance, u, U, noise_var, rate_of_u):
    """d/dt (u² - |U|²)/2 with u' = -rate ∂L/∂u and U' = -∂L/∂U."""
    by_u, by_U = slopes((u, U), covariance, noise_var)
    return abs(rate_of_u * u * by_u - (U * by_U).sum())


def drift(covariance, u, U, noise_var):
    path = population.train_flow(TIMES, covariance, N, u, U, noise_var)
    change = conserved(*path) - (u**2 - np.trace(U @ U.T))
    return np.abs(change).max()


@draws.seed_and(noise_var=(0.0, 2.0))
def test_u_squared_minus_the_norm_of_U_squared_is_conserved(seed, noise_var):
    case = draw(seed)
    assert imbalance(*case, noise_var, rate_of_u=1.0) < 1e-10
    assert drift(*case, noise_var) < 1e-7


def test_control_unequal_learning_rates_break_the_conservation():
    assert imbalance(*draw(0), 0.5, rate_of_u=2.0) > 1e-2
