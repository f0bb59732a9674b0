"""The sizes of a flow, layer by layer, and their ratios; nothing overflows on the way."""

from collections.abc import Sequence

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_finite, is_concrete

Spans = ArrayLike | Sequence[tuple[int, int]]  # [n, 2]: first token, and the one after the last


def log_sizes(flow: Array, spans: Spans | None = None) -> Array:  # [L, n, e] -> [L, n]
    """log |flow_i| in every layer, -∞ where nothing flows; no square overflows or vanishes.

    Of a flow [L, T, D] by tokens, log |flow|_F of the tokens of each of ``spans`` [n, 2].
    """
    chex.assert_rank(
        flow,
        3,
        custom_message="a flow is [L, n, e]; use jax.vmap for a batch of prompts, and give the "
        "flow to the whole query token as flow.reshape(L, n, -1)",
    )
    largest = jax.lax.stop_gradient(jnp.abs(flow).max(-1))
    scale = jnp.where(jnp.isfinite(largest) & (largest > 0), largest, 1)
    logs = jnp.log(scale) + jnp.log(jnp.linalg.norm(flow / scale[..., None], axis=-1))
    if spans is None:
        return logs
    inside = _inside(spans, flow.shape[1])  # [n, T]
    squares = jnp.where(inside[None], 2 * logs[:, None], -jnp.inf)
    return jax.nn.logsumexp(squares, axis=-1) / 2


def log_ratio(flow: Array, spans: Spans | None = None) -> Array:  # [L]
    """log |flow_i| - log |flow_j| in every layer, i strongest and j weakest at the first.

    Of two demonstrations this is the logarithm of A1's G_l(d_1)/G_l(d_2), d_1 being the one that is
    ahead after one layer: it starts at or above 0, amplification is its growth, and below 0 the
    order has flipped. Infinite or NaN where a flow is zero or has overflown. The demonstrations
    may share a prompt or, as A1's do, be alone in prompts of their own, their flows stacked; or
    they are ``spans`` of tokens (``log_sizes``).
    """
    logs = _compared(flow, spans)
    order = jnp.argsort(logs[0])  # a NaN comes last and makes the first layer's ratio NaN
    return logs[:, order[-1]] - logs[:, order[0]]


def amplification_ratio(flow: Array, spans: Spans | None = None) -> Array:  # [L]
    """exp ``log_ratio``: |flow_i| / |flow_j|, A1's G_l(d_1)/G_l(d_2).

    docs/theory, "The amplification theorem". Raises ValueError, where the flow can be read, if
    that of the first layer, which orders the demonstrations, is not finite.
    """
    logs, first = log_ratio(flow, spans), flow[0]
    if spans is not None:  # of demonstrations alone
        first = jnp.where(_inside(spans, flow.shape[1]).any(0)[:, None], first, 0)
    check_finite(first, "flow[0]", "without it no demonstration is the strongest or the weakest")
    return jnp.exp(logs)


def _compared(flow: Array, spans: Spans | None) -> Array:  # [L, n]
    logs = log_sizes(flow, spans)
    if logs.shape[1] < 2:
        raise ValueError("flow has n = 1: a ratio compares at least two demonstrations")
    return logs


def _inside(spans: Spans, num_tokens: int) -> Array:  # [n, T]
    """Which token is one of which demonstration."""
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
