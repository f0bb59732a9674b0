"""What a layer trained on one task costs on prompts of another, and the risk that no number of test
demonstrations removes.

n = d = 2 and one task: x_1, x_2, ε_1, ε_2 on 3^6 Gauss-Hermite nodes are exact. Zhang et al.
2306.09927. docs/theory, "Risk under shift", "The floor under shift".
"""

import numpy as np

import population
from draws import draw_root, jit_numpy, preconditioned, seeds
from lsa_lab.theory import optimum

D, NOISE_VAR = 2, 0.3
NODES, MASS = population.gauss_hermite([3] * 6)
shifted_risk = jit_numpy(optimum.shifted_risk, static_argnums=4)
shifted_risk_floor = jit_numpy(optimum.shifted_risk_floor)
one_layer = jit_numpy(optimum.one_layer, static_argnums=2)


def draw(seed):
    """A [d, d], roots of the covariances of demonstrations, queries and tasks, and one task [d]."""
    rng = np.random.default_rng(seed)
    roots = [draw_root(rng, D, 0.5, 2.0) for _ in range(3)]
    return rng.normal(size=(D, D)), *roots, rng.normal(size=D)


@seeds
def test_a_layer_on_another_task_costs_the_formula(seed):
    A, root, query_root, _, task = draw(seed)
    x = NODES[:, :4].reshape(-1, 2, D) @ root.T
    y, tasks = x @ task + np.sqrt(NOISE_VAR) * NODES[:, 4:], np.broadcast_to(task, (len(x), D))
    exact = population.risk(preconditioned(A[None]), x, y, tasks, MASS, query_root)
    stated, overlooked = (
        shifted_risk(A, root @ root.T, r @ r.T, np.outer(task, task), 2, NOISE_VAR)
        for r in (query_root, root)
    )
    assert abs(exact / stated - 1) < 1e-10
    assert abs(exact / overlooked - 1) > 1e-6  # Control: queries like the demonstrations


def zhang_excess(covariance, task, training_n, test_n, noise_var):
    """tr(Σ_z Γ⁻²Λ)/m + [|a|²_{Γ⁻²Λ³} + 2 tr Λ |a|²_{Γ⁻²Λ²} + (tr Λ)² |a|²_{Γ⁻²Λ}]/n²."""
    identity, total, Λ = np.eye(D), np.trace(covariance), covariance
    inverse = np.linalg.inv((1 + 1 / training_n) * Λ + total / training_n * identity)
    squared = inverse @ inverse
    label_cov = Λ @ np.outer(task, task) @ Λ + (task @ Λ @ task + noise_var) * Λ
    floor = task @ squared @ (Λ @ Λ + 2 * total * Λ + total**2 * identity) @ Λ @ task
    return np.trace(label_cov @ squared @ Λ) / test_n + floor / training_n**2


@seeds
def test_zhangs_risk_is_the_formula_at_the_trained_optimum(seed):
    """The layer is trained with 7 demonstrations, and tested on 11 with noise."""
    _, root, *_, task = draw(seed)
    covariance = root @ root.T
    A = one_layer(covariance, np.eye(D), 7, 0.0)
    risk = shifted_risk(A, covariance, covariance, np.outer(task, task), 11, 0.4)
    np.testing.assert_allclose(risk, zhang_excess(covariance, task, 7, 11, 0.4), rtol=1e-10)
    assert zhang_excess(covariance, task, 7, 11, 0.0) < risk - 1e-3  # Control: without noise


def network_floor(A, root, query_root, task_root):
    """The network on d demonstrations without noise whose second moment is Λ' itself, which stand
    for infinitely many; tasks, too, are the columns of their root."""
    x = np.broadcast_to(D**0.5 * root.T, (D, D, D))
    y = np.einsum("pnd,pd->pn", x, task_root.T)
    return population.risk(preconditioned(A[None]), x, y, task_root.T, np.ones(D), query_root)


@seeds
def test_the_risk_falls_as_one_over_the_test_length_to_the_floor(seed):
    A, *roots, _ = draw(seed)
    covariances = [root @ root.T for root in roots]
    floor = shifted_risk_floor(A, *covariances)
    np.testing.assert_allclose(network_floor(A, *roots), floor, rtol=1e-10, atol=1e-12)
    short, long = (shifted_risk(A, *covariances, n, 0.4) for n in (2, 11))
    np.testing.assert_allclose(long, floor + (short - floor) * 2 / 11, rtol=1e-10)
    # Control: it is strictly convex in A, so that one map may share it, but not both sides of A.
    others = [network_floor(moved, *roots) for moved in (A + 0.1, A - 0.1)]
    assert max(others) > (1 + 1e-7) * floor


def test_three_times_the_covariance_is_worse_than_predicting_zero():
    """n = 15, d = 6, trained on Λ = I: the step Γ⁻¹ is too long for 3Λ; without a shift, or for the
    queries alone, the layer is far below."""
    identity = np.eye(6)
    A = one_layer(identity, identity, 15, 0.0)
    shifted, plain, queries = (
        shifted_risk_floor(A, shift * identity, query_shift * identity, identity) / 6
        for shift, query_shift in ((3, 3), (1, 1), (1, 3))
    )
    np.testing.assert_allclose([shifted / 3, plain], [1.093, 0.101], atol=5e-4)
    assert queries < 3 / 5
    np.testing.assert_allclose(shifted, 3 * (3 / (16 / 15 + 6 / 15) - 1) ** 2)
