"""Linear attention with merged weights: the object of the theorems.

One layer adds to token t

    (1/n) Σ_h Σ_i (e_i · w_kq_h e_t) w_pv_h e_i = Σ_h w_pv_h S w_kq_h e_t,  S = (1/n) Σ_i e_i e_iᵀ,

with i running over the keys that t may read (von Oswald et al. 2212.07677, Ahn et al. 2306.00297,
Zhang et al. 2306.09927; docs/theory, "Linear attention"). The right-hand side never forms the
attention matrix, so time and memory are linear in n; the left-hand side takes over where wide
tokens are few.

    >>> from lsa_lab.models import constructions, trace
    >>> tokens = jnp.array([[1.0, 2.0], [-1.0, -2.0], [3.0, 0.0]])  # y = 2x, and the query x = 3
    >>> two_steps = constructions.gradient_descent(jnp.full(2, 0.5), d=1)
    >>> layers = forward(two_steps, tokens)
    >>> print(trace.layer_predictions(layers)[1:])  # w = 1, then w = 1.5
    [3.  4.5]
    >>> print(attention(two_steps, layers)[0, 0, -1])  # the scores of the query
    [ 0.75 -0.75  0.  ]
"""

import functools
from typing import Any

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike

from lsa_lab.arguments import check_at_least, check_choice, check_range
from lsa_lab.models.blocks import (
    Keys,
    attention_weights,
    check_tokens,
    head_gates,
    key_mask,
    read_causally,
    run_layers,
)
from lsa_lab.models.trace import Trace, Walk, collect


class Params(flax.struct.PyTreeNode):
    """Key-query and projection-value products, w_kq = W_Kᵀ W_Q and w_pv = W_O W_V, per head."""

    w_kq: Array  # [L, H, e, e]
    w_pv: Array  # [L, H, e, e]


def init(
    key: Array,
    num_layers: int,
    num_heads: int,
    d: int,
    scale: float = 0.02,
    dtype: DTypeLike | None = None,
) -> Params:
    """Draw Gaussian weights of standard deviation ``scale``."""
    for name, count in (("num_layers", num_layers), ("num_heads", num_heads), ("d", d)):
        check_at_least(count, name)
    check_range(scale, "scale")
    spread = jnp.asarray(scale, float if dtype is None else dtype)  # NumPy's would widen a dtype
    key_kq, key_pv = jax.random.split(key)
    shape = (num_layers, num_heads, d + 1, d + 1)
    return Params(
        w_kq=spread * jax.random.normal(key_kq, shape, dtype),
        w_pv=spread * jax.random.normal(key_pv, shape, dtype),
    )


def forward(
    params: Params,
    tokens: Array,  # [T, e], the query last
    *,
    keys: Keys = "demonstrations",
    normalise: bool = True,
    head_mask: Array | None = None,  # [L, H]
) -> Trace:
    """Run every layer and return the stream and the heads' writes.

    Args:
        keys: "demonstrations", every token reads all demonstrations and none reads the query;
            "all", the query is a key too; "causal", demonstration i reads demonstrations 1..i and
            the query reads all of them.
        normalise: divide by the number n of demonstrations, whatever the mask.
        head_mask: a factor for what each head writes.

    Raises:
        ValueError, TypeError, AssertionError: tokens, weights or mask have a wrong shape or dtype.
    """
    _check(params, tokens, keys)
    num_layers, num_heads = params.w_kq.shape[:2]
    gates = head_gates(head_mask, num_layers, num_heads, tokens.dtype)
    return _forward(params, tokens, gates, keys, normalise)


@functools.partial(jax.jit, static_argnames=("keys", "normalise"))
def _forward(params: Params, tokens: Array, gates: Array, keys: Keys, normalise: bool) -> Trace:
    scale = 1.0 / (tokens.shape[0] - 1) if normalise else 1.0

    def layer(stream: Array, weights: tuple[Array, Array, Array]) -> tuple[Array, tuple]:
        w_kq, w_pv, gate = weights
        w_pv = (scale * gate)[:, None, None] * w_pv
        if keys == "causal":
            total, heads = _causal_heads(stream, w_kq, w_pv)
        else:
            readable = stream if keys == "all" else stream[:-1]
            total, heads = _bidirectional_heads(stream, readable, w_kq, w_pv)
        stream = stream + total
        return stream, (stream, heads)

    later, heads = run_layers(
        layer, tokens, (params.w_kq, params.w_pv, gates), heavy=keys == "causal"
    )
    return collect(tokens, later, heads)


