"""Flows: from demonstrations or any tokens, to predictions, query tokens and other readings."""

import functools
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab import prompts
from lsa_lab.arguments import check_at_least, map_rows, side_by_side
from lsa_lab.models import linear_attention, moments
from lsa_lab.models.blocks import gated, head_gates
from lsa_lab.models.trace import Trace, check_stream, layer_predictions, predict
from lsa_lab.prompts import Prompt

Forward = Callable[..., Trace]  # (params, tokens [T, e]) -> Trace
Read = Callable[[Array], Array]  # tokens [T, D] -> [L], a number for each layer, or for a few

# Demonstrations for each coordinate of a token. From about 3 on the way through the moment is the
# shorter one; prompts of experiments are shorter than 8, and keep the bits of the tokens' way.
_LONG = 8


def flow(read: Read, tokens: Array, *, together: int | None = None) -> Array:  # [L, T, D]
    """∂ read(tokens)_l / ∂ token_i: the flow from every token to what ``read`` makes of each layer.

    One reverse pass with L cotangents, ``together`` of them at a time if all are too large; what
    ``read`` does not return costs no pass. Where tokens hold fewer than L numbers, a forward pass.
    """
    chex.assert_rank(tokens, 2, custom_message="tokens are one prompt's [T, D]; use jax.vmap")
    shape = jax.eval_shape(read, tokens).shape
    if len(shape) != 1:
        raise ValueError(f"read returned shape {shape}: it is [L], one number for each layer")
    if together is None:
        return _jacobian(read, tokens)
    check_at_least(together, "together")
    numbers, pull = jax.vjp(read, tokens)
    basis = jnp.eye(len(numbers), dtype=numbers.dtype)
    return map_rows(lambda cotangent: pull(cotangent)[0], basis, together)


def demonstration_flow(
    forward: Forward, params: chex.ArrayTree, prompt: Prompt, sign: float = -1.0
) -> Array:  # [L, n, e]
    """∂ŷ_t/∂e_i for the prediction ŷ_t of every layer t ≥ 1 and every token e_i = [x_i, y_i].

    One reverse pass with L cotangents, or, where the demonstrations hold fewer than L numbers, one
    forward pass with n·e tangents: never a pass for each demonstration of a long prompt. Long
    prompts of ``linear_attention.forward``, as it is or with a ``head_mask``, take ``moment_flow``.
    Of a softmax transformer the time grows with n², the memory above 256 tokens with n.
    """
    merged = _merged(forward, params, prompt)
    if merged is not None:
        return moment_flow(merged, prompt, sign)

    def read(demonstrations: Array) -> Array:  # [L]
        return layer_predictions(_run(forward, params, prompt, demonstrations), sign)[1:]

    return flow(read, _demonstrations(prompt))


def token_flow(
    forward: Forward, params: chex.ArrayTree, prompt: Prompt
) -> Array:  # [L, n, e, D]; D = e without a read-in
    """∂h_t/∂e_i for the query's row h_t of the stream after every layer t ≥ 1.

    Entry [t-1, i, a, b] is ∂(h_t)_b/∂(e_i)_a, so that A1's Eq. 2, J = ∂h/∂d with the output first,
    is a transposed slice, and the last entry of D, times the sign of the read-out and without a
    read-in, is ``demonstration_flow``. L·D reverse or n·e forward passes, whichever are fewer: only
    prompts shorter than about L go forward, and a model with a ``custom_vjp`` cannot. Long prompts
    of ``linear_attention.forward`` take ``moment_token_flow``.
    """
    merged = _merged(forward, params, prompt)
    if merged is not None:
        return moment_token_flow(merged, prompt)

    def read(demonstrations: Array) -> Array:  # [L, D]
        stream = _run(forward, params, prompt, demonstrations).stream
        check_stream(stream.shape[-1], "token_flow")
        return stream[1:, -1]

    return jnp.moveaxis(_jacobian(read, _demonstrations(prompt)), 1, -1)


def moment_flow(
    params: linear_attention.Params, prompt: Prompt, sign: float = -1.0
) -> Array:  # [L, n, e]
    """``demonstration_flow`` of masked, normalised linear attention, through the second moment.

    ŷ_t depends on the demonstrations through S_0 = (1/n) Σ_i e_i e_iᵀ alone, so ∂ŷ_t/∂e_i =
    (1/n) (G + Gᵀ) e_i with G = ∂ŷ_t/∂S_0 (derived here from docs/theory, "The flow through the
    moment"). Only forming S_0 and this product cost more when n grows.
    """
    return _through_the_moment(params, prompt, lambda stream: sign * stream[:, -1])


