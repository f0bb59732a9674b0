"""The model that a card is about: what it answers, asked for many prompts at once, and the checks
that refuse a function of which no card can be made."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab import prompts
from lsa_lab.card.batches import Law, drawn_batch
from lsa_lab.interop import as_forward
from lsa_lab.models import trace as traces
from lsa_lab.models.trace import Trace
from lsa_lab.prompts import Prompt

Forward = Callable[[Any, Array], Any]

_BLOCK = 64  # prompts
_LONGEST = 8  # times the length in training, at which a card asks
_SLACK = 1e-3  # of the largest answer: what a later token may change in a causal model, by rounding
_OTHER_LENGTH = 0.05  # the same of another number of tokens, another program, in bfloat16 too


class UnfitError(ValueError):
    """A model of which no card can be made; the message says what to change."""


@dataclass(frozen=True)
class Subject:
    """A checked model: ``slots(params, tokens)`` are its answers after each layer, of every token
    [L+1, T] if it is causal, else of the query [L+1, 1]; the first is that of the untouched prompt.
    """

    slots: Callable[[Any, Array], Array]
    causal: bool
    d: int
    n: int  # demonstrations in training
    dtype: Any
    many: Callable[[Any, Array], Array]  # jitted: [B, T, w] -> [B, L+1, T or 1]

    @property
    def width(self) -> int:
        """w, the width of a token."""
        return (2 if self.causal else 1) * self.d + 1

    def tokens(self, prompt: Prompt) -> Array:  # [T, 2d+1] or [n+1, d+1]
        """The tokens of one prompt in the model's layout."""
        return prompts.bound_tokens(prompt) if self.causal else prompts.tokens(prompt)

    def layers(self, params: Any, batch: Prompt, place: int) -> np.ndarray:  # [B, L]
        """The answers after each layer at x_place, from as many pairs as stand before it."""
        return self._slots(params, batch, place)[:, 1:, -1]

    def answers(self, params: Any, batch: Prompt, places: list[int]) -> np.ndarray:  # [B, P]
        """The answers at these places, place t from the t pairs before it."""
        if self.causal:
            return self._slots(params, batch, batch.x.shape[1])[:, -1][:, places]
        return np.stack([self._slots(params, batch, t)[:, -1, -1] for t in places], 1)

    def _slots(self, params: Any, batch: Prompt, place: int) -> np.ndarray:
        """The answers on the first ``place`` pairs; a causal model reads all of them at once."""
        batch = longer(batch, self.n) if self.causal else prefix(batch, place)
        rows = jax.tree.map(lambda leaf: np.asarray(leaf, self.dtype), batch)
        every = self.ask(params, _many_tokens(rows, self.causal))
        return every[..., : place + 1] if self.causal else every

    def ask(self, params: Any, tokens: Array) -> np.ndarray:  # [B, T, w] -> [B, L+1, T or 1]
        """``slots`` of many prompts, in blocks and, of a causal model, with tokens after the last
        one: a program serves all numbers of prompts and all lengths up to that in training."""
        size, length = tokens.shape[:2]
        later = max(self.n + 1 - length, 0) if self.causal else 0
        rows = jnp.pad(tokens, ((0, -size % _BLOCK), (0, later), (0, 0)), mode="edge")
        blocks = [self.many(params, rows[i : i + _BLOCK]) for i in range(0, size, _BLOCK)]
        every = np.concatenate([np.asarray(block, float) for block in blocks])[:size]
        return every[..., :length] if self.causal else every


@partial(jax.jit, static_argnums=1)
def _many_tokens(batch: Prompt, causal: bool) -> Array:  # [B, T, w]
    return jax.vmap(prompts.bound_tokens if causal else prompts.tokens)(batch)


def longer(batch: Prompt, n: int) -> Prompt:
    """The batch with n demonstrations or more: the query's x stands at its place, and later ones
    are of no account to a causal model."""
    later = max(n - batch.x.shape[1], 0)
    x = np.concatenate([batch.x, np.repeat(batch.x_query[:, None], later, 1)], 1)
    return batch.replace(x=x, y=np.pad(batch.y, ((0, 0), (0, later))))


def prefix(batch: Prompt, place: int) -> Prompt:
    """The first ``place`` demonstrations of a batch, and the next x as the query."""
    n = batch.x.shape[1]
    x_query = batch.x_query if place == n else batch.x[:, place]
    y_query = batch.y_query if place == n else batch.y[:, place]
    return Prompt(batch.x[:, :place], batch.y[:, :place], x_query, y_query)


