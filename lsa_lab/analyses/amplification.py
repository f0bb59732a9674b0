"""The gradient that flows from each demonstration to the prediction, layer by layer.

A1 measures a demonstration by this flow, and proves that depth enlarges the ratio between a strong
demonstration and a weak one (docs/theory, "The amplification theorem"). The flow is a derivative
and exists for every model; for other models the ratio is a measurement, not a theorem. Shares of
the total, and fractions over many prompts, are in ``disparity``.

``forward(params, tokens)`` takes the merged tokens of ``prompts.tokens``; a config is bound by
``functools.partial(transformer.forward, config=config)``, and a mask likewise. A model without a
label slot is read by a function ``read``, and its demonstrations are spans of tokens:

    def read(stream):  # the margin of two words of a decoder at the last token, by layer
        rows = decoder.forward(params, stream, config).stream[1:, last]
        return decoder.logits(params, rows, config) @ words  # [L]

    logs = log_sizes(flow(read, decoder.embed(params, ids, config)), spans)
"""

from collections.abc import Callable, Sequence

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab import prompts
from lsa_lab.arguments import check_finite, is_concrete
from lsa_lab.models import linear_attention, moments
from lsa_lab.models.trace import Trace, check_known, layer_predictions
from lsa_lab.prompts import Prompt

Forward = Callable[..., Trace]  # (params, tokens [T, e]) -> Trace
Read = Callable[[Array], Array]  # tokens [T, D] -> [L], a number for each layer, or for a few
Spans = ArrayLike | Sequence[tuple[int, int]]  # [n, 2]: first token, and the one after the last


def flow(read: Read, tokens: Array) -> Array:  # [L, T, D]
    """Return ∂ read(tokens)_l / ∂ token_i, the flow from every token to a reading of each layer.

    One reverse pass with L cotangents. Where tokens hold fewer than L numbers, a forward pass.
    """
    chex.assert_rank(tokens, 2, custom_message="tokens are one prompt's [T, D]; use jax.vmap")
    shape = jax.eval_shape(read, tokens).shape
    if len(shape) != 1:
        raise ValueError(f"read returned shape {shape}: it is [L], one number for each layer")
    return _compute_jacobian(read, tokens)


def demonstration_flow(
    forward: Forward, params: chex.ArrayTree, prompt: Prompt, sign: float = -1.0
) -> Array:  # [L, n, e]
    """Return ∂ŷ_t/∂e_i for the prediction ŷ_t of every layer t ≥ 1 and every e_i = [x_i, y_i].

    Args:
        forward: (params, tokens [n+1, e]) -> Trace.
        params: weights of one model.
        prompt: one prompt with a demonstration or more; use ``jax.vmap`` for a batch.
        sign: that of the read-out.

    Returns:
        [L, n, e], by one reverse pass with L cotangents or one forward pass with n e tangents,
        whichever has fewer. The time of a softmax transformer grows with n². For long prompts of
        linear attention ``moment_flow`` is faster.

    Raises:
        TypeError: ``forward`` returns no Trace.
        ValueError: the prompt has no demonstrations.
    """

    def read(demonstrations: Array) -> Array:  # [L]
        return layer_predictions(_run(forward, params, prompt, demonstrations), sign)[1:]

    return flow(read, _take_demonstrations(prompt))


def token_flow(
    forward: Forward, params: chex.ArrayTree, prompt: Prompt
) -> Array:  # [L, n, e, D]; D = e without a read-in
    """Return ∂h_t/∂e_i for the query's row h_t of the stream after every layer t ≥ 1.

    Args:
        forward: (params, tokens [n+1, e]) -> Trace with a stream.
        params: weights of one model.
        prompt: one prompt with a demonstration or more; use ``jax.vmap`` for a batch.

    Returns:
        [L, n, e, D], by L D reverse or n e forward passes, whichever are fewer. Entry
        [t-1, i, a, b] is ∂(h_t)_b/∂(e_i)_a: A1's Eq. 2, J = ∂h/∂d with the output first, is a
        transposed slice. The last entry of D, times the sign of the read-out and without a
        read-in, is ``demonstration_flow``.

    Raises:
        TypeError: ``forward`` returns no Trace.
        ValueError: the prompt has no demonstrations, or the Trace has no stream.
    """

    def read(demonstrations: Array) -> Array:  # [L, D]
        stream = _run(forward, params, prompt, demonstrations).stream
        check_known(stream.shape[-1], "token_flow")
        return stream[1:, -1]

    return jnp.moveaxis(_compute_jacobian(read, _take_demonstrations(prompt)), 1, -1)


def moment_flow(
    params: linear_attention.Params, prompt: Prompt, sign: float = -1.0
) -> Array:  # [L, n, e]
    """Return ``demonstration_flow`` of masked, normalised linear attention, by the second moment.

    ŷ_t depends on the demonstrations through S_0 = (1/n) Σ_i e_i e_iᵀ alone, so ∂ŷ_t/∂e_i =
    (1/n) (G + Gᵀ) e_i with G = ∂ŷ_t/∂S_0 (derived here from docs/theory, "The flow through the
    moment"). Only S_0 and this product cost more when n grows: it is faster for n > 3e or so.
    """
    demonstrations = _take_demonstrations(prompt)
    query = prompts.tokens(prompt)[-1]

    def read(second_moment: Array) -> Array:  # [L]
        return sign * (moments.layer_maps(params, second_moment)[1:, -1] @ query)

    slopes = _compute_jacobian(read, prompts.second_moment(prompt))  # [L, e, e]
    return demonstrations @ (slopes + slopes.mT) / len(demonstrations)