def moment_token_flow(
    params: linear_attention.Params, prompt: Prompt
) -> Array:  # [L, n, e, e], axes as in token_flow
    """``token_flow`` of masked, normalised linear attention, through the second moment."""
    return jnp.moveaxis(_through_the_moment(params, prompt, lambda stream: stream), 1, -1)


def interactions(
    forward: Forward,
    params: chex.ArrayTree,
    prompt: Prompt,
    sign: float = -1.0,
    *,
    together: int | None = None,
) -> Array:  # [n, n]
    """∂²ŷ/∂α_i∂α_j = e_iᵀ (∂²ŷ/∂e_i∂e_j) e_j at α = 1, demonstration i entering as α_i e_i.

    Positive where one demonstration helps another to raise ŷ, and zero between demonstrations that
    add up, as all do in one linear layer. Closing a gate removes a demonstration from merged linear
    attention (n unchanged); softmax still reads the zero token that is left. n Hessian-vector
    products of one linearisation, forward over reverse, ``together`` of them at a time. Defined
    here; the measure is not A1's.
    """
    demonstrations = _demonstrations(prompt)
    num = demonstrations.shape[0]

    def read(gates: Array) -> Array:  # [n] -> []
        return predict(_run(forward, params, prompt, gates[:, None] * demonstrations), sign)

    width = side_by_side(together, 32)
    ones = jnp.ones(num, demonstrations.dtype)
    _, product = jax.linearize(jax.grad(read), ones)
    return map_rows(product, jnp.diag(ones), min(num, width))


def _merged(
    forward: Forward, params: chex.ArrayTree, prompt: Prompt
) -> linear_attention.Params | None:
    """The weights, heads gated, where the moment carries the flow and is the shorter way."""
    exact = {"keys": "demonstrations", "normalise": True}
    options: dict = exact
    inner: Any = forward
    if isinstance(inner, functools.partial) and not inner.args:
        inner, options = inner.func, exact | inner.keywords
    mask = options.get("head_mask")
    merged = inner is linear_attention.forward and isinstance(params, linear_attention.Params)
    if not merged or {name: options[name] for name in options if name != "head_mask"} != exact:
        return None
    num_layers, num_heads, e, _ = params.w_kq.shape
    if prompt.x.shape[0] < _LONG * e:
        return None
    return params.replace(
        w_pv=gated(head_gates(mask, num_layers, num_heads, params.w_pv.dtype), params.w_pv)
    )


def _through_the_moment(
    params: linear_attention.Params, prompt: Prompt, read: Callable[[Array], Array]
) -> Array:  # [L, ..., n, e]
    demonstrations = _demonstrations(prompt)
    query = prompts.tokens(prompt)[-1]

    def written(second_moment: Array) -> Array:  # [L, ...]
        return read(moments.layer_maps(params, second_moment)[1:] @ query)

    slopes = _jacobian(written, prompts.second_moment(prompt))  # [L, ..., e, e]
    symmetric = (slopes + slopes.swapaxes(-1, -2)) / demonstrations.shape[0]
    return jnp.einsum("ia,...ba->...ib", demonstrations, symmetric)


def _jacobian(function: Callable[[Array], Array], point: Array) -> Array:  # outputs first
    """The derivative, outputs first, by whichever mode needs fewer passes."""
    outputs = jax.eval_shape(function, point)
    if point.size < outputs.size:
        return jax.jacfwd(function)(point)
    numbers, pull = jax.vjp(function, point)
    basis = jnp.eye(numbers.size, dtype=numbers.dtype).reshape(-1, *numbers.shape)
    # ``jax.jacrev`` outside of jit would spend most of its time on printing what ``pull`` holds.
    slopes = jax.vmap(lambda cotangent: pull(cotangent)[0])(basis)
    return slopes.reshape(*numbers.shape, *point.shape)


def _demonstrations(prompt: Prompt) -> Array:  # [n, e]
    prompts.check(prompt)
    if prompt.x.shape[0] == 0:
        raise ValueError("x has no rows: a flow comes from at least one demonstration")
    return prompts.tokens(prompt)[:-1]


def _run(forward: Forward, params: chex.ArrayTree, prompt: Prompt, demonstrations: Array) -> Trace:
    trace = forward(params, jnp.concatenate([demonstrations, prompts.tokens(prompt)[-1:]]))
    if not isinstance(trace, Trace):
        raise TypeError(
            f"forward returned {type(trace).__name__}, not the Trace of a model: give "
            "linear_attention.forward, functools.partial(transformer.forward, config=config), or "
            "interop.as_forward(function), and use amplification.flow(read, tokens) where there is "
            "no label slot"
        )
    return trace
