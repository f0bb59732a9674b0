"""Any function of tokens as a model: what the analyses and the selection can do with it.

    needs                 analyses and selection

    the prediction        amplification.demonstration_flow; implicit_gd.implied_weights;
                          prefix.example_loss, batch_loss, prefix_gradients; what takes
                          flows, errors or losses: scores, oracles, heads, clipping
    the stream            amplification.token_flow; common_map; probes.embed_as_queries, fit
    the heads, read_out   probes.head_contributions
    merged weights        implicit_gd.trajectory; amplification.moment_flow;
                          scores.encode_flow; oracles.candidate_flows

Who needs what a function does not return says so in one sentence. Merged weights are
``linear_attention.Params``: other models have no layer maps.
"""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.models.trace import Trace, Walk

_ARRAYS = (Array, np.ndarray, np.generic, float, int)


def as_forward(
    function: Callable[..., Any], *, causal: bool = False
) -> Callable[[Any, Array], Trace]:
    """``forward(params, tokens [T, e]) -> Trace`` of ``function(params, tokens)`` or of
    ``function(tokens)``, whose params are None.

    The function is in JAX, for one prompt (``prompts.tokens``), and returns

        prediction                            []
        (prediction, stream)                  [] or after each layer [L+1]; [L+1, T, D]
        (prediction, stream, heads)           heads [L, H, T, D]
        Trace                                 as it is

    or a Walk in place of stream and heads. A single prediction is that of one layer, whatever the
    stream has: for predictions of the layers read each state of the query as the last is read. The
    prediction is itself, without a sign; the label slot of the Trace is minus it. With ``causal``
    the function returns a prediction for every token [T], each from the tokens up to it, and
    nothing else: what ``models.prefixes`` reads.

        >>> from lsa_lab import estimators
        >>> from lsa_lab.analyses import amplification
        >>> from lsa_lab.prompts import Prompt
        >>> def one_step(tokens):  # descent on w·x = y
        ...     x, y, query = tokens[:-1, :-1], tokens[:-1, -1], tokens[-1, :-1]
        ...     return y @ x @ query / len(x)
        >>> prompt = Prompt(jnp.eye(2), jnp.arange(1.0, 3.0), jnp.arange(3.0, 5.0), jnp.zeros(()))
        >>> print(amplification.demonstration_flow(as_forward(one_step), None, prompt))
        [[[1.5 2.  1.5]
          [3.  4.  2. ]]]
    """
    takes_params, read = _takes_params(function), _causal_trace if causal else _trace

    def forward(params: Any, tokens: Array) -> Trace:
        if takes_params:
            return read(function(params, tokens), tokens.shape[0])
        if jax.tree.leaves(params):
            raise ValueError(
                "the function takes tokens alone and would ignore the params: pass None, or wrap "
                "function(params, tokens)"
            )
        return read(function(tokens), tokens.shape[0])

    return forward


def _causal_trace(returned: Any, num_tokens: int) -> Trace:
    prediction = jnp.asarray(returned)
    if prediction.shape != (num_tokens,):
        raise ValueError(
            f"the function returned a prediction of shape {prediction.shape} for {num_tokens} "
            f"tokens: with causal=True it is one for each token, [{num_tokens}]"
        )
    nothing = jnp.zeros((2, num_tokens, 0), prediction.dtype)
    slots = jnp.stack([jnp.zeros_like(prediction), -prediction])
    return Trace(nothing, nothing[:1, None][:, :0], slots=slots)


def _takes_params(function: Callable[..., Any]) -> bool:
    """Whether a function is one of (params, tokens), as flax's ``module.apply`` is."""
    if not callable(function):
        raise TypeError(f"as_forward wraps a function of tokens, not {type(function).__name__}")
    parameters = inspect.signature(function).parameters.values()
    free = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in free if p.default is p.empty]
    more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if len(needed) not in (1, 2) or keywords:
        names = ", ".join(p.name for p in (*needed, *keywords))
        raise TypeError(
            f"as_forward wraps a function of (tokens) or of (params, tokens), not of ({names}): "
            "fix the others with functools.partial or a lambda"
        )
    return len(needed) == 2 or more


def _trace(returned: Any, num_tokens: int) -> Trace:
    if isinstance(returned, Trace):
        return returned
    prediction, *layers = _parts(returned)
    stream = layers[0] if layers else jnp.zeros((2, num_tokens, 0), prediction.dtype)
    if stream.ndim != 3:
        raise ValueError(
            f"the function returned a stream of shape {stream.shape}: it is [L+1, T, D], of one "
            "prompt, before the first layer and after each"
        )
    depth, num_rows, width = stream.shape
    if num_rows != num_tokens == width:
        raise ValueError(
            f"the function returned a stream of shape {stream.shape} for {num_tokens} tokens: it "
            "is [L+1, T, D], and T seems to be last; return stream.swapaxes(1, 2)"
        )
    if prediction.shape != () and (not layers or prediction.shape != (depth,)):
        raise ValueError(
            f"the function returned a prediction of shape {prediction.shape}: it is one number [] "
            "for one prompt, or beside a stream [L+1, T, D] one after each layer [L+1]"
        )
    heads = layers[1] if layers[1:] else jnp.zeros((depth - 1, 0, num_rows, width), stream.dtype)
    if heads.ndim != 4 or (heads.shape[0], *heads.shape[2:]) != (depth - 1, num_rows, width):
        raise ValueError(
            f"the function returned heads of shape {heads.shape} beside a stream of shape "
            f"{stream.shape}: they are [L, H, T, D] and [L+1, T, D]"
        )
    if not prediction.shape:
        prediction = jnp.stack([jnp.zeros_like(prediction), prediction])
    return Trace(stream, heads, slots=-prediction[:, None])


def _parts(returned: Any) -> list[Array]:
    """The prediction, and of stream and heads what there is."""
    parts = list(returned) if isinstance(returned, tuple | list) else [returned]
    if len(parts) == 2 and isinstance(parts[1], Walk):
        parts[1:] = parts[1].stream, parts[1].heads
    if not 1 <= len(parts) <= 3 or not all(isinstance(part, _ARRAYS) for part in parts):
        kinds = ", ".join(type(part).__name__ for part in parts)
        raise TypeError(
            f"the function returned ({kinds}): expected the prediction, or (prediction, stream), "
            "(prediction, stream, heads), (prediction, Walk), all arrays, or a Trace"
        )
    return [jnp.asarray(part) for part in parts]
