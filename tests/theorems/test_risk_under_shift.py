"""What a layer trained on one law costs on prompts of another (2306.09927; THEORY II.2.5)."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.models import constructions, linear_attention, trace
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.theory import optimum

seeds = hypothesis.given(seed=st.integers(0, 2**31 - 1))


def random_root(rng, d):
    """A root of a covariance with any eigenvectors and eigenvalues from ½ to 2."""
    vectors = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return vectors * np.sqrt(rng.uniform(0.5, 2.0, d))


@jax.jit
def network_errors(A, x, y, task, queries):  # [q]
    params = constructions.preconditioned(A[None])

    def error(x_query):
        prompt = Prompt(x, y, x_query, x_query @ task)
        return trace.predict(linear_attention.forward(params, tokens(prompt))) - prompt.y_query

    return jax.vmap(error)(queries)


@jax.jit
def quadrature_risk(A, root, query_root, task, noise_var):
    """The network's risk for one task and n = d = 2, exact: x_1, x_2, ε_1, ε_2 on 3^6 nodes.

    The columns of a root serve as queries: they sum squares as the expectation over queries does.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    grid = jnp.asarray(np.stack(np.meshgrid(*[nodes] * 6, indexing="ij"), -1).reshape(-1, 6))
    mass = np.prod(np.meshgrid(*[weights / weights.sum()] * 6, indexing="ij"), axis=0).ravel()
    x = grid[:, :4].reshape(-1, 2, 2) @ root.T
    y = x @ task + jnp.sqrt(noise_var) * grid[:, 4:]
    errors = jax.vmap(network_errors, (None, 0, 0, None, None))(A, x, y, task, query_root.T)
    return jnp.asarray(mass) @ (errors**2).sum(1)


@hypothesis.settings(max_examples=8)
@seeds
def test_a_layer_at_another_law_costs_the_formula(seed):
    rng = np.random.default_rng(seed)
    root, query_root, A = random_root(rng, 2), random_root(rng, 2), rng.standard_normal((2, 2))
    task, noise_var = rng.standard_normal(2), 0.3
    simulated = quadrature_risk(*map(jnp.asarray, (A, root, query_root, task)), noise_var)
    covariance, query_covariance = root @ root.T, query_root @ query_root.T
    weights = np.outer(task, task)
    formula = optimum.shifted_risk(A, covariance, query_covariance, weights, 2, noise_var)
    np.testing.assert_allclose(simulated, formula, rtol=1e-10)
    # Control: queries from the demonstrations' law cost something else.
    unshifted = optimum.shifted_risk(A, covariance, covariance, weights, 2, noise_var)
    assert abs(unshifted - simulated) > 1e-6 * simulated


def zhang_excess(covariance, task, training_n, test_n, noise_var):
    """tr(Σ_z Γ⁻²Λ)/m + [|a|²_{Γ⁻²Λ³} + 2 tr Λ |a|²_{Γ⁻²Λ²} + (tr Λ)² |a|²_{Γ⁻²Λ}]/n²."""
    identity, total, Λ = np.eye(len(task)), np.trace(covariance), covariance
    inverse = np.linalg.inv((1 + 1 / training_n) * Λ + total / training_n * identity)
    squared = inverse @ inverse
    label_cov = Λ @ np.outer(task, task) @ Λ + (task @ Λ @ task + noise_var) * Λ
    floor = task @ squared @ (Λ @ Λ + 2 * total * Λ + total**2 * identity) @ Λ @ task
    return np.trace(label_cov @ squared @ Λ) / test_n + floor / training_n**2


@pytest.mark.parametrize("d", [1, 3, 6])
@seeds
def test_zhangs_risk_is_the_formula_at_the_trained_optimum(d, seed):
    rng = np.random.default_rng(seed)
    root, task = random_root(rng, d), rng.standard_normal(d)
    covariance, weights = root @ root.T, np.outer(task, task)
    A = optimum.one_layer(covariance, np.eye(d), 7, 0.0)
    ours = optimum.shifted_risk(A, covariance, covariance, weights, 11, 0.4)
    np.testing.assert_allclose(ours, zhang_excess(covariance, task, 7, 11, 0.4), rtol=1e-10)
    # Control: labels without noise cost less.
    assert zhang_excess(covariance, task, 7, 11, 0.0) < ours - 1e-3
