"""Heads of linear attention that compute the same, mixed."""

import jax.numpy as jnp
from jax import Array

from lsa_lab.models.linear_attention import Params


def mix_heads(params: Params, mixing: Array) -> Params:  # mixing [L, H, H]
    """Mix heads by an invertible A: w_pv'_h = Σ_k A_hk w_pv_k and w_kq'_h = Σ_k (A⁻ᵀ)_hk w_kq_k.

    The stack computes the same (docs/theory, "Heads are not unique").
    """
    inverse = jnp.linalg.inv(mixing)
    return Params(
        w_kq=jnp.einsum("lkh,lkef->lhef", inverse, params.w_kq),
        w_pv=jnp.einsum("lhk,lkef->lhef", mixing, params.w_pv),
    )
