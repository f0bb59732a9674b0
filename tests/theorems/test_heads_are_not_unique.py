"""Mixing the heads of a layer of linear attention changes each of them and nothing else.

W_pv^h ↦ Σ_g A_hg W_pv^g with W_kq^h ↦ Σ_g (A⁻ᵀ)_hg W_kq^g leaves the layer, for any invertible A.
Derived here. Sides: the forward pass of mixed or orthogonal heads; that of the heads as they were.
"""

import jax
import numpy as np
import pytest

from draws import draw_prompt, jit_numpy, seeds
from lsa_lab import prompts
from lsa_lab.analyses import heads
from lsa_lab.models import head_gauge, linear_attention
from lsa_lab.models.trace import predict

L, H, D, N = 2, 3, 2, 5


normalised = jit_numpy(lambda prompt: prompts.normalised(prompt)[0])


def draw(seed):
    rng = np.random.default_rng(seed)
    params = linear_attention.Params(*0.2 * rng.normal(size=(2, L, H, D + 1, D + 1)))
    # Singular values in [1/2, 2]: well enough conditioned for ten digits.
    orthogonal = np.linalg.qr(rng.normal(size=(2, L, H, H)))[0]
    mixing = (orthogonal[0] * 2 ** np.linspace(-1, 1, H)) @ orthogonal[1]
    return normalised(draw_prompt(rng, N, D)), params, mixing


mix, orthogonal_of = jit_numpy(head_gauge.mixed), jit_numpy(head_gauge.orthogonal)


@jit_numpy
def stream(params, prompt):
    return linear_attention.forward(params, prompts.tokens(prompt)).stream


@seeds
def test_mixed_heads_are_the_same_stack(seed):
    prompt, params, mixing = draw(seed)
    mixed = mix(params, mixing)
    np.testing.assert_allclose(stream(mixed, prompt), stream(params, prompt), rtol=0, atol=1e-10)


def test_control_mixing_one_side_alone_is_another_stack():
    prompt, params, mixing = draw(0)
    halved = params.replace(w_pv=mix(params, mixing).w_pv)
    assert np.abs(stream(halved, prompt) - stream(params, prompt)).max() > 1e-3


@seeds
def test_orthogonal_heads_know_no_mixing(seed):
    prompt, params, mixing = draw(seed)
    orthogonal, values = orthogonal_of(params)
    np.testing.assert_allclose(
        stream(orthogonal, prompt), stream(params, prompt), rtol=0, atol=1e-10
    )
    for side in (orthogonal.w_kq, orthogonal.w_pv):
        rows = side.reshape(L, H, -1)
        products = rows @ rows.swapaxes(1, 2)
        np.testing.assert_allclose(products, values[:, None] * np.eye(H), rtol=0, atol=1e-10)
    again, same = orthogonal_of(mix(params, mixing))
    np.testing.assert_allclose(same, values, rtol=0, atol=1e-10)
    assert (np.diff(values) <= 0).all()
    # Heads come with a sign of their own, which their product has not.
    for a, b in zip(products_of(again), products_of(orthogonal), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-7)


def products_of(params):
    return np.einsum("lhef,lhgi->lhefgi", params.w_pv, params.w_kq)


def test_a_head_is_worth_what_the_mixing_makes_it():
    """The same function of prompts, and importances that differ: 1 effective head, or more."""
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(64, N + 1, D)), rng.normal(size=(64, 1, D))
    y = (x * w).sum(2)
    batch = prompts.Prompt(x[:, :-1], y[:, :-1], x[:, -1], y[:, -1])
    w_kq, w_pv = np.zeros((2, 1, H, D + 1, D + 1))
    w_kq[0, 0, :D, :D], w_pv[0, 0, -1, -1] = np.eye(D), -0.5
    weights = linear_attention.Params(w_kq, w_pv)
    turned = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, 0.0, -1.0]])[None]

    @jit_numpy
    def effective(params):
        def loss(mask):
            def squared_error(prompt):
                trace = linear_attention.forward(params, prompts.tokens(prompt), head_mask=mask)
                return (predict(trace) - prompt.y_query) ** 2

            return jax.vmap(squared_error)(batch).mean()

        return heads.effective_heads(heads.importance(loss, 1, H))[0]

    assert effective(weights) == pytest.approx(1)
    assert effective(mix(weights, turned)) > 1.5
