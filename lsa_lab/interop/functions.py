"""Any function of tokens as a model for the analyses and the selection.

    what it returns       analyses and selection

    the prediction        amplification.demonstration_flow; implicit_gd.implied_weights;
                          prefix.example_loss, batch_loss, prefix_gradients; what takes
                          flows, errors or losses: scores, oracles, heads, clipping
    the stream            amplification.token_flow; common_map; probes.embed_as_queries, fit
    the heads, read_out   probes.head_contributions
    merged weights        implicit_gd.trajectory; amplification.moment_flow;
                          scores.encode_flow; oracles.candidate_flows

An analysis refuses a function that returns too little, and says what it needs. Merged weights are
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
    """Return forward(params, tokens [T, e]) -> Trace that calls ``function``.

    The function is function(params, tokens), or function(tokens), whose params are None. It is in
    JAX, for one prompt (``prompts.tokens``), and returns

        prediction                            []
        (prediction, stream)                  [] or after each layer [L+1]; [L+1, T, D]
        (prediction, stream, heads)           heads [L, H, T, D]
        Trace                                 as it is

    or a Walk in place of stream and heads. One prediction [] makes a model of one layer; to have a
    prediction after each layer, return [L+1] of them. Return ŷ with its usual sign: the label slot
    of the Trace is -ŷ. With ``causal`` the function returns only predictions [T], one for each
    token from the tokens up to it, as ``models.prefixes`` reads them.

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
    takes_params, read = _takes_params(function), _make_causal_trace if causal else _make_trace

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


def _takes_params(function: Callable[..., Any]) -> bool:
    """Return whether a function is one of (params, tokens), as flax's ``module.apply`` is."""
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


def _make_causal_trace(returned: Any, num_tokens: int) -> Trace:
    prediction = jnp.asarray(returned)
    fits = prediction.shape == (num_tokens,)
    _check("a prediction", prediction, fits, f"one for each token, [{num_tokens}]")
    nothing = jnp.zeros((2, num_tokens, 0), prediction.dtype)
    slots = jnp.stack([jnp.zeros_like(prediction), -prediction])
    return Trace(nothing, nothing[:1, None][:, :0], slots=slots)


def _make_trace(returned: Any, num_tokens: int) -> Trace:
    if isinstance(returned, Trace):
        return returned
    prediction, *layers = _split(returned)
    stream = layers[0] if layers else jnp.zeros((2, num_tokens, 0), prediction.dtype)
    turned = stream.ndim == 3 and stream.shape[1] != num_tokens == stream.shape[2]
    _check("a stream", stream, stream.ndim == 3 and not turned, "[L+1, T, D], where T is not last")
    depth, rows, width = stream.shape
    fits = prediction.shape == () or (bool(layers) and prediction.shape == (depth,))
    _check("a prediction", prediction, fits, "[], or with a stream one after each layer [L+1]")
    heads = layers[1] if layers[1:] else jnp.zeros((depth - 1, 0, rows, width), stream.dtype)
    fits = heads.ndim == 4 and (heads.shape[0], *heads.shape[2:]) == (depth - 1, rows, width)
    _check("heads", heads, fits, f"[L, H, T, D], with a stream of shape {stream.shape}")
    if not prediction.shape:
        prediction = jnp.stack([jnp.zeros_like(prediction), prediction])
    return Trace(stream, heads, slots=-prediction[:, None])


def _split(returned: Any) -> list[Array]:
    """Return the prediction, and the stream and the heads if they are there."""
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


def _check(name: str, array: Array, fits: bool, form: str) -> None:
    if not fits:
        raise ValueError(f"the function returned {name} of shape {array.shape}; expected {form}")
