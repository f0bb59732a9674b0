"""The risk of one layer of any weights is that of one matrix, and what is even in the task besides.

docs/theory, "Zhang's weights are optimal". All entries of the weights of two heads are free, the
query is a key or none. Sides: the network, over all prompts; A of its weights and the risk of one
layer by moments. d = 2, n = 1: the squared error has degree at most 6 in each of the six standard
normals x_1, x_query, w, so 4 Gauss-Hermite nodes each (exact to degree 7) give the means.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import population
from draws import jit_numpy, seeds
from lsa_lab.models import constructions
from lsa_lab.models.linear_attention import Params

one_layer_loss = jit_numpy(population.one_layer_loss)
optimum = jit_numpy(constructions.one_step_optimum, static_argnums=1)
preconditioned = jit_numpy(constructions.preconditioned)
D, HEADS, COVARIANCE = 2, 2, np.array([[1.5, 0.4], [0.4, 0.7]])
GRID, MASS = population.gauss_hermite([4] * 6)
GRID = GRID.reshape(-1, 3, D)
ROOT = np.linalg.cholesky(COVARIANCE)
ISOTROPIC, UNEQUAL = np.ones(D), np.array([1.0, 2.0])


@jax.jit(static_argnames="keys")
def parts(params, w, keys):
    """The risk over the grid of covariates and tasks w [P, d], and the mean square of what is even
    in w."""
    x = jnp.asarray(GRID[:, :2]) @ ROOT.T

    def predictions(sign):
        def predict(x, w):
            return population.predict(params, x[:1], x[:1] @ w, x[1], keys=keys)

        return jax.vmap(predict)(x, sign * w)

    forth, back = predictions(1.0), predictions(-1.0)
    errors = forth - jnp.einsum("pd,pd->p", x[:, 1], w)
    return jnp.asarray(MASS) @ errors**2, jnp.asarray(MASS) @ ((forth + back) / 2) ** 2


slope = jax.jit(jax.grad(lambda params, w: parts(params, w, "all")[0]))


def random_params(seed):
    return Params(*np.random.default_rng(seed).normal(size=(2, 1, HEADS, D + 1, D + 1)))


def matrix(params):
    """A = -Σ_h (P_yy K_xx + P_yxᵀ K_yx)."""
    (w_kq,), (w_pv,) = np.asarray(params.w_kq), np.asarray(params.w_pv)
    plain = np.einsum("h,hde->de", w_pv[:, -1, -1], w_kq[:, :-1, :-1])
    return -plain - np.einsum("hd,he->de", w_pv[:, -1, :-1], w_kq[:, -1, :-1])


def least_loss():
    """tr[Λ Γ⁻¹ (Λ + tr Λ I)]/n with Γ = (1 + 1/n) Λ + (tr Λ/n) I, n = 1."""
    trace_part = np.trace(COVARIANCE) * np.eye(D)
    gamma = 2 * COVARIANCE + trace_part
    return np.trace(COVARIANCE @ np.linalg.inv(gamma) @ (COVARIANCE + trace_part))


@pytest.mark.parametrize("keys", ["all", "demonstrations"])
@seeds
def test_the_risk_of_any_weights_is_that_of_one_matrix_and_an_even_part(keys, seed):
    params = random_params(seed)
    risk, even = parts(params, GRID[:, 2], keys)
    closed = 2 * one_layer_loss(matrix(params), COVARIANCE, 1, 0.0)
    np.testing.assert_allclose(risk, closed + even, rtol=1e-10)
    assert risk >= least_loss() * (1 - 1e-10)


def test_zhangs_weights_have_the_least_risk_and_no_slope():
    params = optimum(COVARIANCE, 1, 0.0)
    risk, even = parts(params, GRID[:, 2], "all")
    np.testing.assert_allclose(risk, least_loss(), rtol=1e-10)
    assert even < 1e-20
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(slope(params, GRID[:, 2]))) < 1e-10


def test_control_tasks_with_a_mean_or_of_unequal_variances_have_another_risk_and_optimum():
    params = random_params(0)
    risk, even = parts(params, GRID[:, 2] + 1, "all")
    mean = np.eye(D) + np.ones((D, D))  # E w wᵀ
    first = np.trace(mean @ COVARIANCE) * COVARIANCE + 2 * COVARIANCE @ mean @ COVARIANCE
    A = matrix(params)
    closed = np.trace(COVARIANCE @ (A.T @ (first @ A - 2 * COVARIANCE @ mean) + mean))
    assert abs(risk - closed - even) > 1e-2 * closed
    zhang = optimum(COVARIANCE, 1, 0.0)
    spread = np.diag(UNEQUAL**2) @ COVARIANCE
    best = np.linalg.solve(2 * spread + np.trace(spread) * np.eye(D), np.diag(UNEQUAL**2))
    better = preconditioned(best[None])
    risks = [float(parts(p, GRID[:, 2] * UNEQUAL, "all")[0]) for p in (zhang, better)]
    assert risks[1] < risks[0] - 0.01
