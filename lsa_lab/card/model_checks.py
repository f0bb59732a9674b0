"""Checks that refuse a model which a card cannot describe, with what to change."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.card import model_under_test
from lsa_lab.card.batches import PromptDistribution, draw_batch
from lsa_lab.card.model_under_test import ModelUnderTest, UnfitError, hash_program
from lsa_lab.interop import as_forward
from lsa_lab.models import trace as traces
from lsa_lab.models.trace import Trace

Forward = Callable[[Any, Array], Any]

_LENGTH_FACTOR = 8  # the longest prompt of a card over the length in training
_ROUNDING = 1e-3  # relative change by rounding in another batch or with other later tokens
_LENGTH_ROUNDING = 0.05  # relative change by rounding in a program for another length, in bfloat16
_INTERFACES = {
    True: "with causal=True it takes the tokens [x_t, x_{t-1}, y_{t-1}] of a prompt, [T, 2d+1], "
    "and returns one prediction for each, [T], or a Trace; causal=False is for models of tokens "
    "[n+1, d+1] that predict the query alone",
    False: "with causal=False it takes tokens [x_i, y_i], [n+1, d+1], the query last with label 0, "
    "and returns the query's prediction, [], or a Trace; causal=True is for models with a "
    "prediction at every token",
}
_MESSAGES = {
    "vmap": "the forward runs on one prompt and cannot be jitted and vmapped: write it with "
    "jax.numpy, without Python branches on values and without side effects",
    "finite": "the predictions for a training prompt are not finite: normalise keys, reduce the "
    "step sizes or the initial weights, and treat a division by 0 as a separate case (the first "
    "pair is 0 in bound tokens)",
    "derivative": "the predictions have no derivative by the tokens: replace lax.while_loop by "
    "lax.scan, and give a callback a jax.custom_vjp",
    "batch": "the predictions for a prompt depend on the other prompts of a vmapped batch: "
    "normalise over one prompt, not over the batch, and keep no state outside",
    "calls": "two calls with the same params and tokens differ: fix the random key, turn dropout "
    "off, and keep no state outside",
}


def prepare_model(
    forward: Forward, params: Any, d: int, n: int, causal: bool, trained: bool = False
) -> ModelUnderTest:
    """Return the model after checks on three prompts of n demonstrations, which take seconds.

    Raises UnfitError if a check fails; params that are to be ``trained`` must be floats.
    """
    dtype = _check_leaves(params, trained)  # of tokens too
    batch = draw_batch(np.random.default_rng(0), PromptDistribution(d), 3, n).prompt
    batch = jax.tree.map(lambda leaf: np.asarray(leaf, dtype), batch)
    tokens = model_under_test.make_batch_tokens(batch, causal)
    predict = _make_predict(forward, params, tokens[0], causal)
    for length in (max(d // 2, 1) + 1, _LENGTH_FACTOR * n + 1):
        message = (
            f"the forward runs on {n + 1} tokens and not on {length}: a card uses prompts of d/2 "
            f"to {_LENGTH_FACTOR}n demonstrations; give tables of positions that many rows, or a "
            "rule for later positions"
        )
        other = jnp.zeros((length, tokens.shape[2]), dtype)
        attempt(message, jax.eval_shape, predict, params, other)
    rule = str(getattr(getattr(forward, "__self__", None), "rule", ""))  # of a built-in layer
    predict_batch = jax.jit(jax.vmap(predict, (None, 0)))
    model = ModelUnderTest(predict, causal, d, n, dtype, predict_batch, rule)
    predictions = _check_batches(model, params, tokens)
    gradient = jax.grad(lambda inputs: predict(params, inputs)[-1, -1])
    attempt(_MESSAGES["derivative"], jax.eval_shape, gradient, tokens[0])
    if causal:
        _check_causal(model, params, tokens, predictions)
    return model


def attempt(message: str, function: Callable, *arguments: Any) -> Any:
    """Return the result of a call; raise UnfitError with the message if it raises anything."""
    try:
        return function(*arguments)
    except Exception as error:
        raise UnfitError(f"{message} ({type(error).__name__}: {error})") from error


def _check_leaves(params: Any, trained: bool) -> Any:
    """Return the dtype of the floats; refuse a leaf that is no number or cannot be trained."""
    dtypes = []
    for path, leaf in jax.tree.leaves_with_path(params):
        name, dtype = f"params{jax.tree_util.keystr(path)}", getattr(leaf, "dtype", None)
        if not isinstance(leaf, bool | int | float | complex) and dtype is None:
            raise UnfitError(
                f"{name} is a {type(leaf).__name__}: params hold arrays alone; keep other values "
                "in the forward, those of an equinox module by eqx.partition(model, eqx.is_array)"
            )
        if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact) and jnp.isnan(leaf).any():
            raise UnfitError(f"{name} holds NaN: give weights of a training that stayed finite")
        dtype = jnp.asarray(leaf).dtype
        if jnp.issubdtype(dtype, jnp.floating):
            dtypes.append(dtype)
        elif trained:
            raise UnfitError(
                f"{name} is {dtype}, which has no gradient: make it a float, or keep it in the "
                "forward"
            )
    return jnp.result_type(*dtypes) if dtypes else jnp.result_type(float)


def _make_predict(forward: Forward, params: Any, tokens: Array, causal: bool) -> Callable:
    """Return the function of the predictions after each layer: label slots with the sign turned."""

    def trace_slots() -> tuple[Callable, Any]:
        returned = jax.eval_shape(forward, params, tokens)
        trace = forward if isinstance(returned, Trace) else as_forward(forward, causal=causal)
        return trace, jax.eval_shape(lambda p, t: traces.label_slots(trace(p, t)), params, tokens)

    shape = f"[{tokens.shape[0]}, {tokens.shape[1]}]"
    message = f"forward(params, tokens {shape}) cannot be traced: {_INTERFACES[causal]}"
    trace, slots = attempt(message, trace_slots)
    if causal and slots.shape[-1] != tokens.shape[0]:
        raise UnfitError(f"the Trace predicts the query alone: {_INTERFACES[True]}")
    if not jnp.issubdtype(slots.dtype, jnp.floating):
        raise UnfitError(f"the predictions are {slots.dtype}: return floats, as the tokens are")
    columns = slice(None) if causal else slice(-1, None)

    def predict(params: Any, tokens: Array) -> Array:
        return -traces.label_slots(trace(params, tokens))[:, columns]

    return predict


def _check_batches(model: ModelUnderTest, params: Any, tokens: Array) -> np.ndarray:
    """Return the predictions; raise UnfitError if repeating or batching a call changes them."""

    def predict_twice() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        first, second = (model.predict_blocks(params, tokens) for _ in range(2))
        hashes = [hash_program(model.predict, params, tokens[0]) for _ in range(2)]
        if hashes[0] != hashes[1]:  # a constant drawn while tracing: trace again to see it change
            retraced = jax.jit(jax.vmap(lambda *inputs: model.predict(*inputs), (None, 0)))
            second = replace(model, predict_batch=retraced).predict_blocks(params, tokens)
        return first, second, model.predict_blocks(params, tokens.at[1:].add(1))[0]

    first, second, other_batch = attempt(_MESSAGES["vmap"], predict_twice)
    if not np.isfinite(first).all():
        raise UnfitError(_MESSAGES["finite"])
    if not np.array_equal(first, second):
        raise UnfitError(_MESSAGES["calls"])
    if np.abs(first[0] - other_batch).max() > _ROUNDING * (1 + np.abs(other_batch).max()):
        raise UnfitError(_MESSAGES["batch"])
    return first


def _check_causal(
    model: ModelUnderTest, params: Any, tokens: Array, predictions: np.ndarray
) -> None:
    """Raise UnfitError if later tokens change a prediction, by their values or by their number."""
    length = tokens.shape[1]
    noise = jnp.asarray(10 * np.random.default_rng(1).normal(size=tokens.shape), tokens.dtype)
    for place in sorted({1, length // 8, length // 4, length // 2, length - 1} - {0}):
        changed = model.predict_blocks(params, tokens.at[:, place:].add(noise[:, place:]))
        change = np.abs(changed - predictions)[:, -1, :place].max()
        if change > _ROUNDING * (1 + np.abs(predictions[:, -1, :place]).max()):
            raise UnfitError(
                f"the predictions before token {place} change by {change:.2g} when later tokens "
                "do: mask later tokens, or set causal=False"
            )
    limit = _LENGTH_ROUNDING * np.abs(predictions[:, -1]).max()
    limit += 8 * float(jnp.finfo(model.dtype).eps)
    prefix = np.asarray(model.predict_batch(params, tokens[:, : length // 2 + 1]), float)
    change = np.abs(prefix - predictions[..., : length // 2 + 1])[:, -1].max()
    if not change <= limit:
        raise UnfitError(
            f"the predictions up to token {length // 2} change by {change:.2g} when tokens of any "
            "value follow: the model depends on the number of tokens. Divide by the number of "
            "tokens read so far, or set causal=False (--query) for a model that predicts the "
            "query alone, which a card calls at every length"
        )
