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
from lsa_lab.arguments import as_floats, check_symmetric
from lsa_lab.models import linear_attention
from lsa_lab.models.blocks import head_gates, run_layers
from lsa_lab.models.linear_attention import Params, check_params
from lsa_lab.models.trace import predict

_LONG = 4  # demonstrations for each coordinate of a token: above, one product of them is enough
_NARROW = 25  # tokens of at most this width: products with the batch axis last beat batched matmuls


def layer_maps(
    params: Params,
    second_moment: Array,  # [e, e]
    head_mask: Array | None = None,  # [L, H]
) -> Array:  # [L+1, e, e]
    """Return the layer maps W_0 = I, ..., W_L of keys="demonstrations", normalised.

    Raises ValueError for a concrete ``second_moment`` that is not symmetric and semi-definite.
    """
    second_moment = as_floats(second_moment)
    num_layers, num_heads, *_ = _check(params, second_moment)
    gates = head_gates(head_mask, num_layers, num_heads, second_moment.dtype)
    return _layer_maps(params, second_moment, gates)


@jax.jit
def _layer_maps(params: Params, second_moment: Array, gates: Array) -> Array:
    def layer(w: Array, weights: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        w_kq, w_pv, gate = weights
        moment = w @ second_moment @ w.T
        update = gate[:, None, None] * (w_pv @ moment @ w_kq)
        w = w + update.sum(0) @ w
        return w, w

    identity = jnp.eye(len(second_moment), dtype=second_moment.dtype)
    weights = (params.w_kq, params.w_pv, gates)
    maps = run_layers(layer, identity, weights, heavy=False)
    return jnp.concatenate([identity[None], maps])


def predictions(params: Params, batch: prompts.Prompt, sign: float = -1.0) -> Array:  # [B]
    """Return ŷ for a batch of prompts (leading axis B), in the form that is fastest at their size.

    They are those of ``linear_attention.forward`` up to rounding; use that one to look inside.
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
    """Return options of ``jax.jit`` for ``predictions`` and its gradient, which run 5 times faster.

    XLA on CPU drops optimisation barriers before it fuses, and would compute each small product
    again in each of its readers. From jaxlib 0.12 on it keeps them apart by itself and cannot
    generate code for a barrier that stays. Other platforms generate no code for barriers. In
    jaxlib 0.10 loops that MLIR emits double the time of compilation and are switched off.
    """
    if jax.default_backend() != "cpu" or jax.__version_info__ >= (0, 12):
        return None
    is_old = jax.__version_info__ < (0, 11)
    emitters = {"xla_cpu_use_fusion_emitters": "False"} if is_old else {}
    return {"xla_disable_hlo_passes": "cse_barrier_expander"} | emitters


def compiled(function: Callable, **options: Any) -> Callable:
    """Compile as ``jax.jit`` does, with ``compiler_options``, at the first call.

    A module may use it when it is imported, before the platform is known. What it returns cannot be
    called inside another jit.
    """

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
    """Return ŷ from second moments alone, the batch axis last; differentiable in reverse mode.

    The first layer's moment needs no products of the batch. The last layer needs no layer map,
    because it moves only the label slot of the query.
    """
    num_layers, _, e, _ = params.w_kq.shape
    chex.assert_shape(second_moments, (e, e, None))
    chex.assert_shape(x_queries, (e - 1, second_moments.shape[-1]))
    maps: list[Array] = []  # W of the last layer reached; empty for the identity
    for t in range(num_layers - 1):
        maps = [_next_map(maps, second_moments, params.w_kq[t], params.w_pv[t])]
    query = jnp.pad(x_queries, ((0, 1), (0, 0)))[:, None]  # [e, 1, B]
    for w in maps:
        query = _product(w, query)
    queries = jnp.einsum("hef,fb->ehb", params.w_kq[-1], query[:, 0])
    for matrices in (*map(_transpose, maps), second_moments, *maps):  # S_L queries, without S_L
        queries = _product(matrices, queries)
    return sign * (query[-1, 0] + jnp.einsum("hf,fhb->b", params.w_pv[-1, :, -1], queries))


def _next_map(maps: list, second_moments: Array, w_kq: Array, w_pv: Array) -> Array:  # [e, e, B]
    """Return W + Σ_h (w_pv_h S)(w_kq_h W), the sum over heads and columns in one product."""
    num_heads, e, _ = w_kq.shape
    outs = w_pv.swapaxes(0, 1).reshape(e, num_heads * e)
    if not maps:
        identity = jnp.eye(e, dtype=second_moments.dtype)[:, :, None]
        right = jnp.einsum("ikb,hkj->hijb", second_moments, w_kq)
        return identity + _multiply_left(outs, right.reshape(num_heads * e, e, -1))
    (w,) = maps
    moment = _product(_product(w, second_moments), _transpose(w))
    left = _multiply_left(w_pv.reshape(num_heads * e, e), moment).reshape(num_heads, e, e, -1)
    left = left.swapaxes(0, 1).reshape(e, num_heads * e, -1)
    return w + _product(left, _multiply_left(w_kq.reshape(num_heads * e, e), w))


@jax.custom_vjp
def _product(a: Array, b: Array) -> Array:  # [i, k, B], [k, j, B] -> [i, j, B]
    """Return a matrix product for every entry of the last axis.

    It is written out over k, because XLA turns an einsum back into a batch-major matmul. The
    barrier (``compiler_options``) stops XLA from computing it again in each reader. The derivative
    is two products, where the automatic one is a long sum of padded slices.
    """
    return jax.lax.optimization_barrier(sum(a[:, k, None] * b[None, k] for k in range(a.shape[1])))


_product.defvjp(
    lambda a, b: (_product(a, b), (a, b)),
    lambda ab, out: (_product(out, _transpose(ab[1])), _product(_transpose(ab[0]), out)),
)


def _transpose(matrices: Array) -> Array:  # [i, k, B] -> [k, i, B]
    return matrices.swapaxes(0, 1)


def _multiply_left(matrix: Array, b: Array) -> Array:  # [i, k], [k, j, B] -> [i, j, B]
    """Return the product of one matrix with each of many."""
    return (matrix @ b.reshape(b.shape[0], -1)).reshape(-1, *b.shape[1:])  # no einsum: it turns b


def _check(params: Params, second_moment: Array) -> tuple[int, ...]:
    check_params(params, "the moment form")
    chex.assert_rank(params.w_kq, 4, custom_message="weights are [L, H, e, e]")
    e = params.w_kq.shape[-1]
    chex.assert_shape(second_moment, (e, e), custom_message="S_0 has the width of the weights")
    if jnp.finfo(second_moment.dtype).bits >= 32:
        check_symmetric(second_moment, "second_moment")
    return params.w_kq.shape
