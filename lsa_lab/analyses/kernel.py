"""The implicit update of softmax attention, through its kernel, for each query (A2, A.2).

With k(x, z) = exp(x·z) = φ(x)·φ(z), a head takes the query q to

    q + (1/Z(q)) Σ_i k(W_K h_i, W_Q q) W_V h_i = q + ΔW φ(W_Q q),
    ΔW = (1/Z(q)) Σ_i W_V h_i ⊗ φ(W_K h_i),    Z(q) = Σ_j k(W_K h_j, W_Q q).

φ has infinitely many coordinates and Z depends on the query, so this is no single linear map and
gives no recursion for W_t (docs/theory, "Softmax as an implicit update"). The form above is exact
for each query.
"""

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.models.blocks import scores


class SoftmaxUpdate(flax.struct.PyTreeNode):
    """The output of one head for one query is Σ_i weights_i values_i."""

    values: Array  # [n, e]  W_V h_i
    weights: Array  # [n]  k(W_K h_i, W_Q q) / Z(q)
    log_normaliser: Array  # []  log Z(q)

    @property
    def written(self) -> Array:  # [e]
        """Return ΔW φ(W_Q q)."""
        return self.weights @ self.values


def softmax_update(
    w_v: Array,  # [e, e]  W_O W_V where they are factored
    w_k: Array,  # [k, e]
    w_q: Array,  # [k, e]
    demonstrations: Array,  # [n, e]  of the stream before the layer, after its norm if it has one
    query: Array,  # [e]  likewise
) -> SoftmaxUpdate:
    """Return the weighted demonstrations and the normaliser of one head for one query.

    The query is no key. The outputs of heads add up; any token may be the query. Biases and rotary
    positions are not covered: with them W_K and W_Q differ from token to token.
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
