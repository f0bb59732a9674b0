"""What a layer trained on one task costs on prompts of another (2306.09927).

docs/theory, "Risk under shift". Sides: the network on every prompt of an exact quadrature
(n = d = 2, one task: x_1, x_2, ε_1, ε_2 on 3^6 nodes), and Zhang et al.'s formula at their optimum;
``shifted_risk`` for any layer.
"""

import hypothesis
import jax.numpy as jnp
import numpy as np

import draws
import population
from draws import jit_numpy, seeds
from lsa_lab.models import constructions
from lsa_lab.theory import optimum

D = 3
NODES, MASS = population.gauss_hermite([3] * 6)
NOISE_VAR = 0.3


def draw(seed, d):
    """Roots of the covariances of demonstrations and of queries, A [d, d], and one task [d]."""
    rng = np.random.default_rng(seed)
    roots = [draws.draw_root(rng, d, 0.5, 2.0) for _ in range(2)]
    return *roots, rng.normal(size=(d, d)), rng.normal(size=d)


shifted_risk = jit_numpy(optimum.shifted_risk, static_argnums=4)
one_layer = jit_numpy(optimum.one_layer, static_argnums=2)


@jit_numpy
def quadrature_risk(A, root, query_root, task):
    x = jnp.asarray(NODES[:, :4]).reshape(-1, 2, 2) @ root.T
    y = x @ task + jnp.sqrt(NOISE_VAR) * jnp.asarray(NODES[:, 4:])
    tasks = jnp.broadcast_to(task, (len(x), 2))
    return population.risk(constructions.preconditioned(A[None]), x, y, tasks, MASS, query_root)


def excess(seed, shifted_queries=True):
    """The network's risk over the formula's, minus 1; the formula may overlook the shift."""
    root, query_root, A, task = draw(seed, 2)
    stated_root = query_root if shifted_queries else root
    covariances = root @ root.T, stated_root @ stated_root.T, np.outer(task, task)
    formula = shifted_risk(A, *covariances, 2, NOISE_VAR)
    return quadrature_risk(A, root, query_root, task) / formula - 1


@hypothesis.settings(max_examples=8)
@seeds
def test_a_layer_on_another_task_costs_the_formula(seed):
    assert abs(excess(seed)) < 1e-10


@hypothesis.settings(max_examples=8)
@seeds
def test_control_queries_like_the_demonstrations_cost_something_else(seed):
    assert abs(excess(seed, shifted_queries=False)) > 1e-6


def zhang_excess(covariance, task, training_n, test_n, noise_var):
    """tr(Σ_z Γ⁻²Λ)/m + [|a|²_{Γ⁻²Λ³} + 2 tr Λ |a|²_{Γ⁻²Λ²} + (tr Λ)² |a|²_{Γ⁻²Λ}]/n²."""
    identity, total, Λ = np.eye(len(task)), np.trace(covariance), covariance
    inverse = np.linalg.inv((1 + 1 / training_n) * Λ + total / training_n * identity)
    squared = inverse @ inverse
    label_cov = Λ @ np.outer(task, task) @ Λ + (task @ Λ @ task + noise_var) * Λ
    floor = task @ squared @ (Λ @ Λ + 2 * total * Λ + total**2 * identity) @ Λ @ task
    return np.trace(label_cov @ squared @ Λ) / test_n + floor / training_n**2


def trained_risk(seed, d):
    """The layer trained with 7 demonstrations on 11 with noise, and the task that it met."""
    root, _, _, task = draw(seed, d)
    covariance = root @ root.T
    A = one_layer(covariance, np.eye(d), 7, 0.0)
    weights = np.outer(task, task)
    return shifted_risk(A, covariance, covariance, weights, 11, 0.4), covariance, task


@seeds
def test_zhangs_risk_is_the_formula_at_the_trained_optimum(seed):
    ours, *task = trained_risk(seed, D)
    np.testing.assert_allclose(ours, zhang_excess(*task, 7, 11, 0.4), rtol=1e-10)


@seeds
def test_control_labels_without_noise_cost_less(seed):
    ours, *task = trained_risk(seed, D)
    assert zhang_excess(*task, 7, 11, 0.0) < ours - 1e-3
