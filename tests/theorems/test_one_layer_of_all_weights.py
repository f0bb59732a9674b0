"""The risk of one layer of any weights is that of one matrix, and what is even in the task besides.

All entries of the weights of two heads are free, the query is a key or none. d = 2, n = 1: the
squared error has degree 6 at most in each of six standard normals, so that 4 Gauss-Hermite nodes
each are exact. docs/theory, "Zhang's weights are optimal".
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import population
from draws import draw_stack, jit_numpy, seeds
from lsa_lab.models import constructions

D, HEADS, COVARIANCE = 2, 2, np.array([[1.5, 0.4], [0.4, 0.7]])
GRID, MASS = population.gauss_hermite([4] * 6)
GRID, ROOT = GRID.reshape(-1, 3, D), np.linalg.cholesky(COVARIANCE)
# tr[Λ Γ⁻¹ (Λ + tr Λ I)]/n with Γ = (1 + 1/n) Λ + (tr Λ/n) I, n = 1
SHIFTED = COVARIANCE + np.trace(COVARIANCE) * np.eye(D)
LEAST_RISK = np.trace(COVARIANCE @ np.linalg.solve(COVARIANCE + SHIFTED, SHIFTED))


@partial(jit_numpy, static_argnames="keys")
@partial(jax.value_and_grad, has_aux=True)
def risks(params, w, keys):
    """The risk over the grid, for tasks w [P, d], and the mean square of what is even in w."""
    x = jnp.asarray(GRID[:, :2]) @ ROOT.T

    def predict(x, w):
        return population.predict(params, x[:1], x[:1] @ w, x[1], keys=keys)

    forth, back = (jax.vmap(predict)(x, sign * w) for sign in (1.0, -1.0))
    errors = forth - jnp.einsum("pd,pd->p", x[:, 1], w)
    return jnp.asarray(MASS) @ errors**2, jnp.asarray(MASS) @ ((forth + back) / 2) ** 2


def matrix(params):  # A = -Σ_h (P_yy K_xx + P_yxᵀ K_yx)
    (w_kq,), (w_pv,) = params.w_kq, params.w_pv
    plain = np.einsum("h,hde->de", w_pv[:, -1, -1], w_kq[:, :-1, :-1])
    return -plain - np.einsum("hd,he->de", w_pv[:, -1, :-1], w_kq[:, -1, :-1])


@pytest.mark.parametrize("keys", ["all", "demonstrations"])
@seeds
def test_the_risk_of_any_weights_is_that_of_one_matrix_and_an_even_part(keys, seed):
    params = draw_stack(np.random.default_rng(seed), 1, HEADS, D + 1, 1.0)
    (risk, even), _ = risks(params, GRID[:, 2], keys)
    closed = 2 * population.one_layer_loss(matrix(params), COVARIANCE, 1, 0.0)
    np.testing.assert_allclose(risk, closed + even, rtol=1e-10)
    assert risk >= LEAST_RISK * (1 - 1e-10)


def test_zhangs_weights_have_the_least_risk_and_no_slope_and_control_tasks_with_a_mean_another():
    zhang = constructions.one_step_optimum(COVARIANCE, 1, 0.0)  # of one head, and one that is zero
    zhang = jax.tree.map(lambda w: np.pad(w, ((0, 0), (0, 1), (0, 0), (0, 0))), zhang)
    (risk, even), slope = risks(zhang, GRID[:, 2], "all")
    np.testing.assert_allclose(risk, LEAST_RISK, rtol=1e-10)
    assert even < 1e-20
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(slope)) < 1e-10
    params = draw_stack(np.random.default_rng(0), 1, HEADS, D + 1, 1.0)
    (risk, even), _ = risks(params, GRID[:, 2] + 1, "all")
    A, mean = matrix(params), np.eye(D) + np.ones((D, D))  # E w wᵀ
    first = np.trace(mean @ COVARIANCE) * COVARIANCE + 2 * COVARIANCE @ mean @ COVARIANCE
    closed = np.trace(COVARIANCE @ (A.T @ (first @ A - 2 * COVARIANCE @ mean) + mean))
    assert abs(risk - closed - even) > 1e-2 * closed
    # Nor is Zhang's optimum that of tasks with unequal variances: it has a slope.
    _, slope = risks(zhang, GRID[:, 2] * np.array([1.0, 2.0]), "all")
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(slope)) > 0.01
