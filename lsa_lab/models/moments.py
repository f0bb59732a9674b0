"""Masked linear attention as a recursion on the second moment of its demonstrations.

Every token of the stream is one common matrix times the token it was: e_i^(l) = W_l e_i. So

    W_{l+1} = W_l + Σ_h w_pv_h S_l w_kq_h W_l,    S_l = W_l S_0 W_lᵀ,    W_0 = I,

and S_0 = (1/n) Σ_i e_i e_iᵀ is all that the model ever learns of its demonstrations (A2, Theorem 1
in the sharper form derived here; docs/theory, "Moments suffice"). The cost does not depend on n.
"""

import functools
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab import prompts
from lsa_lab.arguments import as_floats, is_concrete
from lsa_lab.models import linear_attention
from lsa_lab.models.blocks import gated, head_gates, run_layers
from lsa_lab.models.linear_attention import Params, check_params
from lsa_lab.models.trace import predict

_LONG = 4  # demonstrations for each coordinate of a token: above, one product of them is enough
_NARROW = 25  # tokens of at most this width: products with the batch axis last beat batched matmuls


def layer_maps(
    params: Params,
    second_moment: Array,  # [e, e]
    head_mask: Array | None = None,  # [L, H]
) -> Array:  # [L+1, e, e]
    """The layer maps W_0 = I, ..., W_L of keys="demonstrations", normalised."""
    second_moment = as_floats(second_moment)
    num_layers, num_heads, *_ = _check(params, second_moment)
    gates = head_gates(head_mask, num_layers, num_heads, second_moment.dtype)
    return _layer_maps(params, second_moment, gates)


