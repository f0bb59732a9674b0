"""The size of one softmax head's implicit update, for experiments on descent."""

import jax.numpy as jnp

from lsa_lab.analyses.kernel import softmax_update


def of_head(w_v, w_k, w_q, w_o, rows):  # |ΔW|², Z² |ΔW|², what is written
    """|Σ_i v_i φ(k_i)ᵀ|_F² / Z² = Σ_ij κ(k_i, k_j) v_i · v_j / Z² in the feature space of the
    kernel κ (A2, A.2), read at the last of the rows [T, D] that a layer reads."""
    update = softmax_update(w_o @ w_v, w_k, w_q, rows[:-1], rows[-1])
    keys = rows[:-1] @ w_k.T
    kernel = jnp.exp(keys @ keys.T - 2 * update.log_normaliser)
    size = (kernel * (update.values @ update.values.T)).sum()
    return size, size * jnp.exp(2 * update.log_normaliser), update.written
