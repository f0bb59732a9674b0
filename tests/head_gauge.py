"""Heads of linear attention that compute the same: mixed, orthogonal and canonical ones.

A layer adds Σ_h w_pv_h S w_kq_h e_t to token t, with a symmetric S for every key mask. So it is

    update_a = Σ_{βγc} M_{aβγc} S_{βγ} e_c,    M_{aβγc} = (N_{aβγc} + N_{aγβc})/2,
    N_{aβγc} = Σ_h w_pv_h[a, β] w_kq_h[γ, c]

(docs/theory, "Heads are not unique").
"""

import jax.numpy as jnp
from jax import Array

from draws import jit_numpy
from lsa_lab.models import head_gauge
from lsa_lab.models.linear_attention import Params

mix_heads = jit_numpy(head_gauge.mix_heads)


def layer_tensor(params: Params) -> Array:  # [L, e, e, e, e]
    """Return M_{aβγc} of every layer; two layers compute the same if and only if M is the same."""
    tensor = jnp.einsum("lhab,lhgc->labgc", params.w_pv, params.w_kq)
    return (tensor + tensor.swapaxes(2, 3)) / 2


@jit_numpy
def orthogonal_heads(params: Params) -> tuple[Params, Array]:  # Params, [L, min(H, e²)]
    """Return heads with the same N = Σ_h σ_h u_h v_hᵀ, and its singular values σ, falling."""
    num_layers, num_heads, e, _ = params.w_pv.shape
    writes, asks = (w.reshape(num_layers, num_heads, e * e) for w in (params.w_pv, params.w_kq))
    # The two sides have H columns each: the SVD is that of a product of their triangles.
    (q_writes, r_writes), (q_asks, r_asks) = (
        jnp.linalg.qr(side.swapaxes(1, 2)) for side in (writes, asks)
    )
    left, values, right = jnp.linalg.svd(r_writes @ r_asks.swapaxes(1, 2))
    return _scale_heads(q_writes @ left, values, q_asks @ right.swapaxes(1, 2)), values


@jit_numpy
def canonical_heads(params: Params) -> tuple[Params, Array]:  # Params of e² heads, [L, e²]
    """Return the orthogonal heads of N = M, and the singular values of M.

    They are the same for all layers that compute the same, up to a sign of both sides of a head and
    a rotation among heads with equal σ.
    """
    num_layers, _, e, _ = params.w_pv.shape
    left, values, right = jnp.linalg.svd(layer_tensor(params).reshape(num_layers, e * e, e * e))
    return _scale_heads(left, values, right.swapaxes(1, 2)), values


def _scale_heads(left: Array, values: Array, right: Array) -> Params:  # [L, e², H], [L, H]
    """Return heads with √σ_h u_h as w_pv and √σ_h v_h as w_kq."""
    num_layers, squared, num_heads = left.shape
    e = round(squared**0.5)

    def scale(vectors: Array) -> Array:
        scaled = vectors * jnp.sqrt(values)[:, None]
        return scaled.swapaxes(1, 2).reshape(num_layers, num_heads, e, e)

    return Params(w_kq=scale(right), w_pv=scale(left))
