"""E|ΔW|² grows with n, and that of ΔW/n, which our layers add, falls to |E G|² as 1/n; the noise of
an update is not Gaussian.

The excess kurtosis of R·G lies between 12/(n e) and 12/n for Gaussian tokens, whatever the weights,
the direction R and the task. Papers: A2, Remark 6, Assumption 1. docs/theory, "The size of an
update", "The noise of an update is not Gaussian".
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from draws import jit_numpy, seeds
from lsa_lab.models import linear_attention
from population import gauss_hermite

E, HEADS, N = 3, 2, 2


def draw(seed):
    """Weights [H, e, e] twice, a direction [e, e] and a root of the tokens' second moment."""
    rng = np.random.default_rng(seed)
    return *rng.normal(size=(2, HEADS, E, E)), *rng.normal(size=(2, E, E))


@jit_numpy
def updates(w_kq, w_pv, prompts):  # -> [m, e, e], what the layer adds to the queries e_j
    params = linear_attention.Params(w_kq[None], w_pv[None])

    def written(prompt, query):
        stream = linear_attention.forward(params, jnp.concatenate([prompt, query[None]])).stream
        return stream[1, -1] - stream[0, -1]

    return jax.vmap(jax.vmap(written, (None, 0), 1), (0, None))(prompts, jnp.eye(E))


def moments_of_updates(seed, tokens, weights):
    """|E G|², E|G - E G|², and of R·G skewness and excess kurtosis."""
    w_kq, w_pv, direction, root = draw(seed)
    found = updates(w_kq, w_pv, tokens @ root.T)
    mean = np.einsum("m,mij->ij", weights, found)
    values = np.einsum("mij,ij->m", found - mean, direction)
    second, third, fourth = (weights @ values**power for power in (2, 3, 4))
    spread = weights @ ((found - mean) ** 2).sum((1, 2))
    return (mean**2).sum(), spread, third / second**1.5, fourth / second**2 - 3


def stated(seed, n):
    """|Ḡ|², Ḡ = Σ_h P_h Σ K_h, and (1/n) Σ_hg [tr(Q Σ Mᵀ Σ) + tr(Q Σ) tr(M Σ)], Q = P_gᵀ P_h and
    M = K_h K_gᵀ; √(8/n) tr B³/(tr B²)^{3/2} and (12/n) tr B⁴/(tr B²)², B = A Σ and A the symmetric
    part of Σ_h K_h Rᵀ P_h, from the cumulants of the quadratic form tr(A S)."""
    w_kq, w_pv, direction, root = draw(seed)
    covariance = root @ root.T
    mean = np.einsum("hij,jk,hkl->il", w_pv, covariance, w_kq)
    read = np.einsum("gij,hik,kl->ghjl", w_pv, w_pv, covariance)
    keys = np.einsum("hij,gkj,kl->ghil", w_kq, w_kq, covariance)
    turned = np.einsum("hij,gkj,il->ghkl", w_kq, w_kq, covariance)
    noise = np.einsum("ghij,ghji->", read, turned) + np.einsum("ghii,ghjj->", read, keys)
    form = np.einsum("hij,kj,hkl->il", w_kq, direction, w_pv)
    b = (form + form.T) / 2 @ covariance
    second, third, fourth = (np.trace(np.linalg.matrix_power(b, k)) for k in (2, 3, 4))
    shape = (8 / n) ** 0.5 * third / second**1.5, 12 / n * fourth / second**2
    return (mean**2).sum(), noise / n, *shape


@seeds
def test_the_size_and_the_shape_of_an_update_have_closed_forms_and_are_not_gaussian(seed):
    """Tokens from a grid that has the Gaussian's moments up to the ninth."""
    tokens, weights = gauss_hermite([5] * (N * E))
    found, expected = moments_of_updates(seed, tokens.reshape(-1, N, E), weights), stated(seed, N)
    np.testing.assert_allclose(found[:2], expected[:2], rtol=1e-9)
    np.testing.assert_allclose(found[2:], expected[2:], rtol=1e-7, atol=1e-9)
    assert 12 / (N * E) * (1 - 1e-12) <= expected[3] <= 12 / N * (1 + 1e-12)
    if seed == 0:  # Control: tokens that are signs, of equal second moment
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=E)))[:, None]
        _, spread, _, excess = moments_of_updates(seed, signs, np.full(8, 1 / 8))
        expected = stated(seed, 1)
        assert abs(spread / expected[1] - 1) > 0.1
        assert abs(excess - expected[3]) > 1
