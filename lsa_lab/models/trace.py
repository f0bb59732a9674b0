"""The activations of a forward pass, and the predictions read from them."""

import flax.struct
import jax.numpy as jnp
from jax import Array


class Walk(flax.struct.PyTreeNode):
    """The residual stream before the first layer and after each, and what each head adds to it."""

    stream: Array  # [L+1, T, D]
    heads: Array  # [L, H, T, D]


class Trace(Walk):
    """The walk of a model with a label slot; D = e without a read-in.

    ``read_out`` maps a token of the stream to its label slot; None for the last coordinate of the
    stream. ``slots`` are label slots that are not linear in the stream, as after a final norm: of
    all tokens, or of the query alone, whose layers need not be those of the stream
    (``interop.as_forward``).
    """

    read_out: Array | None = None  # [D]
    slots: Array | None = None  # [L+1, T] or [L+1, 1]


def label_slots(trace: Trace) -> Array:  # [L+1, T]
    """Return the label slot of every token at every depth, or of the query if only it is known."""
    advice = "read the rows of its stream, those of a decoder by lm.decoder.logits"
    check_label_slot(trace, "a prediction", advice)
    if trace.slots is not None:
        return trace.slots
    if trace.read_out is None:
        return trace.stream[..., -1]
    return trace.stream @ trace.read_out


def layer_predictions(trace: Trace, sign: float = -1.0) -> Array:  # [L+1]
    """Return ŷ after each layer, sign times the query's label slot; entry 0 is before layer 1.

    In the minus convention label slots carry residuals y_i - w_l·x_i, the query's -ŷ (docs/theory,
    "The read-out").
    """
    return sign * label_slots(trace)[:, -1]


def predict(trace: Trace, sign: float = -1.0) -> Array:  # []
    """Return ŷ, the last of the layer predictions."""
    return layer_predictions(trace, sign)[-1]


def check_label_slot(trace: Walk, needed_by: str, instead: str) -> None:
    """Raise if a model returned a plain Walk, in which no coordinate is a label."""
    if not isinstance(trace, Trace):
        raise TypeError(
            f"{needed_by} needs a label slot, which the {type(trace).__name__} of this forward "
            f"lacks: {instead}"
        )


def check_known(size: int, needed_by: str, heads: bool = False) -> None:
    """Raise if the stream, or what the heads write, has the size 0: a model did not return it."""
    if size == 0:
        part = "the heads' writes [L, H, T, D]" if heads else "the stream [L+1, T, D]"
        returned = "(prediction, stream, heads)" if heads else "(prediction, stream)"
        raise ValueError(
            f"{needed_by} needs {part}: return {returned} from the function that as_forward wraps"
        )


def collect(first: Array, later: Array, heads: Array, read_out: Array | None = None) -> Trace:
    """Return the Trace from tokens [T, e], the stream after each layer and the heads' writes."""
    return Trace(jnp.concatenate([first[None], later]), heads, read_out)