def mix_heads(params: Params, mixing: Array) -> Params:  # mixing [L, H, H]
    """Mix heads by an invertible A: w_pv'_h = Σ_k A_hk w_pv_k and w_kq'_h = Σ_k (A⁻ᵀ)_hk w_kq_k.

    The stack computes the same (docs/theory, "Heads are not unique").
    """
    return Params(
        w_kq=jnp.einsum("lkh,lkef->lhef", jnp.linalg.inv(mixing), params.w_kq),
        w_pv=jnp.einsum("lhk,lkef->lhef", mixing, params.w_pv),
    )


def check_params(params: Any, what: str) -> None:
    """Raise unless a model is merged linear attention, the only one with common layer maps."""
    if not isinstance(params, Params):
        name = f"{type(params).__module__}.{type(params).__qualname__}"
        raise TypeError(
            f"{what} exists for linear_attention.Params, not {name}: softmax, norms, MLPs and "
            "causal masks have no common layer map; merge plain linear heads with transformer.merge"
        )


def attention(
    params: Params, trace: Walk, *, keys: Keys = "demonstrations", normalise: bool = True
) -> Array:  # [L, H, T, T]
    """Return the scores (1/n) e_i · w_kq e_t with which token t (third axis) reads token i."""
    before = trace.stream[:-1]
    scale = 1.0 / (before.shape[1] - 1) if normalise else 1.0
    queries = scale * jnp.einsum("lhef,ltf->lhte", params.w_kq, before)
    mask = key_mask(keys, before.shape[1])
    return attention_weights(queries, before[:, None], mask, "linear")


def _bidirectional_heads(
    stream: Array, readable: Array, w_kq: Array, w_pv: Array
) -> tuple[Array, Array]:  # [T, e], [H, T, e]
    """Return what all heads write together, and each of them.

    All tokens share one moment, hence one matrix per head, and heads are summed before they touch a
    token. Up to e keys their scores cost less: a loss takes 0.2 to 1 of the time at widths 4 to 33.
    """
    if len(readable) <= readable.shape[1]:
        queries = jnp.einsum("hef,tf->hte", w_kq, stream)
        return _apply_writes(w_pv, queries @ readable.T @ readable)
    maps = w_pv @ (readable.T @ readable) @ w_kq  # [H, e, e]
    return stream @ maps.sum(0).T, jnp.einsum("te,hfe->htf", stream, maps)


def _causal_heads(stream: Array, w_kq: Array, w_pv: Array) -> tuple[Array, Array]:
    """Return the causal writes; the row of the query is no key, so it is zero as a key."""
    keys = stream.at[-1].set(0)
    queries = jnp.einsum("hef,tf->hte", w_kq, stream)
    read = jax.vmap(read_causally, in_axes=(0, None, None))(queries, keys, stream)
    return _apply_writes(w_pv, read)


def _apply_writes(w_pv: Array, read: Array) -> tuple[Array, Array]:  # [T, e], [H, T, e]
    return jnp.einsum("hfe,hte->tf", w_pv, read), jnp.einsum("hfe,hte->htf", w_pv, read)


def _check(params: Params, tokens: Array, keys: str) -> None:
    check_tokens(tokens)
    if tokens.shape[0] < 2:
        raise ValueError(f"tokens has {tokens.shape[0]} rows; a query needs a demonstration")
    num_layers, num_heads = params.w_kq.shape[:2]
    expected = (num_layers, num_heads, tokens.shape[1], tokens.shape[1])
    chex.assert_shape(
        [params.w_kq, params.w_pv], expected, custom_message="weights are [L, H, e, e], e as tokens"
    )
    check_choice(keys, "keys", Keys)