def log_sizes(flow: Array, spans: Spans | None = None) -> Array:  # [L, n, e] -> [L, n]
    """Return the log of the norm of each demonstration's flow, in every layer, without overflow.

    Args:
        flow: [L, n, e] by demonstrations, or [L, T, D] by tokens.
        spans: [n, 2], the first token of each demonstration and the one after its last.

    Returns:
        [L, n], -∞ where nothing flows; with spans, log |flow|_F over the tokens of each.

    Raises:
        AssertionError: the flow has other axes.
        ValueError: a concrete span is empty or lies outside the prompt.
    """
    words = (
        "a flow is [L, n, e]; use jax.vmap for a batch of prompts, and give the flow to the whole "
        "query token as flow.reshape(L, n, -1)"
    )
    chex.assert_rank(flow, 3, custom_message=words)
    largest = jax.lax.stop_gradient(jnp.abs(flow).max(-1))
    scale = jnp.where(jnp.isfinite(largest) & (largest > 0), largest, 1)
    logs = jnp.log(scale) + jnp.log(jnp.linalg.norm(flow / scale[..., None], axis=-1))
    if spans is None:
        return logs
    inside = _mark_spans(spans, flow.shape[1])  # [n, T]
    squares = jnp.where(inside[None], 2 * logs[:, None], -jnp.inf)
    return jax.nn.logsumexp(squares, axis=-1) / 2


def log_ratio(flow: Array, spans: Spans | None = None) -> Array:  # [L]
    """Return log |flow_i| - log |flow_j| in every layer, i strongest and j weakest at the first.

    For two demonstrations it is the logarithm of A1's G_l(d_1)/G_l(d_2), d_1 being the larger one
    after one layer: it starts at or above 0, amplification is its growth, and it is negative where
    the order has flipped. Infinite or NaN where a flow is zero or has overflowed. The
    demonstrations may share a prompt or, as A1's do, stand alone in prompts whose flows are
    stacked; or they are ``spans`` of tokens (``log_sizes``).
    """
    logs = log_sizes(flow, spans)
    n = logs.shape[1]
    if n < 2:
        raise ValueError("flow has n = 1: a ratio compares at least two demonstrations")
    strongest = jnp.argmax(logs[0])  # the first one; a NaN counts as the largest and the least
    weakest = n - 1 - jnp.argmin(logs[0, ::-1])  # the last one: of equal sizes still two
    return logs[:, strongest] - logs[:, weakest]


def amplification_ratio(flow: Array, spans: Spans | None = None) -> Array:  # [L]
    """Return exp ``log_ratio``: |flow_i| / |flow_j|, A1's G_l(d_1)/G_l(d_2).

    docs/theory, "The amplification theorem". Raises ValueError, where the flow is concrete, if that
    of the first layer, which orders the demonstrations, is not finite.
    """
    logs, first = log_ratio(flow, spans), flow[0]
    if spans is not None:  # of demonstrations alone
        first = jnp.where(_mark_spans(spans, flow.shape[1]).any(0)[:, None], first, 0)
    check_finite(first, "flow[0]", "without it no demonstration is the strongest or the weakest")
    return jnp.exp(logs)


def _compute_jacobian(function: Callable[[Array], Array], point: Array) -> Array:
    """Return the derivative, outputs first, by the mode that needs fewer passes."""
    outputs = jax.eval_shape(function, point)
    if point.size < outputs.size:
        return jax.jacfwd(function)(point)
    numbers, pull = jax.vjp(function, point)
    basis = jnp.eye(numbers.size, dtype=numbers.dtype).reshape(-1, *numbers.shape)
    # Outside of jit ``jax.jacrev`` spends most of its time on printing the residuals of ``pull``.
    slopes = jax.vmap(lambda cotangent: pull(cotangent)[0])(basis)
    return slopes.reshape(*numbers.shape, *point.shape)


def _take_demonstrations(prompt: Prompt) -> Array:  # [n, e]
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


def _mark_spans(spans: Spans, num_tokens: int) -> Array:  # [n, T]
    """Return True where a token belongs to a demonstration."""
    places = spans if isinstance(spans, Array) else np.asarray(spans)
    chex.assert_shape(places, (None, 2), custom_message="spans are (start, stop) pairs [n, 2]")
    if is_concrete(places):
        for start, stop in np.asarray(places):
            if not 0 <= start < stop <= num_tokens:
                raise ValueError(
                    f"span ({start}, {stop}): expected 0 <= start < stop <= {num_tokens}, the "
                    "tokens of the prompt"
                )
    row = jnp.arange(num_tokens)[None]
    first, stop = jnp.asarray(places[:, :1], row.dtype), jnp.asarray(places[:, 1:], row.dtype)
    return (row >= first) & (row < stop)
