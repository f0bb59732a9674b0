"""What a forward pass leaves, and the prediction read from it."""

import flax.struct
import jax.numpy as jnp
from jax import Array


class Walk(flax.struct.PyTreeNode):
    """The residual stream before the first layer and after each, and what every head wrote."""

    stream: Array  # [L+1, T, D]
    heads: Array  # [L, H, T, D]


class Trace(Walk):
    """The walk of a model that has a label slot: D = e without a read-in.

    ``read_out`` turns a token of the stream into its label slot; None stands for the stream's last
    coordinate, which is the label slot wherever there is no read-in. ``slots`` are the label slots
    themselves where no vector reads them, as after a final norm: those of all tokens, or of the
    query alone, whose layers need not be those of the stream (``interop.as_forward``).
    """

    read_out: Array | None = None  # [D]
    slots: Array | None = None  # [L+1, T] or [L+1, 1]


def label_slots(trace: Trace) -> Array:  # [L+1, T]
    """The label slot of every token at every depth; of the query alone if no others are known."""
    advice = "read the rows of its stream yourself, those of a decoder by lm.decoder.logits"
    check_label_slot(trace, "a prediction", advice)
    if trace.slots is not None:
        return trace.slots
    if trace.read_out is None:
        return trace.stream[..., -1]
    return trace.stream @ trace.read_out


def layer_predictions(trace: Trace, sign: float = -1.0) -> Array:  # [L+1]
    """ŷ after each layer: sign times the query's label slot; entry 0 is the untouched prompt.

    In the minus convention label slots carry residuals y_i - w_l·x_i, the query's -ŷ (docs/theory,
    "The read-out").
    """
    return sign * label_slots(trace)[:, -1]


def predict(trace: Trace, sign: float = -1.0) -> Array:  # []
    """ŷ, the last of the layer predictions."""
    return layer_predictions(trace, sign)[-1]


def check_label_slot(trace: Walk, needed_by: str, instead: str) -> None:
    """Raise if a model has left a plain Walk, in which no coordinate is a label."""
    if not isinstance(trace, Trace):
        raise TypeError(
            f"{needed_by} needs a label slot, which the {type(trace).__name__} of this forward "
            f"lacks: {instead}"
        )


def check_stream(width: int, needed_by: str) -> None:
    """Raise if a stream is that of a model of which only the prediction is known."""
    if width == 0:
        raise ValueError(
            f"{needed_by} needs the stream [L+1, T, D]: return (prediction, stream) from the "
            "function that as_forward wraps"
        )


def check_heads(num_heads: int, needed_by: str) -> None:
    """Raise if it is not known what each head of a model writes."""
    if num_heads == 0:
        raise ValueError(
            f"{needed_by} needs the heads' writes [L, H, T, D]: return (prediction, stream, heads) "
            "from the function that as_forward wraps"
        )


def collect(first: Array, later: Array, heads: Array, read_out: Array | None = None) -> Trace:
    """The Trace of tokens [T, e], the stream after each layer [L, T, e], and the heads' writes."""
    return Trace(jnp.concatenate([first[None], later]), heads, read_out)
