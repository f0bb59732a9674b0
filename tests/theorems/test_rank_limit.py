"""Heads of total rank k reach the rank-limited risk and nothing lower.

d = 3, n = 1: x, w and ε are 7 standard normals of degree 4 at most, so that 3^7 Gauss-Hermite
prompts give the loss exactly. docs/theory, "The rank limit".
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import population
from draws import draw_covariance, jit_numpy, seeds
from lsa_lab.models import linear_attention
from lsa_lab.theory import optimum

D, NOISE_VAR = 3, 0.3
rank_limited_risk = jit_numpy(optimum.rank_limited_risk, static_argnums=2)
NODES, MASS = population.gauss_hermite([3] * 7)
ROOT = np.array([[1.4, 0.0, 0.0], [0.5, 1.0, 0.0], [-0.3, 0.2, 0.6]])
TASK_ROOT = np.array([[1.0, 0.0, 0.0], [0.3, 0.8, 0.0], [0.2, -0.4, 1.2]])


@jit_numpy
@jax.value_and_grad
def population_loss(directions):  # [2, k, d], of heads whose key and query read one direction each
    blocks = jnp.einsum("hd,he->hde", *directions)
    w_kq = jnp.pad(blocks, ((0, 0), (0, 1), (0, 1)))[None]
    params = linear_attention.Params(w_kq, jnp.zeros_like(w_kq).at[..., D, D].set(-1.0))
    x, w = jnp.asarray(NODES[:, None, :3] @ ROOT.T), jnp.asarray(NODES[:, 3:6] @ TASK_ROOT.T)
    y = jnp.einsum("pnd,pd->pn", x, w) + np.sqrt(NOISE_VAR) * jnp.asarray(NODES[:, 6:])
    return population.risk(params, x, y, w, MASS, ROOT)


def descend(num_heads, seed):
    def objective(flat):
        value, slope = population_loss(flat.reshape(2, num_heads, D))
        return value, slope.ravel()

    start = 0.5 * np.random.default_rng(seed).standard_normal(2 * num_heads * D)
    return scipy.optimize.minimize(objective, start, jac=True, method="BFGS").fun


@pytest.mark.parametrize("num_heads", [1, 2])
def test_the_best_of_k_narrow_heads_is_the_formula(num_heads):
    limits = rank_limited_risk(ROOT @ ROOT.T, TASK_ROOT @ TASK_ROOT.T, 1, NOISE_VAR)  # [d+1]
    least = min(descend(num_heads, seed) for seed in range(3))
    np.testing.assert_allclose(least, limits[num_heads], rtol=1e-10)
    # Control: one head fewer or more.
    assert np.abs(least - np.delete(limits, num_heads)).min() > 1e-3


@seeds
def test_isotropic_weights_lose_the_tail_of_the_spectrum(seed):
    """W = I, σ = 0: min R = tr Λ - Σ_{top k} λ_i²/γ_i."""
    covariance = draw_covariance(np.random.default_rng(seed), D, 0.2, 2.0)
    eigenvalues = np.linalg.eigvalsh(covariance)[::-1]
    gains = eigenvalues**2 / (2 * eigenvalues + eigenvalues.sum())
    expected = eigenvalues.sum() - np.cumsum([0.0, *gains])
    np.testing.assert_allclose(
        rank_limited_risk(covariance, np.eye(D), 1, 0.0), expected, rtol=1e-10
    )
