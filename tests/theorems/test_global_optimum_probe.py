"""Zhang's one-layer weights are a global minimum among all weights (2306.09927; THEORY II.2.4).

All (d+1)² entries of both matrices are free and the query is a key. d = 2, n = 1: six standard
normals x_1, x_query, w; the squared error has degree at most 6 in each, so 5 Gauss-Hermite nodes
per variable (5^6 prompts, exact to degree 9) give the population loss and its gradient.
"""

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from lsa_lab.models import constructions, linear_attention, trace
from lsa_lab.prompts import Prompt, tokens

D, COVARIANCE = 2, np.array([[1.5, 0.4], [0.4, 0.7]])
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
GRID = np.stack(np.meshgrid(*[NODES] * 6, indexing="ij"), -1).reshape(-1, 3, D)
MASS = np.prod(np.meshgrid(*[WEIGHTS / WEIGHTS.sum()] * 6, indexing="ij"), axis=0).ravel()


@jax.jit
def population_loss(params, task_scales):
    x = jnp.asarray(GRID[:, :2]) @ jnp.linalg.cholesky(jnp.asarray(COVARIANCE)).T
    w = jnp.asarray(GRID[:, 2]) * task_scales[None]

    def error(x, w):
        prompt = Prompt(x[:1], x[:1] @ w, x[1], x[1] @ w)
        output = linear_attention.forward(params, tokens(prompt), keys="all")
        return trace.predict(output) - prompt.y_query

    return jnp.asarray(MASS) @ jax.vmap(error)(x, w) ** 2


OPTIMUM = constructions.one_step_optimum(jnp.asarray(COVARIANCE), 1, 0.0)
FLAT, UNFLATTEN = jax.flatten_util.ravel_pytree(OPTIMUM)
ISOTROPIC = jnp.ones(D)


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
    """BFGS from flat weights; the loss where it stops."""

    def objective(weights):
        value, slope = flat_loss(jnp.asarray(weights), task_scales)
        return float(value), np.asarray(slope)

    return scipy.optimize.minimize(objective, start, jac=True, method="BFGS").fun


def largest_gradient(task_scales):
    return np.abs(flat_loss(FLAT, task_scales)[1]).max()


def test_the_gradient_vanishes_and_the_loss_is_the_formula():
    assert largest_gradient(ISOTROPIC) < 1e-10
    np.testing.assert_allclose(population_loss(OPTIMUM, ISOTROPIC), least_loss(), rtol=1e-10)
    # Control: with w of unequal variances the same weights are not critical.
    assert largest_gradient(jnp.array([1.0, 2.0])) > 0.1


@pytest.mark.parametrize("restart", range(8))
def test_no_restart_ends_below(restart):
    start = 0.3 * np.random.default_rng(restart).standard_normal(FLAT.size)
    assert descend(start, ISOTROPIC) >= least_loss() - 1e-10


def test_restarts_find_the_optimum_and_would_find_a_better_one():
    start = 0.3 * np.random.default_rng(8).standard_normal(FLAT.size)
    np.testing.assert_allclose(descend(start, ISOTROPIC), least_loss(), atol=1e-8)
    # Control: where Zhang's weights are not optimal, the same search ends clearly below them.
    unequal = jnp.array([1.0, 2.0])
    assert descend(start, unequal) < population_loss(OPTIMUM, unequal) - 0.01
