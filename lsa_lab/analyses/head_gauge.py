"""Heads of linear attention are not unique: a layer is the sum of their products alone.

A layer sees its heads through Σ_h w_pv_h ⊗ w_kq_h. For any invertible A [H, H],

    w_pv'_h = Σ_k A_hk w_pv_k,    w_kq'_h = Σ_k (A⁻ᵀ)_hk w_kq_k

is the same layer with other heads (derived here). What a head is worth is then a property of the
weights that training happened to find, unless narrow keys or the softmax forbid the mixing; what
the layer itself has is a spectrum.
"""

import chex
import jax.numpy as jnp
from jax import Array

from lsa_lab.models.linear_attention import Params


def mixed(params: Params, mixing: Array) -> Params:  # mixing [L, H, H]
    """The same stack with its heads mixed by the invertible matrices A, one for each layer."""
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


def canonical(params: Params) -> tuple[Params, Array]:  # Params, [L, H]
    """The same stack with orthogonal heads, and the singular values σ of its layers.

    Σ_h vec(w_pv_h) vec(w_kq_h)ᵀ = Σ_h σ_h u_h v_hᵀ, σ falling: head h gets √σ_h u_h and √σ_h v_h.
    σ does not depend on the mixing, and a layer needs as many heads as it has σ_h > 0. In float64:
    where two σ are equal, their heads can still be turned into one another.
    """
    num_layers, num_heads, e, _ = params.w_pv.shape
    chex.assert_equal_shape([params.w_kq, params.w_pv])
    writes, asks = (w.reshape(num_layers, num_heads, e * e) for w in (params.w_pv, params.w_kq))
    # The two sides have H columns each: the SVD is that of a product of their triangles.
    (q_writes, r_writes), (q_asks, r_asks) = (
        jnp.linalg.qr(side.swapaxes(1, 2)) for side in (writes, asks)
    )
    left, values, right = jnp.linalg.svd(r_writes @ r_asks.swapaxes(1, 2))
    sizes = jnp.sqrt(values)[:, None]

    def heads(basis: Array, turn: Array) -> Array:  # [L, H, e, e]
        return ((basis @ turn) * sizes).swapaxes(1, 2).reshape(num_layers, num_heads, e, e)

    return Params(w_kq=heads(q_asks, right.swapaxes(1, 2)), w_pv=heads(q_writes, left)), values
