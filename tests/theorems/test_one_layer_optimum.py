"""The population risk of one layer and its minimiser, for any Λ, W, σ².

docs/theory, "The risk of one layer", "The one-layer optimum". Sides: the network on every prompt of
an exact quadrature, and a regression over all of them; the closed forms. d = n = 2: x_1, x_2, w and
ε are 8 standard normals and every integrand has degree at most 4 in each, so 3 Gauss-Hermite nodes
per variable, 3^8 prompts in all, make expectations exact.
"""

import hypothesis
import numpy as np
import pytest

import draws
import population
from draws import jit_numpy, seeds
from lsa_lab.models import constructions
from lsa_lab.theory import optimum

D = N = 2
NODES, MASS = population.gauss_hermite([3] * 8)
preconditioned = jit_numpy(constructions.preconditioned)
risk_of = jit_numpy(optimum.one_layer_risk, static_argnums=3)
one_layer = jit_numpy(optimum.one_layer, static_argnums=2)
moments_of = jit_numpy(optimum.label_moments, static_argnums=2)


def draw(seed):
    """Roots of Λ and of the weights' covariance W, and σ²."""
    rng = np.random.default_rng(seed)
    return *(draws.draw_root(rng, D, 0.5, 2.0) for _ in range(2)), rng.uniform(0.2, 1)


def all_prompts(root, task_root, noise_var):  # [P, n, d], [P, n], [P, d]
    x = NODES[:, :4].reshape(-1, N, D) @ root.T
    w = NODES[:, 4:6] @ task_root.T
    return x, np.einsum("pnd,pd->pn", x, w) + np.sqrt(noise_var) * NODES[:, 6:], w


def label_correlations(x, y):
    return np.einsum("pnd,pn->pd", x, y) / N


def best_by_least_squares(root, x, y, w):
    """ŷ = ⟨A, b x_queryᵀ⟩ is linear in A: one weighted regression over all prompts.

    The columns of the root are the queries, as in ``population.risk``.
    """
    features = np.einsum("pd,eq->pqde", label_correlations(x, y), root)
    features *= np.sqrt(MASS)[:, None, None, None]
    targets = (w @ root) * np.sqrt(MASS)[:, None]
    return np.linalg.lstsq(features.reshape(-1, D * D), targets.ravel())[0].reshape(D, D)


@hypothesis.settings(max_examples=8)
@seeds
def test_the_risk_of_any_layer_is_the_formula(seed):
    root, task_root, noise_var = draw(seed)
    task = root @ root.T, task_root @ task_root.T, N, noise_var
    A = np.random.default_rng(seed + 1).normal(size=(D, D))
    x, y, w = all_prompts(root, task_root, noise_var)
    simulated = population.risk(preconditioned(A[None]), x, y, w, MASS, root)
    np.testing.assert_allclose(simulated, risk_of(A, *task), rtol=1e-10)
    b = label_correlations(x, y)
    outer, cross = moments_of(*task)
    np.testing.assert_allclose((b.T * MASS) @ b, outer, atol=1e-10)
    np.testing.assert_allclose((b.T * MASS) @ w, cross, atol=1e-10)


def distance_from_the_minimiser(seed, task_rank, of_noise=1.0):
    """max |A* - formula|, where the formula is told ``of_noise`` times the noise."""
    root, task_root, noise_var = draw(seed)
    task_root = task_root * (np.arange(D) < task_rank)
    x, y, w = all_prompts(root, task_root, noise_var)
    minimiser = best_by_least_squares(root, x, y, w)
    covariances = root @ root.T, task_root @ task_root.T
    return np.abs(minimiser - one_layer(*covariances, N, of_noise * noise_var)).max()


@pytest.mark.parametrize("task_rank", [2, 1])
@seeds
def test_the_minimiser_is_the_formula(task_rank, seed):
    assert distance_from_the_minimiser(seed, task_rank) < 1e-10


@pytest.mark.parametrize("task_rank", [2, 1])
@seeds
def test_control_the_optimum_of_noiseless_labels_is_another_matrix(task_rank, seed):
    assert distance_from_the_minimiser(seed, task_rank, of_noise=0.0) > 1e-4