@jax.jit
def _layer_maps(params: Params, second_moment: Array, gates: Array) -> Array:
    def layer(w: Array, weights: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        w_kq, w_pv, gate = weights
        moment = w @ second_moment @ w.T
        update = gated(gate, w_pv @ moment @ w_kq)
        w = w + update.sum(0) @ w
        return w, w

    identity = jnp.eye(len(second_moment), dtype=second_moment.dtype)
    weights = (params.w_kq, params.w_pv, gates)
    maps = run_layers(layer, identity, weights, heavy=False)
    return jnp.concatenate([identity[None], maps])


def predictions(params: Params, batch: prompts.Prompt, sign: float = -1.0) -> Array:  # [B]
    """ŷ for a batch of prompts (leading axis B), in whichever form is fastest at their size.

    The same numbers as ``linear_attention.forward`` up to rounding; use that one to look inside.
    """
    if len(params.w_kq) == 1 or batch.x.shape[-1] + 1 <= _NARROW:  # one layer: only matvecs
        return predictions_from_moments(
            params, prompts.second_moments(batch), batch.x_query.T, sign
        )

    if batch.x.shape[-2] >= _LONG * (batch.x.shape[-1] + 1):

        def from_moment(prompt: prompts.Prompt) -> Array:
            w = layer_maps(params, prompts.second_moment(prompt))[-1]
            return sign * (w[-1, :-1] @ prompt.x_query)

        return jax.vmap(from_moment)(batch)

    def from_tokens(prompt: prompts.Prompt) -> Array:
        return predict(linear_attention.forward(params, prompts.tokens(prompt)), sign)

    return jax.vmap(from_tokens)(batch)


def compiler_options() -> dict[str, str] | None:
    """Options of the jit around ``predictions`` or its gradient: 5 times faster, the same numbers.

    On CPU XLA drops optimisation barriers before it fuses, and would compute each small product
    again in each of its readers; from jaxlib 0.12 on it keeps them apart by itself, and cannot
    generate code for a barrier that stays. Other platforms' code generators know no barriers.
    """
    drops = jax.default_backend() == "cpu" and jax.__version_info__ < (0, 12)
    return {"xla_disable_hlo_passes": "cse_barrier_expander"} if drops else None


def compiled(function: Callable, **options: Any) -> Callable:
    """``jax.jit`` with ``compiler_options``: for what a module compiles, which when it is imported
    does not know the platform. It cannot be called inside another jit."""

    @functools.cache
    def program() -> Callable:
        return jax.jit(function, compiler_options=compiler_options(), **options)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return program()(*args, **kwargs)

    return call


def predictions_from_moments(
    params: Params,
    second_moments: Array,  # [e, e, B]
    x_queries: Array,  # [d, B]
    sign: float = -1.0,
) -> Array:  # [B]
    """ŷ from second moments alone, with the batch axis last; differentiable in reverse mode.

    The first layer's moment needs no products of the batch. The last layer needs no layer map: it
    moves only the query, and only the query's label slot.
    """
    num_layers, _, e, _ = params.w_kq.shape
    chex.assert_shape(second_moments, (e, e, None))
    chex.assert_shape(x_queries, (e - 1, second_moments.shape[-1]))
    maps: list[Array] = []  # W of the last layer reached; none stands for the identity
    for t in range(num_layers - 1):
        maps = [_next_map(maps, second_moments, params.w_kq[t], params.w_pv[t])]
    query = jnp.pad(x_queries, ((0, 1), (0, 0)))[:, None]  # [e, 1, B]
    for w in maps:
        query = _product(w, query)
    queries = jnp.einsum("hef,fb->ehb", params.w_kq[-1], query[:, 0])
    for matrices in (*map(_turned, maps), second_moments, *maps):  # S_L queries, without S_L
        queries = _product(matrices, queries)
    return sign * (query[-1, 0] + jnp.einsum("hf,fhb->b", params.w_pv[-1, :, -1], queries))


def _next_map(maps: list, second_moments: Array, w_kq: Array, w_pv: Array) -> Array:  # [e, e, B]
    """W + Σ_h (w_pv_h S)(w_kq_h W), the sum over heads and columns being one product."""
    num_heads, e, _ = w_kq.shape
    outs = w_pv.swapaxes(0, 1).reshape(e, num_heads * e)
    if not maps:
        identity = jnp.eye(e, dtype=second_moments.dtype)[:, :, None]
        right = jnp.einsum("ikb,hkj->hijb", second_moments, w_kq)
        return identity + _left(outs, right.reshape(num_heads * e, e, -1))
    (w,) = maps
    moment = _product(_product(w, second_moments), _turned(w))
    left = _left(w_pv.reshape(num_heads * e, e), moment).reshape(num_heads, e, e, -1)
    left = left.swapaxes(0, 1).reshape(e, num_heads * e, -1)
    return w + _product(left, _left(w_kq.reshape(num_heads * e, e), w))


@jax.custom_vjp
def _product(a: Array, b: Array) -> Array:  # [i, k, B], [k, j, B] -> [i, j, B]
    """A matrix product for every entry of the last axis.

    Written out over k, for XLA turns an einsum back into a batch-major matmul; kept apart from its
    neighbours, for it would be computed again in each of them (on CPU only where the barrier
    survives: ``compiler_options``); with its derivative written as two products, for the
    automatic one is a long sum of padded slices.
    """
    return jax.lax.optimization_barrier(sum(a[:, k, None] * b[None, k] for k in range(a.shape[1])))


_product.defvjp(
    lambda a, b: (_product(a, b), (a, b)),
    lambda ab, out: (_product(out, _turned(ab[1])), _product(_turned(ab[0]), out)),
)


def _turned(matrices: Array) -> Array:  # [i, k, B] -> [k, i, B]
    return matrices.swapaxes(0, 1)


def _left(matrix: Array, b: Array) -> Array:  # [i, k], [k, j, B] -> [i, j, B]
    return (matrix @ b.reshape(b.shape[0], -1)).reshape(-1, *b.shape[1:])  # no einsum: it turns b


def _check(params: Params, second_moment: Array) -> tuple[int, ...]:
    check_params(params, "the moment form")
    chex.assert_rank(params.w_kq, 4, custom_message="weights are [L, H, e, e]")
    e = params.w_kq.shape[-1]
    chex.assert_shape(second_moment, (e, e), custom_message="S_0 has the width of the weights")
    if is_concrete(second_moment):
        _check_moment(second_moment)
    return params.w_kq.shape


def _check_moment(second_moment: Array) -> None:
    scale = jnp.abs(second_moment).max()
    tolerance = float(scale * jnp.finfo(second_moment.dtype).eps * 100)
    if not jnp.isfinite(scale):
        raise ValueError("second_moment has entries that are not finite")
    asymmetry = float(jnp.abs(second_moment - second_moment.T).max())
    if asymmetry > tolerance:
        raise ValueError(f"second_moment is not symmetric: entries differ by {asymmetry:.1e}")
    smallest = float(jnp.linalg.eigvalsh(second_moment.astype(float))[0])
    if smallest < -tolerance:
        raise ValueError(f"second_moment has a negative eigenvalue {smallest:.1e}")
