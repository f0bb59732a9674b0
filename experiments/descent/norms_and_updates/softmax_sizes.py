"""The sizes of implicit updates of softmax attention, of a head and of a layer."""

import flax.struct
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.analyses.kernel import softmax_update


class Balanced(flax.struct.PyTreeNode):
    """Where one head's keys are measured from, and by which inner product.

    W_K → A W_K with W_Q → A⁻ᵀ W_Q, and one vector added to all keys, leave a softmax head alone,
    but not κ(k_i, k_j) = exp(k_i · k_j), nor the size of an update in the feature space of κ. Of
    all such keys these have mean zero and the second moments of the queries; rotations are left.
    """

    mean: Array  # [k]
    metric: Array  # [k, k]  AᵀA of the change of keys that balances them


def balanced(keys, queries):  # [N, k], [M, k] -> Balanced
    """Keys and queries of one head over many prompts, as they are read.

    With K and Q their second moments the metric G solves G K G = Q: it is the geometric mean of Q
    and K⁻¹. A direction of the keys that no query reads has no length in it.
    """
    mean = keys.mean(0)
    of_keys = _power((keys - mean[None]).T @ (keys - mean[None]) / len(keys), 0.5)
    of_queries = queries.T @ queries / len(queries)
    inverse = _power(of_keys, -1.0)
    middle = _power(of_keys @ of_queries @ of_keys, 0.5)
    return Balanced(mean, inverse @ middle @ inverse)


def _power(matrix, exponent):  # [k, k], symmetric, none of whose eigenvalues is negative
    values, vectors = jnp.linalg.eigh((matrix + matrix.T) / 2)
    seen = values > 1e-12 * values.max()
    powers = jnp.where(seen, jnp.where(seen, values, 1.0) ** exponent, 0.0)
    return (vectors * powers[None]) @ vectors.T


def head_sizes(w_v, w_k, w_q, w_o, rows, form=None):  # |ΔW|², Z² |ΔW|², what is written
    """|Σ_i v_i φ(k_i)ᵀ|_F² / Z² = Σ_ij κ(k_i, k_j) v_i · v_j / Z² in the feature space of the
    kernel κ (A2, A.2), read at the last of the rows [T, D] that a layer reads.

    Keys are taken as the weights have them, or as ``form`` has them.
    """
    update = softmax_update(w_o @ w_v, w_k, w_q, rows[:-1], rows[-1])
    keys, log_normaliser = rows[:-1] @ w_k.T, update.log_normaliser
    read = keys
    if form is not None:
        log_normaliser -= form.mean @ (w_q @ rows[-1])
        keys = keys - form.mean[None]
        read = keys @ form.metric
    kernel = jnp.exp(read @ keys.T - 2 * log_normaliser)
    size = (kernel * (update.values @ update.values.T)).sum()
    return size, size * jnp.exp(2 * log_normaliser), update.written


def layer_sizes(params, rows, form=None):  # -> |ΔW|² [L], Z² |ΔW|² [L], what is written [L, D]
    """The sizes of every layer, its heads together, that reads the rows [L, T, D], with keys as
    ``form`` [L, H, ...] has them."""
    sizes = jax.vmap(jax.vmap(head_sizes, (0, 0, 0, 0, None, 0)))
    every = sizes(params.w_v, params.w_k, params.w_q, params.w_o, rows, form)
    return [each.sum(1) for each in every]
