"""The linear map of each layer that is nearest to the stream of all tokens of a prompt.

A2's Theorem 1 needs h_t = W_t h_0 with the same W_t for all tokens of a prompt. Softmax, norm, MLP
and causal masks have no such W_t; the residual of the best one, by least squares, measures the
distance to the theorem. W_t differs from prompt to prompt even in linear attention, so tokens of
several prompts are never pooled.
"""

import chex
import flax.struct
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import check_factorable
from lsa_lab.estimators.least_squares import column_space, pseudo_inverse
from lsa_lab.models.trace import check_known
from lsa_lab.scaling import length


class CommonMap(flax.struct.PyTreeNode):
    """The best map of each layer and its residual, relative to lengths, not squares."""

    maps: Array  # [L+1, D, e]
    residual: Array  # [L+1]  |H_t - H_0 W_tᵀ|_F / |H_t|_F
    unexplained: Array  # [L+1]  |H_t - H_0 W_tᵀ|_F / |H_t - H_0|_F


def best_common_map(
    tokens: Array,  # [T, e]  the input
    stream: Array,  # [L+1, T, D]  of its Trace; D = e without a read-in
) -> CommonMap:
    """Return W_t = argmin Σ_tokens |h_t - W_t e|², by SVD, the shortest of several minimisers.

    A read-in is part of the map. At most e tokens always have a map, so more are needed; tokens in
    a subspace (labels without noise, queries) need only exceed its dimension. Every row counts:
    leave out padding and tokens that are much longer than all others. Directions of the tokens
    below the rounding of ``least_squares.column_space`` do not count.
    """
    _check(tokens, stream)
    left = column_space(tokens)[0]
    coordinates = jnp.einsum("tr,lti->lri", left, stream)
    maps = jnp.einsum("jt,lti->lij", pseudo_inverse(tokens), stream)
    missed = length(stream - jnp.einsum("tr,lri->lti", left, coordinates), (1, 2))
    # Layer 0 does not change: fused products and sums may give s x - s x other than 0.
    change = jnp.concatenate([jnp.zeros_like(stream[:1]), stream[1:] - stream[:1]])
    sizes, changes = length(stream, (1, 2)), length(change, (1, 2))
    return CommonMap(maps, _divide(missed, sizes), _divide(missed, changes))


def _divide(part: Array, whole: Array) -> Array:  # [L+1]
    return jnp.where(whole == 0, 0, part / jnp.where(whole == 0, 1, whole))  # NaN: NaN


def _check(tokens: Array, stream: Array) -> None:
    chex.assert_rank(tokens, 2, custom_message="tokens are [T, e]; use jax.vmap for a batch")
    check_factorable(tokens, "tokens")
    num_tokens, e = tokens.shape
    chex.assert_shape(
        stream, (None, num_tokens, None), custom_message="stream is [L+1, T, D], T as in tokens"
    )
    check_known(stream.shape[-1], "a common map")
    if num_tokens <= e:
        raise ValueError(
            f"{num_tokens} tokens of width {e} always have a common map; use more than {e} tokens"
        )