def subject_of(forward: Forward, params: Any, d: int, n: int, causal: bool) -> Subject:
    """The model, checked in some seconds on three prompts of n demonstrations; else UnfitError."""
    check_leaves(params)
    dtype = dtype_of(params)
    batch = drawn_batch(np.random.default_rng(0), Law(d), 3, n).prompt
    rows = jax.tree.map(lambda leaf: np.asarray(leaf, dtype), batch)
    tokens = _many_tokens(rows, causal)
    slots = _slots_of(forward, params, tokens[0], causal)
    _check_lengths(slots, params, tokens[0], d, n)
    subject = Subject(slots, causal, d, n, dtype, jax.jit(jax.vmap(slots, (None, 0))))
    try:
        first, second = (subject.ask(params, tokens) for _ in range(2))
        if program_of(slots, params, tokens[0]) != program_of(slots, params, tokens[0]):
            anew = jax.jit(jax.vmap(lambda *given: slots(*given), (None, 0)))
            second = replace(subject, many=anew).ask(params, tokens)
        beside = subject.ask(params, tokens.at[1:].add(1))[0]
    except Exception as error:
        raise UnfitError(
            "the forward runs on one prompt and cannot be jitted and vmapped: write it with "
            f"jax.numpy, without Python branches on values and without side effects ({error})"
        ) from error
    _check_answers(params, first, second, beside)
    _check_derivative(slots, params, tokens[0])
    if causal:
        _check_causal(subject, params, tokens, first)
    return subject


def check_leaves(params: Any, trained: bool = False) -> None:
    """Raise UnfitError for a leaf that is no number, or that no gradient can change."""
    for path, leaf in jax.tree.leaves_with_path(params):
        where, dtype = f"params{jax.tree_util.keystr(path)}", getattr(leaf, "dtype", None)
        if not isinstance(leaf, bool | int | float | complex) and dtype is None:
            raise UnfitError(
                f"{where} is a {type(leaf).__name__}: params hold arrays alone; keep the rest in "
                "the forward, of an equinox module by eqx.partition(model, eqx.is_array)"
            )
        if trained and not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            raise UnfitError(
                f"{where} is {jnp.result_type(leaf)}, by which nothing has a gradient: make it a "
                "float, or keep it in the forward"
            )


