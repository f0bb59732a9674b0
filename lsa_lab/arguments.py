"""Checks of arguments that public functions share; they read values only where these are concrete.

A check returns the checked value where the caller needs it, and raises ValueError in a sentence
with the argument's name, what came, and what to do.
"""

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, get_args

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab import prompts
from lsa_lab.prompts import Prompt, to_native_order

Real = Array | float  # a real number, which may be traced

_ROUNDING = 100 * float(np.finfo(np.float32).eps)  # of an eigenvalue, in the largest entry
_ON_ACCELERATORS = 32  # times as many: a core's caches hold few, and an accelerator idles over few


def is_concrete(value: ArrayLike) -> bool:
    """Return whether the value can be read: it is not traced, vmapped or differentiated."""
    return not isinstance(value, jax.core.Tracer)


def is_readable(value: Any) -> bool:
    """Return whether the value is a concrete number or array; pytrees are rebuilt around others."""
    return isinstance(value, int | float | np.ndarray | np.number | Array) and is_concrete(value)


def check_whole(value: Any, name: str) -> int:
    """Return a whole number, and a traced one as it is; True is none."""
    if not is_concrete(value):
        return value
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{name} = {value!r}: it is a whole number") from None


def check_at_least(value: int, name: str, least: int = 1) -> int:
    """Return a whole number of at least ``least``."""
    count = check_whole(value, name)
    if is_concrete(count) and count < least:
        raise ValueError(f"{name} = {value}: it is at least {least}")
    return count


def set_counts(config: Any, names: str, least: int = 1) -> None:
    """Turn the named counts of a frozen config into Python's, which JSON has and which widen no
    dtype; None stays."""
    for name in names.split():
        if (count := getattr(config, name)) is not None:
            object.__setattr__(config, name, check_at_least(count, name, least))


def check_size(size: int, count: int, what: str = "demonstrations", name: str = "size") -> int:
    """Return the size of a subset of ``count`` things."""
    size = check_whole(size, name)
    if not 1 <= size <= count:
        raise ValueError(f"{name} = {size} of {count} {what}: choose 1 to {count}")
    return size


def check_choice(value: str, name: str, choices: Any) -> None:
    """Raise unless a word is one of a Literal's, or of other ``choices``."""
    words = get_args(choices) or tuple(choices)
    if value not in words:
        raise ValueError(f"{name} = {value!r}: choose one of {', '.join(words)}")


def check_indices(indices: ArrayLike, count: int, what: str = "demonstrations") -> None:
    """Raise if indices are a mask or, where they are concrete, not from 0 to ``count`` - 1."""
    dtype = np.asarray(indices).dtype if is_concrete(indices) else jnp.result_type(indices)
    if not jnp.issubdtype(dtype, jnp.integer):
        advice = "np.flatnonzero(mask)" if dtype == np.bool_ else "indices.astype(int)"
        raise ValueError(f"indices are {dtype}: expected whole numbers; give {advice}")
    if is_concrete(indices) and not np.isin(np.asarray(indices), np.arange(count)).all():
        raise ValueError(f"indices of {count} {what} are numbers from 0 to {count - 1}")


def check_range(value: ArrayLike, name: str, high: float = math.inf) -> None:
    """Raise unless numbers are finite and lie in [0, high]."""
    if is_readable(value):
        numbers = np.asarray(value)
        if not ((numbers >= 0) & (numbers <= high) & (numbers < math.inf)).all():
            bound = "is finite and not negative" if high == math.inf else f"lies in [0, {high:g}]"
            raise ValueError(f"{name} = {value}: it {bound}")


def check_positive(value: ArrayLike, name: str) -> None:
    """Raise unless numbers are positive and finite."""
    if is_readable(value) and not ((np.asarray(value) > 0) & np.isfinite(value)).all():
        raise ValueError(f"{name} = {value}: it is positive and finite")


def check_symmetric(matrix: ArrayLike, name: str, *, definite: bool = True) -> None:
    """Raise if a concrete matrix is not symmetric or, if ``definite``, not semi-definite."""
    if not is_readable(matrix) or np.ndim(matrix) != 2:
        return
    check_byte_order(matrix, name)
    entries = np.asarray(matrix, float)
    if entries.shape[0] != entries.shape[1]:
        raise ValueError(f"{name} has shape {entries.shape}: expected [d, d], a square matrix")
    check_finite(entries, name)
    slack = _ROUNDING * len(entries) * np.abs(entries).max(initial=0)
    if np.abs(entries - entries.T).max(initial=0) > slack:
        raise ValueError(f"{name} is not symmetric: give (A + Aᵀ)/2 if rounding made it so")
    smallest = np.linalg.eigvalsh(entries)[0] if definite else 0
    if smallest < -slack:
        raise ValueError(f"{name} has the eigenvalue {smallest:.3g}: a covariance has none below 0")


def check_eigenvalues(values: ArrayLike, name: str, matrix: str) -> None:
    """Raise if concrete eigenvalues of a covariance are negative beyond rounding."""
    if not is_readable(values):
        return
    numbers = np.atleast_1d(np.asarray(values, float))
    check_finite(numbers, name)
    least = numbers.min(initial=0)
    if least < -_ROUNDING * numbers.size * np.abs(numbers).max(initial=0):
        raise ValueError(f"{name} holds {least:.3g}: no eigenvalue of {matrix} is negative")


