"""Heads of total rank k reach the rank-limited risk and nothing lower (THEORY II.2.4).

d = 3, n = 1: x, w and ε are 7 standard normals, integrands have degree at most 4 in each, so 3^7
Gauss-Hermite prompts give the population loss of k heads of key width 1 exactly.
"""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from lsa_lab.models import linear_attention, trace
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.theory import optimum

D, NOISE_VAR = 3, 0.3
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(3)
GRID = np.stack(np.meshgrid(*[NODES] * 7, indexing="ij"), -1).reshape(-1, 7)
MASS = np.prod(np.meshgrid(*[WEIGHTS / WEIGHTS.sum()] * 7, indexing="ij"), axis=0).ravel()
ROOT = np.array([[1.4, 0.0, 0.0], [0.5, 1.0, 0.0], [-0.3, 0.2, 0.6]])
TASK_ROOT = np.array([[1.0, 0.0, 0.0], [0.3, 0.8, 0.0], [0.2, -0.4, 1.2]])


def narrow_heads(keys, queries):
    """Heads [k] whose key and query read one direction each, writing -1 times the label."""
    blocks = jnp.einsum("hd,he->hde", keys, queries)
    w_kq = jnp.pad(blocks, ((0, 0), (0, 1), (0, 1)))[None]
    return linear_attention.Params(w_kq, jnp.zeros_like(w_kq).at[..., D, D].set(-1.0))


@jax.jit
@jax.value_and_grad
def population_loss(directions):  # [2, k, d]
    x = jnp.asarray(GRID[:, None, :3] @ ROOT.T)
    w = jnp.asarray(GRID[:, 3:6] @ TASK_ROOT.T)
    y = jnp.einsum("pnd,pd->pn", x, w) + np.sqrt(NOISE_VAR) * jnp.asarray(GRID[:, 6:])
    params = narrow_heads(*directions)

    def error(x, y, w, x_query):
        prompt = Prompt(x, y, x_query, w @ x_query)
        return trace.predict(linear_attention.forward(params, tokens(prompt))) - prompt.y_query

    # The columns of the root sum squares as the expectation over queries from N(0, Λ) does.
    over_queries = jax.vmap(error, (None, None, None, 0))
    errors = jax.vmap(over_queries, (0, 0, 0, None))(x, y, w, jnp.asarray(ROOT.T))
    return jnp.asarray(MASS) @ (errors**2).sum(1)


def descend(num_heads, seed):
    def objective(flat):
        value, slope = population_loss(jnp.asarray(flat).reshape(2, num_heads, D))
        return float(value), np.asarray(slope).ravel()

    start = 0.5 * np.random.default_rng(seed).standard_normal(2 * num_heads * D)
    return scipy.optimize.minimize(objective, start, jac=True, method="BFGS").fun


@pytest.mark.parametrize("num_heads", [1, 2, 3])
def test_the_best_of_k_narrow_heads_is_the_formula(num_heads):
    risks = optimum.rank_limited_risk(ROOT @ ROOT.T, TASK_ROOT @ TASK_ROOT.T, 1, NOISE_VAR)
    found = np.array([descend(num_heads, seed) for seed in range(3)])
    np.testing.assert_allclose(found.min(), risks[num_heads], rtol=1e-10)
    # Control: one head fewer or more is clearly another bound.
    assert found.min() < risks[num_heads - 1] - 1e-3
    assert num_heads == D or found.min() > risks[num_heads + 1] + 1e-3


@pytest.mark.parametrize(("n", "d"), [(4, 3), (9, 5)])
@hypothesis.given(seed=st.integers(0, 2**31 - 1))
def test_isotropic_weights_lose_the_tail_of_the_spectrum(n, d, seed):
    """W = I, σ = 0: min R = tr Λ - Σ_{top k} λ_i²/γ_i."""
    rng = np.random.default_rng(seed)
    eigenvalues = np.sort(rng.uniform(0.2, 2.0, d))[::-1]
    vectors = np.linalg.qr(rng.standard_normal((d, d)))[0]
    gains = eigenvalues**2 / ((1 + 1 / n) * eigenvalues + eigenvalues.sum() / n)
    expected = eigenvalues.sum() - np.concatenate([[0.0], np.cumsum(gains)])
    covariance = vectors * eigenvalues @ vectors.T
    risks = optimum.rank_limited_risk(covariance, np.eye(d), n, 0.0)
    np.testing.assert_allclose(risks, expected, rtol=1e-10)
    best = optimum.one_layer(covariance, np.eye(d), n, 0.0)
    full = optimum.one_layer_risk(best, covariance, np.eye(d), n, 0.0)
    np.testing.assert_allclose(risks[-1], full, rtol=1e-10)