def _check_lengths(slots: Callable, params: Any, tokens: Array, d: int, n: int) -> None:
    """Trace the lengths at which the card asks."""
    for length in (max(d // 2, 1) + 1, _LONGEST * n + 1):
        try:
            jax.eval_shape(slots, params, jnp.zeros((length, tokens.shape[1]), tokens.dtype))
        except Exception as error:
            raise UnfitError(
                f"the forward runs on {len(tokens)} tokens and not on {length} "
                f"({type(error).__name__}: {error}): a card asks at d/2 to {_LONGEST}n "
                "demonstrations; give tables of positions so many rows, or a rule for later ones"
            ) from error


def _check_derivative(slots: Callable, params: Any, tokens: Array) -> None:
    try:
        jax.eval_shape(jax.grad(lambda rows: slots(params, rows)[-1, -1]), tokens)
    except Exception as error:
        raise UnfitError(
            f"the predictions have no derivative by the tokens ({error}): write lax.scan for "
            "lax.while_loop, and give a callback a jax.custom_vjp"
        ) from error


def program_of(slots: Callable, params: Any, tokens: Array) -> str:
    """Return the sha256 of the model's program; "" if it calls the host, whose code it lacks."""
    text = jax.jit(lambda *arguments: slots(*arguments)).lower(params, tokens).as_text()
    return "" if "python_cpu_callback" in text else hashlib.sha256(text.encode()).hexdigest()


def dtype_of(params: Any) -> Any:
    """The dtype of the weights, in which tokens are given; that of a float without any."""
    leaves = [jnp.asarray(leaf).dtype for leaf in jax.tree.leaves(params)]
    leaves = [dtype for dtype in leaves if jnp.issubdtype(dtype, jnp.floating)]
    return jnp.result_type(*leaves) if leaves else jnp.result_type(float)


def _slots_of(forward: Forward, params: Any, tokens: Array, causal: bool) -> Callable:
    """The answers after each layer: label slots with the sign turned."""
    shape = f"[{tokens.shape[0]}, {tokens.shape[1]}]"
    try:
        returned = jax.eval_shape(forward, params, tokens)
        raw = forward if isinstance(returned, Trace) else as_forward(forward, causal=causal)
        slots = jax.eval_shape(lambda p, t: traces.label_slots(raw(p, t)), params, tokens)
    except Exception as error:
        raise UnfitError(
            f"forward(params, tokens {shape}) cannot be traced ({type(error).__name__}: {error}): "
            + _wanted(causal, tokens.shape)
        ) from error
    if causal and slots.shape[-1] != tokens.shape[0]:
        raise UnfitError("the Trace has answers for the query alone: " + _wanted(True, shape))
    if not jnp.issubdtype(slots.dtype, jnp.floating):
        raise UnfitError(f"the predictions are {slots.dtype}: return floats, as the tokens are")

    def answers(params: Any, tokens: Array) -> Array:
        return -traces.label_slots(raw(params, tokens))[
            :, slice(None) if causal else slice(-1, None)
        ]

    return answers


def _wanted(causal: bool, shape: Any) -> str:
    if causal:
        return (
            "with causal=True it takes the tokens [x_t, x_{t-1}, y_{t-1}] of a prompt, [T, 2d+1], "
            "and returns one prediction for each, [T], or a Trace; causal=False is for models of "
            "tokens [n+1, d+1] that answer the query alone"
        )
    return (
        "with causal=False it takes tokens [x_i, y_i], [n+1, d+1], the query last with label 0, "
        "and returns the query's prediction, [], or a Trace; causal=True is for models with a "
        "prediction at every token"
    )


def _check_answers(params: Any, first: np.ndarray, second: np.ndarray, beside: np.ndarray) -> None:
    if not np.isfinite(first).all():
        for path, leaf in jax.tree.leaves_with_path(params):
            if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact) and jnp.isnan(leaf).any():
                where = f"params{jax.tree_util.keystr(path)}"
                raise UnfitError(
                    f"{where} holds NaN: give the weights of a training that stayed finite"
                )
        raise UnfitError(
            "the predictions for a prompt like those of training are not finite: normalise keys, "
            "take smaller steps or initial weights, and give a division by 0 a case of its own (of "
            "bound tokens the first pair is 0)"
        )
    if not np.array_equal(first, second):
        raise UnfitError(
            "two calls with the same params and tokens differ: fix the random key, turn dropout "
            "off, and keep no state outside"
        )
    if np.abs(first[0] - beside).max() > _SLACK * (1 + np.abs(beside).max()):
        raise UnfitError(
            "a prompt's predictions depend on the prompts beside it in a vmapped batch: normalise "
            "over one prompt, not over the batch, and keep no state outside"
        )


def _check_causal(subject: Subject, params: Any, tokens: Array, before: np.ndarray) -> None:
    """Change all tokens from some place on by much, or leave them out: predictions before it have
    to stay."""
    length = tokens.shape[1]
    noise = jnp.asarray(10 * np.random.default_rng(1).normal(size=tokens.shape), tokens.dtype)
    for place in sorted({1, length // 8, length // 4, length // 2, length - 1} - {0}):
        later = subject.ask(params, tokens.at[:, place:].add(noise[:, place:]))
        change = np.abs(later - before)[:, -1, :place].max()
        if change > _SLACK * (1 + np.abs(before[:, -1, :place]).max()):
            raise UnfitError(
                f"the predictions before token {place} change by {change:.2g} when later tokens "
                "do: mask later tokens, or say causal=False"
            )
    shortest = min(max(subject.d // 2, 1), length - 1)
    least = _OTHER_LENGTH * np.abs(before[:, -1]).max() + 8 * float(jnp.finfo(subject.dtype).eps)
    for place in (shortest, max(shortest, length // 2)):
        alone = np.asarray(subject.many(params, tokens[:, : place + 1]), float)
        change = np.abs(alone - before[..., : place + 1])[:, -1].max()
        if not change <= least:
            raise UnfitError(
                f"the predictions up to token {place} change by {change:.2g} when tokens follow, "
                "of whatever values: the model depends on the number of tokens. Divide by the "
                "number of those seen so far, or give a model of the query alone with "
                "causal=False (--query), which is asked at every length anew"
            )
