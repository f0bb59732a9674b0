"""The population risk of one layer and its minimiser, for any Λ, W, σ²; published optima are cases.

d = n = 2: x_1, x_2, w and ε are 8 standard normals of degree 4 at most, so that 3^8 Gauss-Hermite
prompts are exact. Zhang et al. (2306.09927: W = I, σ = 0), Ahn et al. (2306.00297), Mahankali et
al. (2307.03576: W = Λ⁻¹). docs/theory, "The risk of one layer", "The one-layer optimum", "Published
optima".
"""

import numpy as np
import pytest

import population
from draws import draw_covariance, draw_root, jit_numpy, preconditioned, seeds, two_sizes
from lsa_lab.models import constructions
from lsa_lab.theory import optimum

D = N = 2
NODES, MASS = population.gauss_hermite([3] * 8)
one_layer_risk = jit_numpy(optimum.one_layer_risk, static_argnums=3)
one_layer = jit_numpy(optimum.one_layer, static_argnums=2)
label_moments = jit_numpy(optimum.label_moments, static_argnums=2)
one_step_optimum = jit_numpy(constructions.one_step_optimum, static_argnums=1)


@pytest.mark.parametrize("task_rank", [2, 1])
@seeds
def test_the_risk_of_any_layer_and_the_minimiser_are_the_formulas(task_rank, seed):
    rng = np.random.default_rng(seed)
    root, task_root = (draw_root(rng, D, 0.5, 2.0) for _ in range(2))
    task_root, noise_var = task_root * (np.arange(D) < task_rank), rng.uniform(0.2, 1)
    x, w = NODES[:, :4].reshape(-1, N, D) @ root.T, NODES[:, 4:6] @ task_root.T
    y = np.einsum("pnd,pd->pn", x, w) + np.sqrt(noise_var) * NODES[:, 6:]
    task, A = (root @ root.T, task_root @ task_root.T, N, noise_var), rng.normal(size=(D, D))
    exact = population.risk(preconditioned(A[None]), x, y, w, MASS, root)
    np.testing.assert_allclose(exact, one_layer_risk(A, *task), rtol=1e-10)
    b, (outer, cross) = np.einsum("pnd,pn->pd", x, y) / N, label_moments(*task)
    np.testing.assert_allclose((b.T * MASS) @ b, outer, atol=1e-10)
    np.testing.assert_allclose((b.T * MASS) @ w, cross, atol=1e-10)
    # ŷ = ⟨A, b x_queryᵀ⟩ is linear in A: one regression; queries are the root's columns.
    features = np.einsum("p,pd,eq->pqde", MASS**0.5, b, root).reshape(-1, D * D)
    targets = MASS[:, None] ** 0.5 * (w @ root)
    best = np.linalg.lstsq(features, targets.ravel())[0].reshape(D, D)
    np.testing.assert_allclose(best, one_layer(*task), rtol=0, atol=1e-10)
    noiseless = one_layer(*task[:3], 0.0)
    assert np.abs(best - noiseless).max() > 1e-4  # Control: noiseless labels


@two_sizes
@seeds
def test_published_optima_are_cases_and_the_construction_is_balanced(n, d, seed):
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
    step, precision = n / (n + 1 + d + 0.3), np.linalg.inv(covariance)  # Mahankali's and Ahn's
    whitened, sparse = (one_layer(covariance, W, n, 0.3) for W in (precision, precision / d))
    np.testing.assert_allclose(whitened, step * precision, atol=1e-10)
    risk = one_layer_risk(whitened, covariance, precision, n, 0.3)
    np.testing.assert_allclose(risk, d * (d + 1 + 0.3) / n * step, rtol=1e-10)
    stated = n / (n + 1 + d + 0.3 * d) * precision  # sparse weights have a step of their own
    np.testing.assert_allclose(sparse, stated, atol=1e-10)
