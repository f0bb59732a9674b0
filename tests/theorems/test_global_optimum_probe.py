"""Zhang's one-layer weights are a global minimum among all weights (2306.09927).

docs/theory, "Zhang's weights are optimal". All (d+1)² entries of both matrices are free and the
query is a key. Sides: the population loss and gradient of the network, and searches on it; the
least loss tr[Λ Γ⁻¹ (Λ + tr Λ I)]/n. d = 2, n = 1: six standard normals x_1, x_query, w; the squared
error has degree at most 6 in each, so 5 Gauss-Hermite nodes per variable (5^6 prompts, exact to
degree 9) give the loss.
"""

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import population
from lsa_lab.models import constructions

D, COVARIANCE = 2, np.array([[1.5, 0.4], [0.4, 0.7]])
NODES, MASS = population.gauss_hermite([5] * 6)


@jax.jit
def population_loss(params, task_scales):
    grid = jnp.asarray(NODES).reshape(-1, 3, D)
    x = grid[:, :2] @ jnp.linalg.cholesky(jnp.asarray(COVARIANCE)).T
    w = grid[:, 2] * task_scales[None]

    def error(x, w):
        return population.predict(params, x[:1], x[:1] @ w, x[1], keys="all") - x[1] @ w

    return jnp.asarray(MASS) @ jax.vmap(error)(x, w) ** 2


OPTIMUM = constructions.one_step_optimum(jnp.asarray(COVARIANCE), 1, 0.0)
FLAT, UNFLATTEN = jax.flatten_util.ravel_pytree(OPTIMUM)
ISOTROPIC, UNEQUAL = jnp.ones(D), jnp.array([1.0, 2.0])


def least_loss():
    """tr[Λ Γ⁻¹ (Λ + tr Λ I)]/n with Γ = (1 + 1/n) Λ + (tr Λ/n) I, n = 1."""
    trace_part = np.trace(COVARIANCE) * np.eye(D)
    gamma = 2 * COVARIANCE + trace_part
    return np.trace(COVARIANCE @ np.linalg.inv(gamma) @ (COVARIANCE + trace_part))


@jax.jit
@jax.value_and_grad
def flat_loss(weights, task_scales):
    return population_loss(UNFLATTEN(weights), task_scales)


def descend(start, task_scales):
    """The loss where BFGS stops, from flat weights."""

    def objective(weights):
        value, slope = flat_loss(jnp.asarray(weights), task_scales)
        return float(value), np.asarray(slope)

    return scipy.optimize.minimize(objective, start, jac=True, method="BFGS").fun


def random_start(seed):
    return 0.3 * np.random.default_rng(seed).standard_normal(FLAT.size)


def largest_gradient(task_scales):
    return np.abs(flat_loss(FLAT, task_scales)[1]).max()


def test_the_gradient_vanishes_and_the_loss_is_the_formula():
    assert largest_gradient(ISOTROPIC) < 1e-10
    np.testing.assert_allclose(population_loss(OPTIMUM, ISOTROPIC), least_loss(), rtol=1e-10)


@pytest.mark.parametrize("restart", range(4))
def test_no_restart_ends_below(restart):
    assert descend(random_start(restart), ISOTROPIC) >= least_loss() - 1e-10


def test_a_restart_reaches_the_optimum():
    np.testing.assert_allclose(descend(random_start(8), ISOTROPIC), least_loss(), atol=1e-8)


def test_control_weights_of_unequal_variances_have_a_better_layer_and_the_search_reaches_it():
    assert largest_gradient(UNEQUAL) > 0.1
    assert descend(random_start(8), UNEQUAL) < population_loss(OPTIMUM, UNEQUAL) - 0.01
