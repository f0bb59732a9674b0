"""Heads of linear attention are not unique: a layer computes one symmetrised tensor.

A layer adds Σ_h w_pv_h S w_kq_h e_t to token t, with a symmetric S for every key mask. So it is

    update_a = Σ_{βγc} M_{aβγc} S_{βγ} e_c,    M_{aβγc} = (N_{aβγc} + N_{aγβc})/2,
    N_{aβγc} = Σ_h w_pv_h[a, β] w_kq_h[γ, c],

and no output depends on the part that is antisymmetric in N's two indices of S. Mixed heads keep N;
w_pv = a bᵀ, w_kq = c dᵀ and w_pv = a cᵀ, w_kq = b dᵀ have the same M. So the importance and the
number of heads belong to the weights and not to the function (derived here; docs/theory, "Heads are
not unique").
"""

import chex
import jax.numpy as jnp
from jax import Array

from lsa_lab.models.linear_attention import Params


def mix_heads(params: Params, mixing: Array) -> Params:  # mixing [L, H, H]
    """Return the same function with heads mixed by an invertible A for each layer.

    w_pv'_h = Σ_k A_hk w_pv_k and w_kq'_h = Σ_k (A⁻ᵀ)_hk w_kq_k (derived here).
    """
    num_layers, num_heads = params.w_pv.shape[:2]
    chex.assert_shape(
        mixing,
        (num_layers, num_heads, num_heads),
        custom_message="mixing is [L, H, H], one matrix for each layer",
    )
    inverse = jnp.linalg.inv(mixing)
    return Params(
        w_kq=jnp.einsum("lkh,lkef->lhef", inverse, params.w_kq),
        w_pv=jnp.einsum("lhk,lkef->lhef", mixing, params.w_pv),
    )


def layer_tensor(params: Params) -> Array:  # [L, e, e, e, e]
    """Return M_{aβγc} of every layer; two layers compute the same if and only if M is the same.

    e⁴ numbers a layer; heads of separate W_K, W_Q, W_V, W_O are merged first
    (``transformer.merge``).
    """
    _check(params)
    tensor = jnp.einsum("lhab,lhgc->labgc", params.w_pv, params.w_kq)
    return (tensor + tensor.swapaxes(2, 3)) / 2


def orthogonal_heads(params: Params) -> tuple[Params, Array]:  # Params, [L, min(H, e²)]
    """Return the same N with orthogonal heads, and its singular values σ.

    Σ_h vec(w_pv_h) vec(w_kq_h)ᵀ = Σ_h σ_h u_h v_hᵀ, σ falling: head h gets √σ_h u_h and √σ_h v_h.
    No mixing changes it, but layers that compute the same can differ in N, and in the number of
    σ_h > 0; ``canonical_heads`` does not.
    """
    num_layers, num_heads, e, _ = _check(params)
    writes, asks = (w.reshape(num_layers, num_heads, e * e) for w in (params.w_pv, params.w_kq))
    # The two sides have H columns each: the SVD is that of a product of their triangles.
    (q_writes, r_writes), (q_asks, r_asks) = (
        jnp.linalg.qr(side.swapaxes(1, 2)) for side in (writes, asks)
    )
    left, values, right = jnp.linalg.svd(r_writes @ r_asks.swapaxes(1, 2))
    return _heads(q_writes @ left, values, q_asks @ right.swapaxes(1, 2)), values


def canonical_heads(params: Params) -> tuple[Params, Array]:  # Params of e² heads, [L, e²]
    """Return the same function with the orthogonal heads of M, and the singular values of M.

    This is ``orthogonal_heads`` of N = M: the same for all layers that compute the same, up to a
    sign of both sides of a head and a rotation among heads with equal σ. Σ N² is the least, because
    M is orthogonal to what is antisymmetric, but heads are seldom the fewest: w_pv = a bᵀ,
    w_kq = c dᵀ gives two.
    """
    num_layers, _, e, _ = _check(params)
    left, values, right = jnp.linalg.svd(layer_tensor(params).reshape(num_layers, e * e, e * e))
    return _heads(left, values, right.swapaxes(1, 2)), values


def _heads(left: Array, values: Array, right: Array) -> Params:  # [L, e², H], [L, H], [L, e², H]
    """Return heads with √σ_h u_h as w_pv and √σ_h v_h as w_kq."""
    num_layers, squared, num_heads = left.shape
    e = round(squared**0.5)

    def side(vectors: Array) -> Array:
        scaled = vectors * jnp.sqrt(values)[:, None]
        return scaled.swapaxes(1, 2).reshape(num_layers, num_heads, e, e)

    return Params(w_kq=side(right), w_pv=side(left))


def _check(params: Params) -> tuple[int, ...]:  # L, H, e, e
    chex.assert_rank(
        [params.w_kq, params.w_pv],
        4,
        custom_message="weights are [L, H, e, e]; use jax.vmap for several models",
    )
    chex.assert_equal_shape([params.w_kq, params.w_pv])
    return params.w_pv.shape