def check_broadcast(**values: ArrayLike) -> None:
    """Raise if numbers and arrays do not broadcast against each other."""
    shapes = {name: jnp.shape(value) for name, value in values.items()}
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        listed = ", ".join(f"{name} has shape {shape}" for name, shape in shapes.items() if shape)
        raise ValueError(f"{listed}: expected shapes that broadcast") from None


def check_finite(
    array: ArrayLike, name: str, advice: str = "drop them or find out where they come from"
) -> None:
    """Raise if a concrete array holds a NaN or an infinity."""
    if is_concrete(array):
        check_byte_order(array, name)
        # The sum is finite unless it overflows. A large one is taken where the array lies.
        is_large = isinstance(array, Array) and array.size > 2**20
        values: Any = array if is_large else np.asarray(array)
        with np.errstate(over="ignore", invalid="ignore"), jax.ensure_compile_time_eval():
            if np.isfinite(values.sum()):
                return
        bad = ~np.isfinite(np.asarray(array))
        if bad.any():
            first = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"{name} holds {bad.sum()} NaN or infinite entries, the first at {first}: {advice}"
            )


def check_byte_order(array: ArrayLike, name: str) -> None:
    """Raise if a NumPy array has the byte order of another machine, which JAX does not take."""
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        raise ValueError(f"{name} is {array.dtype.str}: give {name}.astype({array.dtype.name!r})")


def check_factorable(array: ArrayLike, name: str) -> None:
    """Raise if an array has half precision, for which LAPACK has no factorisation."""
    check_byte_order(array, name)
    dtype = jnp.result_type(array)
    if jnp.finfo(dtype).bits < 32:
        raise ValueError(f"{name} is {dtype}: no matrix is factored in it; give float32 or float64")


def check_prompt(prompt: Prompt, *, factored: bool = False) -> Prompt:
    """Return a prompt as JAX arrays: one demonstration or more, finite, in one floating dtype.

    ``factored``: its moments will be factored, which takes 32 bits. The query's label may be
    unknown and is not checked.
    """
    prompts.check(prompt)
    if prompt.x.shape[0] == 0:
        raise ValueError("x has no rows: an estimator needs at least one demonstration")
    dtypes = {name: jnp.result_type(getattr(prompt, name)) for name in ("x", "y", "x_query")}
    if len(set(dtypes.values())) > 1 or not jnp.issubdtype(dtypes["x"], jnp.floating):
        names = ", ".join(f"{name} is {dtype}" for name, dtype in dtypes.items())
        raise ValueError(f"{names}: give all three one floating dtype, say x.astype(float)")
    if factored:
        check_factorable(prompt.x, "x")
    for name in dtypes:
        check_finite(getattr(prompt, name), name)
    return jax.tree.map(jnp.asarray, prompt)


def check_number(
    value: Real, name: str, prompt: Prompt, advice: str, positive: bool = True
) -> Array:  # []
    """Return a finite number > 0 (>= 0 unless ``positive``) in the precision of the prompt."""
    if isinstance(value, str | bytes):
        raise ValueError(f"{name} = {value!r}: expected a number, not text")
    if jnp.shape(value) != ():
        raise ValueError(f"{name} has shape {jnp.shape(value)}: it is one number; vmap over many")
    if is_concrete(value):
        dtype = jnp.result_type(prompt.x)
        exact = float(value)
        with np.errstate(over="ignore"):
            rounded = float(np.asarray(exact).astype(dtype))
        flushed = 0 < rounded < float(jnp.finfo(dtype).tiny)  # XLA computes with 0 in its place
        if not math.isfinite(rounded) or exact < 0 or (positive and rounded == 0) or flushed:
            bound = "> 0" if positive else ">= 0"
            note = "" if str(exact) == str(rounded) else f", which is {rounded} in {dtype}"
            note = f", which is too small for {dtype}" if flushed else note
            raise ValueError(f"{name} = {exact}{note}: expected a finite number {bound}; {advice}")
    return jnp.asarray(value, jnp.result_type(prompt.x))


def check_schedule(values: ArrayLike, name: str, prompt: Prompt) -> Array:  # [steps]
    """Return one finite number for each step in the precision of the prompt."""
    values = jnp.asarray(values, jnp.result_type(prompt.x))
    chex.assert_rank(values, 1, custom_message=f"{name} is [steps], one entry for each step")
    check_finite(values, name)
    return values


def as_floats(values: ArrayLike) -> Array:
    """Return numbers in their own precision, whole ones as floats: integers would truncate."""
    array = jnp.asarray(to_native_order(values))
    return array if jnp.issubdtype(array.dtype, jnp.inexact) else array.astype(float)


def cache_if_jitted(make: Callable[..., Callable]) -> Callable[..., Callable]:
    """Cache the program ``make(function, *options)`` of a function that is jitted.

    Any other function may read what has changed since, and gets a new program at each call.
    """
    cache = functools.lru_cache(maxsize=16)(make)

    @functools.wraps(make)
    def program(function: Callable, *options: Any) -> Callable:
        jitted = isinstance(function, jax.stages.Wrapped)
        return (cache if jitted else make)(function, *options)

    return program


def choose_batch_size(batch_size: int | None, on_cpu: int) -> int:
    """Return ``batch_size`` rows of a ``lax.map``, by default ``on_cpu`` or more elsewhere.

    A smaller one needs less memory. The last bits of a result depend on it.
    """
    if batch_size is not None:
        return check_at_least(batch_size, "together")
    return on_cpu if jax.default_backend() == "cpu" else _ON_ACCELERATORS * on_cpu
