"""Softmax attention through its kernel: an implicit update, but one for each query (A2, A.2).

With k(x, z) = exp(x·z) = φ(x)·φ(z), a head takes the query q to

    q + (1/Z(q)) Σ_i k(W_K h_i, W_Q q) W_V h_i = q + ΔW φ(W_Q q),
    ΔW = (1/Z(q)) Σ_i W_V h_i ⊗ φ(W_K h_i),    Z(q) = Σ_j k(W_K h_j, W_Q q).

φ has infinitely many coordinates and Z depends on the query, so this is no single linear map and
gives no recursion for W_t (docs/theory, "Softmax as an implicit update"); what is exact, query by
query, is computed here.
"""

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.models.blocks import scores


class SoftmaxUpdate(flax.struct.PyTreeNode):
    """One head's reading of one query: Σ_i weights_i values_i is what it writes."""

    values: Array  # [n, e]  W_V h_i
    weights: Array  # [n]  k(W_K h_i, W_Q q) / Z(q)
    log_normaliser: Array  # []  log Z(q)

    @property
    def written(self) -> Array:  # [e]
        """ΔW φ(W_Q q)."""
        return self.weights @ self.values


def softmax_update(
    w_v: Array,  # [e, e]  W_O W_V where they are factored
    w_k: Array,  # [k, e]
    w_q: Array,  # [k, e]
    demonstrations: Array,  # [n, e]  of the stream before the layer, after its norm if it has one
    query: Array,  # [e]  likewise
) -> SoftmaxUpdate:
    """The weighted demonstrations and the normaliser with which one head reads one query.

    The query is no key. Heads add up; any token may stand as the query. Biases and places that turn
    queries and keys are no part of this: there W_K and W_Q differ from token to token.
    """
    chex.assert_rank(
        demonstrations, 2, custom_message="demonstrations are [n, e]; use jax.vmap for a batch"
    )
    e = demonstrations.shape[1]
    chex.assert_shape(query, (e,), custom_message="one query [e]; use jax.vmap for several")
    chex.assert_shape(w_v, (e, e), custom_message="w_v is [e, e], e as the demonstrations")
    chex.assert_shape([w_k, w_q], (None, e), custom_message="w_k and w_q are [k, e]")
    log_kernel = scores((w_q @ query)[None], demonstrations @ w_k.T)[0]  # [n]
    log_normaliser = jax.nn.logsumexp(log_kernel)
    weights = jnp.exp(log_kernel - log_normaliser)
    return SoftmaxUpdate(demonstrations @ w_v.T, weights, log_normaliser)


def log_kernel_factors(keys: Array, query: Array) -> tuple[Array, Array, Array]:  # [n], [n], []
    """exp(x·z) = exp(|x|²/2) g(x, z) exp(|z|²/2), g(x, z) = exp(-|x - z|²/2), as logarithms.

    For projected keys [n, k] and one projected query [k]: the keys' sizes, the Gaussian kernel
    (nearness), the query's size. The last cancels in the weights (A2, Eq. 10; docs/theory, "Softmax
    as an implicit update").
    """
    chex.assert_rank(keys, 2, custom_message="keys are [n, k]")
    chex.assert_shape(query, (keys.shape[1],), custom_message="one query [k], k as the keys")
    distances = ((keys - query[None]) ** 2).sum(1)
    return (keys**2).sum(1) / 2, -distances / 2, query @ query / 2
