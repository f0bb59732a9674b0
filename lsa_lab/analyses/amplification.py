"""The flow from each demonstration to the answer, layer by layer, and how much its order sharpens.

A1 measures a demonstration by the gradient that flows from it to the prediction, and holds that
depth enlarges the ratio between a strong demonstration and a weak one (docs/theory, "The
amplification theorem"). The flow is a derivative and exists for every model; the ratio is a number
to look at, not a theorem. Shares of the total, and fractions over many prompts, are in
``disparity``.

Everywhere ``forward(params, tokens)`` takes the merged tokens of ``prompts.tokens``: a model with a
config comes as ``functools.partial(transformer.forward, config=config)``, a mask likewise, and a
model of interleaved tokens after a function that interleaves them.
"""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab import prompts
from lsa_lab.models import linear_attention, moments
from lsa_lab.models.trace import Trace, check_stream, layer_predictions, predict
from lsa_lab.prompts import Prompt

Forward = Callable[..., Trace]  # (params, tokens [T, e]) -> Trace

_TOGETHER = 32  # Hessian-vector products that are in memory at once


def demonstration_flow(
    forward: Forward, params: chex.ArrayTree, prompt: Prompt, sign: float = -1.0
) -> Array:  # [L, n, e]
    """∂ŷ_t/∂e_i for the prediction ŷ_t of every layer t ≥ 1 and every token e_i = [x_i, y_i].

    One reverse pass with L cotangents, or, where the demonstrations hold fewer than L numbers, one
    forward pass with n·e tangents: never a pass for each demonstration of a long prompt.
    """

    def read(demonstrations: Array) -> Array:  # [L]
        return layer_predictions(_run(forward, params, prompt, demonstrations), sign)[1:]

    return _jacobian(read, _demonstrations(prompt))


def token_flow(
    forward: Forward, params: chex.ArrayTree, prompt: Prompt
) -> Array:  # [L, n, e, D]; D = e without a read-in
    """∂h_t/∂e_i for the query's row h_t of the stream after every layer t ≥ 1.

    Entry [t-1, i, a, b] is ∂(h_t)_b/∂(e_i)_a, so that A1's Eq. 2, J = ∂h/∂d with the output first,
    is a transposed slice, and the last entry of D, times the sign of the read-out and without a
    read-in, is ``demonstration_flow``. L·D reverse or n·e forward passes, whichever are fewer: only
    prompts shorter than about L go forward, and a model with a ``custom_vjp`` cannot.
    """

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


def log_sizes(flow: Array) -> Array:  # [L, n]
    """log |flow_i| in every layer, -∞ where nothing flows; no square overflows or vanishes."""
    chex.assert_rank(
        flow,
        3,
        custom_message="a flow is [L, n, e]; use jax.vmap for a batch of prompts, and give the "
        "flow to the whole query token as flow.reshape(L, n, -1)",
    )
    largest = jax.lax.stop_gradient(jnp.abs(flow).max(-1))
    scale = jnp.where(jnp.isfinite(largest) & (largest > 0), largest, 1)
    return jnp.log(scale) + jnp.log(jnp.linalg.norm(flow / scale[..., None], axis=-1))


def log_ratio(flow: Array) -> Array:  # [L]
    """log |flow_i| - log |flow_j| in every layer, i strongest and j weakest at the first.

    Of two demonstrations this is the logarithm of A1's G_l(d_1)/G_l(d_2), d_1 being the one that is
    ahead after one layer: it starts at or above 0, amplification is its growth, and below 0 the
    order has flipped. Infinite or NaN where a flow is zero or has overflown. The demonstrations
    may share a prompt or, as A1's do, be alone in prompts of their own, their flows stacked.
    """
    logs = _compared(flow)
    order = jnp.argsort(logs[0])  # a NaN comes last and makes the first layer's ratio NaN
    return logs[:, order[-1]] - logs[:, order[0]]


def amplification_ratio(flow: Array) -> Array:  # [L]
    """exp ``log_ratio``: |flow_i| / |flow_j|, A1's G_l(d_1)/G_l(d_2).

    docs/theory, "The amplification theorem".
    """
    return jnp.exp(log_ratio(flow))


def interactions(
    forward: Forward, params: chex.ArrayTree, prompt: Prompt, sign: float = -1.0
) -> Array:  # [n, n]
    """∂²ŷ/∂α_i∂α_j = e_iᵀ (∂²ŷ/∂e_i∂e_j) e_j at α = 1, demonstration i entering as α_i e_i.

    Positive where one demonstration helps another to raise ŷ, and zero between demonstrations that
    add up, as all do in one linear layer. Closing a gate removes a demonstration from merged linear
    attention (n unchanged); softmax still reads the zero token that is left. n Hessian-vector
    products, forward over reverse, of one linearisation. Defined here; the measure is not A1's.
    """
    demonstrations = _demonstrations(prompt)
    num = demonstrations.shape[0]

    def read(gates: Array) -> Array:  # [n] -> []
        return predict(_run(forward, params, prompt, gates[:, None] * demonstrations), sign)

    ones = jnp.ones(num, demonstrations.dtype)
    _, product = jax.linearize(jax.grad(read), ones)
    return jax.lax.map(product, jnp.diag(ones), batch_size=min(num, _TOGETHER))


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
    outputs = jax.eval_shape(function, point).size
    return (jax.jacfwd if point.size < outputs else jax.jacrev)(function)(point)


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
            "interop.as_forward(function)"
        )
    return trace


def _compared(flow: Array) -> Array:  # [L, n]
    logs = log_sizes(flow)
    if logs.shape[1] < 2:
        raise ValueError("flow has n = 1: a ratio compares at least two demonstrations")
    return logs
