"""A2's Remark 6: E|ΔW|² grows with n, and that of ΔW/n, which our layers add, falls.

    E|ΔW/n|² = |E G|² + (E|G_1|² - |E G|²)/n,   for Gaussian tokens.

Sides: the network's updates of every prompt of n tokens from a grid that has the Gaussian's moments
up to the fifth, summed with the grid's weights; the closed form. docs/theory, "The size of an
update".
"""

import itertools

import jax
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.analyses.implicit_gd import implicit_update
from population import gauss_hermite

E = 3
shapes = pytest.mark.parametrize(("heads", "n"), [(1, 1), (2, 2)])


def draw(seed, heads):
    """Weights [H, e, e] twice, and a root of the tokens' second moment."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(heads, E, E)), rng.normal(size=(heads, E, E)), rng.normal(size=(E, E))


@jit_numpy
def updates(w_kq, w_pv, prompts):  # -> [m, e, e]  ΔW, the heads added up
    by_head = jax.vmap(
        lambda w_kq, w_pv, h: implicit_update(w_pv, w_kq.T, np.eye(E), h), (0, 0, None)
    )
    return jax.vmap(by_head, (None, None, 0))(w_kq, w_pv, prompts).sum(1)


def measured(seed, heads, n):  # -> |E ΔW|², E|ΔW - E ΔW|²
    w_kq, w_pv, root = draw(seed, heads)
    tokens, weights = gauss_hermite([3] * (n * E))
    deltas = updates(w_kq, w_pv, tokens.reshape(-1, n, E) @ root.T)
    mean = np.einsum("m,mij->ij", weights, deltas)
    return (mean**2).sum(), weights @ ((deltas - mean) ** 2).sum((1, 2))


def stated(seed, heads, n, power):
    """|Ḡ|², Ḡ = Σ_h P_h Σ K_h, and (1/n) Σ_hg [tr(Q Σ Mᵀ Σ) + tr(Q Σ) tr(M Σ)], Q = P_gᵀ P_h and
    M = K_h K_gᵀ."""
    w_kq, w_pv, root = draw(seed, heads)
    covariance = root @ root.T
    mean = np.einsum("hij,jk,hkl->il", w_pv, covariance, w_kq)
    read = np.einsum("gij,hik,kl->ghjl", w_pv, w_pv, covariance)
    keys = np.einsum("hij,gkj,kl->ghil", w_kq, w_kq, covariance)
    turned = np.einsum("hij,gkj,il->ghkl", w_kq, w_kq, covariance)
    noise = np.einsum("ghij,ghji->", read, turned) + np.einsum("ghii,ghjj->", read, keys)
    return n**power * (mean**2).sum(), n**power * noise / n


@shapes
@seeds
def test_the_size_of_an_update_has_a_closed_form(heads, n, seed):
    np.testing.assert_allclose(measured(seed, heads, n), stated(seed, heads, n, 2), rtol=1e-9)


def test_control_signs_for_gaussian_tokens_have_another_size():
    w_kq, w_pv, root = draw(0, 1)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=E)))[:, None]  # equal second moment
    deltas = updates(w_kq, w_pv, signs @ root.T)
    spread = ((deltas - deltas.mean(0)) ** 2).sum((1, 2)).mean()
    assert abs(spread / stated(0, 1, 1, 2)[1] - 1) > 0.1
