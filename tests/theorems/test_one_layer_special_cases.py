"""Published one-layer optima are special cases of one formula (docs/theory, "Published optima").

Sides: ``one_layer`` for any Λ, W and σ²; the matrices of Zhang et al. (2306.09927: W = I, σ = 0),
Ahn et al. (2306.00297) and Mahankali et al. (2307.03576: W = Λ⁻¹), and their least risks.
"""

import numpy as np
import pytest

import draws
from draws import jit_numpy, seeds
from lsa_lab.models import constructions
from lsa_lab.theory import optimum

built = jit_numpy(constructions.one_step_optimum, static_argnums=1)
one_layer = jit_numpy(optimum.one_layer, static_argnums=2)
one_layer_risk = jit_numpy(optimum.one_layer_risk, static_argnums=3)
shapes = pytest.mark.parametrize(("n", "d"), [(5, 3), (3, 5)])
NOISE_VAR = 0.3


def draw(seed, d):
    return draws.draw_covariance(np.random.default_rng(seed), d, 0.5, 2.0)


def zhangs_matrix(covariance, n):
    """Γ⁻¹, Γ = (1 + 1/n) Λ + (tr Λ/n) I."""
    shrink = np.trace(covariance) / n * np.eye(len(covariance))
    return np.linalg.inv((1 + 1 / n) * covariance + shrink)


@shapes
@seeds
def test_plain_weights_without_noise_are_zhangs_case(n, d, seed):
    covariance, identity = draw(seed, d), np.eye(d)
    stated = zhangs_matrix(covariance, n)
    best = one_layer(covariance, identity, n, 0.0)
    np.testing.assert_allclose(best, stated, atol=1e-10)
    risk = one_layer_risk(best, covariance, identity, n, 0.0)
    least = np.trace(covariance @ stated @ (covariance + np.trace(covariance) * identity)) / n
    np.testing.assert_allclose(risk, least, rtol=1e-10)


@shapes
@seeds
def test_control_with_noisy_labels_zhangs_matrix_is_too_long_a_step(n, d, seed):
    covariance = draw(seed, d)
    noisy = one_layer(covariance, np.eye(d), n, NOISE_VAR)
    assert np.linalg.norm(noisy) < np.linalg.norm(zhangs_matrix(covariance, n)) - 1e-3


@shapes
@seeds
def test_the_construction_is_the_best_layer_of_noisy_labels_and_balanced(n, d, seed):
    covariance = draw(seed, d)
    params = built(covariance, n, NOISE_VAR)
    scores, write = params.w_kq[0, 0, :-1, :-1], params.w_pv[0, 0, -1, -1]
    best = one_layer(covariance, np.eye(d), n, NOISE_VAR)
    np.testing.assert_allclose(-write * scores, best, atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(scores), -write, rtol=1e-10)


@shapes
@seeds
def test_whitened_weights_are_mahankalis_and_ahns_case(n, d, seed):
    covariance = draw(seed, d)
    precision = np.linalg.inv(covariance)
    best = one_layer(covariance, precision, n, NOISE_VAR)
    np.testing.assert_allclose(best, n / (n + 1 + d + NOISE_VAR) * precision, atol=1e-10)


@shapes
def test_isotropic_weights_are_mahankalis_case_and_sparse_ones_have_a_step_of_their_own(n, d):
    identity = np.eye(d)
    step = n / (n + 1 + d + NOISE_VAR)
    best = one_layer(identity, identity, n, NOISE_VAR)
    np.testing.assert_allclose(best, step * identity, atol=1e-10)
    risk = one_layer_risk(best, identity, identity, n, NOISE_VAR)
    np.testing.assert_allclose(risk, d * (d + 1 + NOISE_VAR) / n * step, rtol=1e-10)
    sparse = one_layer(identity, identity / d, n, NOISE_VAR)
    np.testing.assert_allclose(sparse, n / (n + 1 + d + NOISE_VAR * d) * identity, atol=1e-10)
