"""The population risk of one layer and its minimiser, for any Λ, W, σ²; published optima are cases.

d = n = 2: x_1, x_2, w and ε are 8 standard normals of degree 4 at most, so that 3^8 Gauss-Hermite
prompts are exact. Zhang et al. (2306.09927: W = I, σ = 0), Ahn et al. (2306.00297), Mahankali et
al. (2307.03576: W = Λ⁻¹). docs/theory, "The risk of one layer", "The one-layer optimum", "Published
optima".
"""

import hypothesis
import numpy as np
import pytest

import population
from draws import draw_covariance, draw_root, jit_numpy, preconditioned, seeds, sizes
from lsa_lab.models import constructions
from lsa_lab.theory import optimum

D = N = 2
NODES, MASS = population.gauss_hermite([3] * 8)
one_layer_risk = jit_numpy(optimum.one_layer_risk, static_argnums=3)
one_layer = jit_numpy(optimum.one_layer, static_argnums=2)
label_moments = jit_numpy(optimum.label_moments, static_argnums=2)
one_step_optimum = jit_numpy(constructions.one_step_optimum, static_argnums=1)


def draw(seed, task_rank=D):
    """Roots of Λ and W, σ², and all prompts: x [P, n, d], y [P, n], w [P, d]."""
    rng = np.random.default_rng(seed)
    root, task_root = (draw_root(rng, D, 0.5, 2.0) for _ in range(2))
    task_root, noise_var = task_root * (np.arange(D) < task_rank), rng.uniform(0.2, 1)
    x, w = NODES[:, :4].reshape(-1, N, D) @ root.T, NODES[:, 4:6] @ task_root.T
    y = np.einsum("pnd,pd->pn", x, w) + np.sqrt(noise_var) * NODES[:, 6:]
    return root, task_root, noise_var, (x, y, w)


@hypothesis.settings(max_examples=8)
@seeds
def test_the_risk_of_any_layer_is_the_formula(seed):
    root, task_root, noise_var, (x, y, w) = draw(seed)
    task = root @ root.T, task_root @ task_root.T, N, noise_var
    A = np.random.default_rng(seed + 1).normal(size=(D, D))
    exact = population.risk(preconditioned(A[None]), x, y, w, MASS, root)
    np.testing.assert_allclose(exact, one_layer_risk(A, *task), rtol=1e-10)
    b, (outer, cross) = np.einsum("pnd,pn->pd", x, y) / N, label_moments(*task)
    np.testing.assert_allclose((b.T * MASS) @ b, outer, atol=1e-10)
    np.testing.assert_allclose((b.T * MASS) @ w, cross, atol=1e-10)


@pytest.mark.parametrize("task_rank", [2, 1])
@seeds
def test_the_minimiser_is_the_formula(task_rank, seed):
    """ŷ = ⟨A, b x_queryᵀ⟩ is linear in A: one regression; queries are the root's columns."""
    root, task_root, noise_var, (x, y, w) = draw(seed, task_rank)
    features = np.einsum("pd,eq->pqde", np.einsum("pnd,pn->pd", x, y) / N, root)
    features, targets = (
        a * np.sqrt(MASS).reshape(-1, *[1] * (a.ndim - 1)) for a in (features, w @ root)
    )
    best = np.linalg.lstsq(features.reshape(-1, D * D), targets.ravel())[0].reshape(D, D)
    covariances = root @ root.T, task_root @ task_root.T, N
    np.testing.assert_allclose(best, one_layer(*covariances, noise_var), rtol=0, atol=1e-10)
    assert np.abs(best - one_layer(*covariances, 0.0)).max() > 1e-4  # Control: noiseless labels


@sizes
@seeds
def test_plain_weights_without_noise_are_zhangs_case_and_the_construction_is_balanced(n, d, seed):
    covariance, identity = draw_covariance(np.random.default_rng(seed), d, 0.5, 2.0), np.eye(d)
    total = np.trace(covariance) * identity
    zhang = np.linalg.inv((1 + 1 / n) * covariance + total / n)
    best, noisy = (one_layer(covariance, identity, n, noise_var) for noise_var in (0.0, 0.3))
    np.testing.assert_allclose(best, zhang, atol=1e-10)
    risk = one_layer_risk(best, covariance, identity, n, 0.0)
    least = np.trace(covariance @ zhang @ (covariance + total)) / n
    np.testing.assert_allclose(risk, least, rtol=1e-10)
    params = one_step_optimum(covariance, n, 0.3)
    scores, write = params.w_kq[0, 0, :-1, :-1], params.w_pv[0, 0, -1, -1]
    np.testing.assert_allclose(-write * scores, noisy, atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(scores), -write, rtol=1e-10)
    # Control: with noisy labels Zhang's matrix is too long a step.
    assert np.linalg.norm(noisy) < np.linalg.norm(zhang) - 1e-3


@sizes
@seeds
def test_whitened_weights_are_mahankalis_and_ahns_case(n, d, seed):
    covariance = draw_covariance(np.random.default_rng(seed), d, 0.5, 2.0)
    precision = np.linalg.inv(covariance)
    best = one_layer(covariance, precision, n, 0.3)
    np.testing.assert_allclose(best, n / (n + 1 + d + 0.3) * precision, atol=1e-10)


@sizes
def test_isotropic_weights_are_mahankalis_case_and_sparse_ones_have_a_step_of_their_own(n, d):
    identity, step = np.eye(d), n / (n + 1 + d + 0.3)
    best = one_layer(identity, identity, n, 0.3)
    np.testing.assert_allclose(best, step * identity, atol=1e-10)
    risk = one_layer_risk(best, identity, identity, n, 0.3)
    np.testing.assert_allclose(risk, d * (d + 1 + 0.3) / n * step, rtol=1e-10)
    sparse = one_layer(identity, identity / d, n, 0.3)
    np.testing.assert_allclose(sparse, n / (n + 1 + d + 0.3 * d) * identity, atol=1e-10)
