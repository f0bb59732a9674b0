"""The population risk of one layer and its minimiser (THEORY II.2.4), against exact quadrature.

d = n = 2: x_1, x_2, w and ε are 8 standard normals and every integrand has degree at most 4 in
each, so 3 Gauss-Hermite nodes per variable, 3^8 prompts in all, make expectations exact.
"""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.models import constructions, linear_attention, trace
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.theory import optimum

D = N = 2
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(3)
GRID = np.stack(np.meshgrid(*[NODES] * 8, indexing="ij"), -1).reshape(-1, 8)
MASS = np.prod(np.meshgrid(*[WEIGHTS / WEIGHTS.sum()] * 8, indexing="ij"), axis=0).ravel()
seeds = hypothesis.given(seed=st.integers(0, 2**31 - 1))


def random_root(key):
    """A matrix whose covariance root rootᵀ has any eigenvectors and eigenvalues from ½ to 2."""
    key_vectors, key_values = jax.random.split(key)
    values = jax.random.uniform(key_values, (D,), minval=0.5, maxval=2.0)
    return jax.random.orthogonal(key_vectors, D) * jnp.sqrt(values)[None]


def random_law(seed):
    keys = jax.random.split(jax.random.key(seed), 3)
    return random_root(keys[0]), random_root(keys[1]), jax.random.uniform(keys[2], minval=0.2)


@jax.jit
def quadrature_prompts(root, task_root, noise_var):
    """All prompts; the columns of the root serve as queries: they sum squares as E over N(0, Λ)."""
    x = jnp.asarray(GRID[:, :4]).reshape(-1, N, D) @ root.T
    w = jnp.asarray(GRID[:, 4:6]) @ task_root.T
    y = jnp.einsum("pnd,pd->pn", x, w) + jnp.sqrt(noise_var) * jnp.asarray(GRID[:, 6:])
    return x, y, w, root.T


@jax.jit
def network_risk(params, prompts):
    x, y, w, queries = prompts

    def error(x, y, w, x_query):
        prompt = Prompt(x, y, x_query, w @ x_query)
        return trace.predict(linear_attention.forward(params, tokens(prompt))) - w @ x_query

    over_queries = jax.vmap(error, (None, None, None, 0))
    errors = jax.vmap(over_queries, (0, 0, 0, None))(x, y, w, queries)
    return jnp.asarray(MASS) @ (errors**2).sum(1)


def best_by_least_squares(prompts):
    """ŷ = ⟨A, b x_queryᵀ⟩ is linear in A: one weighted regression over all prompts."""
    x, y, w, queries = map(np.asarray, prompts)
    b = np.einsum("pnd,pn->pd", x, y) / N
    features = np.einsum("pd,qe->pqde", b, queries) * np.sqrt(MASS)[:, None, None, None]
    targets = (w @ queries.T) * np.sqrt(MASS)[:, None]
    return np.linalg.lstsq(features.reshape(-1, D * D), targets.ravel())[0].reshape(D, D)


@hypothesis.settings(max_examples=8)
@seeds
def test_the_risk_of_any_layer_is_the_formula(seed):
    root, task_root, noise_var = random_law(seed)
    law = root @ root.T, task_root @ task_root.T, N, noise_var
    A = jax.random.normal(jax.random.key(seed + 1), (D, D))
    prompts = quadrature_prompts(root, task_root, noise_var)
    simulated = network_risk(constructions.preconditioned(A[None]), prompts)
    np.testing.assert_allclose(simulated, optimum.one_layer_risk(A, *law), rtol=1e-10)
    x, y, w, _ = map(np.asarray, prompts)
    b = np.einsum("pnd,pn->pd", x, y) / N
    outer, cross = optimum.label_moments(*law)
    np.testing.assert_allclose((b.T * MASS) @ b, outer, atol=1e-10)
    np.testing.assert_allclose((b.T * MASS) @ w, cross, atol=1e-10)


@pytest.mark.parametrize("task_rank", [2, 1])
@seeds
def test_the_minimiser_is_the_formula(task_rank, seed):
    root, task_root, noise_var = random_law(seed)
    task_root = task_root * (jnp.arange(D) < task_rank)[None].astype(task_root.dtype)
    covariance, task = root @ root.T, task_root @ task_root.T
    minimiser = best_by_least_squares(quadrature_prompts(root, task_root, noise_var))
    formula = optimum.one_layer(covariance, task, N, noise_var)
    np.testing.assert_allclose(minimiser, formula, atol=1e-10)
    # Control: the optimum of noiseless labels is another matrix.
    assert np.abs(minimiser - optimum.one_layer(covariance, task, N, 0.0)).max() > 1e-4
