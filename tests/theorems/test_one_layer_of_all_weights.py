"""The risk of one layer of any weights is that of one matrix, and what is even in the task besides.

All entries of the weights of two heads are free, the query is a key or none. d = 2, n = 1: the
squared error has degree 6 at most in each of six standard normals, so that 4 Gauss-Hermite nodes
each are exact. docs/theory, "Zhang's weights are optimal".
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import population
from draws import draw_stack, jit_numpy, seeds
from lsa_lab.models import constructions

one_layer_loss = jit_numpy(population.one_layer_loss)
D, HEADS, COVARIANCE = 2, 2, np.array([[1.5, 0.4], [0.4, 0.7]])
GRID, MASS = population.gauss_hermite([4] * 6)
GRID, ROOT, TRACE = GRID.reshape(-1, 3, D), np.linalg.cholesky(COVARIANCE), np.trace(COVARIANCE)


@jax.jit(static_argnames="keys")
def risks(params, w, keys):
    """The risk over the grid, for tasks w [P, d], and the mean square of what is even in w."""
    x = jnp.asarray(GRID[:, :2]) @ ROOT.T

    def predict(x, w):
        return population.predict(params, x[:1], x[:1] @ w, x[1], keys=keys)

    forth, back = (jax.vmap(predict)(x, sign * w) for sign in (1.0, -1.0))
    errors = forth - jnp.einsum("pd,pd->p", x[:, 1], w)
    return jnp.asarray(MASS) @ errors**2, jnp.asarray(MASS) @ ((forth + back) / 2) ** 2


def matrix(params):  # A = -Σ_h (P_yy K_xx + P_yxᵀ K_yx)
    (w_kq,), (w_pv,) = np.asarray(params.w_kq), np.asarray(params.w_pv)
    plain = np.einsum("h,hde->de", w_pv[:, -1, -1], w_kq[:, :-1, :-1])
    return -plain - np.einsum("hd,he->de", w_pv[:, -1, :-1], w_kq[:, -1, :-1])


def least_risk():  # tr[Λ Γ⁻¹ (Λ + tr Λ I)]/n with Γ = (1 + 1/n) Λ + (tr Λ/n) I, n = 1
    gamma = 2 * COVARIANCE + TRACE * np.eye(D)
    return np.trace(COVARIANCE @ np.linalg.inv(gamma) @ (COVARIANCE + TRACE * np.eye(D)))


@pytest.mark.parametrize("keys", ["all", "demonstrations"])
@seeds
def test_the_risk_of_any_weights_is_that_of_one_matrix_and_an_even_part(keys, seed):
    params = draw_stack(np.random.default_rng(seed), 1, HEADS, D + 1, 1.0)
    risk, even = risks(params, GRID[:, 2], keys)
    closed = 2 * one_layer_loss(matrix(params), COVARIANCE, 1, 0.0)
    np.testing.assert_allclose(risk, closed + even, rtol=1e-10)
    assert risk >= least_risk() * (1 - 1e-10)


def test_zhangs_weights_have_the_least_risk_and_no_slope():
    params = constructions.one_step_optimum(COVARIANCE, 1, 0.0)
    risk, even = risks(params, GRID[:, 2], "all")
    np.testing.assert_allclose(risk, least_risk(), rtol=1e-10)
    assert even < 1e-20
    slope = jax.grad(lambda params: risks(params, GRID[:, 2], "all")[0])(params)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(slope)) < 1e-10


def test_control_tasks_with_a_mean_or_of_unequal_variances_have_another_risk_and_optimum():
    params = draw_stack(np.random.default_rng(0), 1, HEADS, D + 1, 1.0)
    risk, even = risks(params, GRID[:, 2] + 1, "all")
    A, mean = matrix(params), np.eye(D) + np.ones((D, D))  # E w wᵀ
    first = np.trace(mean @ COVARIANCE) * COVARIANCE + 2 * COVARIANCE @ mean @ COVARIANCE
    closed = np.trace(COVARIANCE @ (A.T @ (first @ A - 2 * COVARIANCE @ mean) + mean))
    assert abs(risk - closed - even) > 1e-2 * closed
    scales = np.array([1.0, 2.0])
    spread = np.diag(scales**2) @ COVARIANCE
    best = np.linalg.solve(2 * spread + np.trace(spread) * np.eye(D), np.diag(scales**2))
    zhang, better = constructions.one_step_optimum(COVARIANCE, 1, 0.0), best[None]
    stacks = zhang, constructions.preconditioned(better)
    found = [float(risks(params, GRID[:, 2] * scales, "all")[0]) for params in stacks]
    assert found[1] < found[0] - 0.01
