"""The checks that public functions share; they read values only where these are concrete."""

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab import prompts
from lsa_lab.prompts import Prompt, in_native_order

Real = Array | float  # a real number, which may be traced

_ROUNDING = 100 * float(np.finfo(np.float32).eps)  # of an eigenvalue, in the largest entry
_FEW = 8  # parts of a map: above, one compilation takes less time than a loop in Python
_ON_ACCELERATORS = 32  # times as many: a core's caches hold few, and an accelerator idles over few


def is_concrete(value: ArrayLike) -> bool:
    """Whether the value can be read, and is not being traced, vmapped or differentiated."""
    return not isinstance(value, jax.core.Tracer)


def check_at_least(value: int, name: str, least: int = 1) -> int:
    """The count, unless it is no whole number or too small; one that is traced as it is."""
    count = check_whole(value, name)
    if is_concrete(count) and count < least:
        raise ValueError(f"{name} = {value}: it is at least {least}")
    return count


def check_whole(value: Any, name: str) -> int:
    """The number, unless it is no whole one, which True is not; one that is traced as it is."""
    if not is_concrete(value):
        return value
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{name} = {value!r}: it is a whole number") from None


def set_counts(config: Any, names: str, least: int = 1) -> None:
    """Make the named counts of a frozen config Python's, which JSON has and which widen no dtype;
    None stays, and one that is too small or no whole number is refused."""
    for name in names.split():
        count = getattr(config, name)
        if count is None:
            continue
        count = check_whole(count, name)
        if count < least:
            raise ValueError(f"{name} is {count}; the nearest valid value is {least}")
        object.__setattr__(config, name, count)


def as_floats(values: ArrayLike) -> Array:
    """Numbers in their own precision, whole ones as floats: an array of these would cut others off
    to whole ones, and overflow."""
    array = jnp.asarray(in_native_order(values))
    return array if jnp.issubdtype(array.dtype, jnp.inexact) else array.astype(float)


def check_size(size: int, count: int, what: str = "demonstrations") -> int:
    """The size of a subset of ``count``, unless there is none of that size."""
    size = check_whole(size, "size")
    if not 1 <= size <= count:
        raise ValueError(f"size = {size} of {count} {what}: choose 1 to {count}")
    return size


def check_indices(indices: ArrayLike, count: int, what: str = "demonstrations") -> None:
    """Raise if indices are a mask or, where they can be read, beyond 0 to ``count`` - 1."""
    dtype = np.asarray(indices).dtype if is_concrete(indices) else jnp.result_type(indices)
    if not jnp.issubdtype(dtype, jnp.integer):
        advice = "np.flatnonzero(mask)" if dtype == np.bool_ else "indices.astype(int)"
        raise ValueError(f"indices are {dtype}: expected whole numbers; give {advice}")
    if is_concrete(indices) and not np.isin(np.asarray(indices), np.arange(count)).all():
        raise ValueError(f"indices of {count} {what} are numbers from 0 to {count - 1}")


def check_spread(value: ArrayLike, name: str, what: str = "a standard deviation") -> None:
    """Raise if a number, or any of an array, is no standard deviation."""
    if not is_readable(value):
        return
    numbers = np.asarray(value)
    if not ((numbers >= 0) & (numbers < math.inf)).all():
        raise ValueError(f"{name} = {value}: {what} is finite and not negative")


def check_variance(value: ArrayLike, name: str) -> None:
    """Raise if a number, or any of an array, is no variance."""
    check_spread(value, name, "a variance")


def check_correlation(value: ArrayLike, name: str) -> None:
    """Raise if a number, or any of an array, is no correlation from 0 to 1."""
    if not is_readable(value):
        return
    numbers = np.asarray(value)
    if not ((numbers >= 0) & (numbers <= 1)).all():
        raise ValueError(f"{name} = {value}: a correlation of neighbours lies in [0, 1]")


def check_ratio(value: ArrayLike, name: str) -> None:
    """Raise if a number, or any of an array, is no ratio of sizes."""
    if is_concrete(value) and not np.all(np.asarray(value) > 0):
        raise ValueError(f"{name} = {value}: a ratio of sizes is positive")


def check_symmetric(matrix: ArrayLike, name: str, *, definite: bool = True) -> None:
    """Raise if a concrete matrix is not symmetric, or, if it is to be one, no covariance."""
    if not is_readable(matrix) or np.ndim(matrix) != 2:
        return
    check_byte_order(matrix, name)
    entries = np.asarray(matrix, float)
    if entries.shape[0] != entries.shape[1]:
        raise ValueError(f"{name} has shape {entries.shape}: expected [d, d], a square matrix")
    check_finite(entries, name)
    largest = np.abs(entries).max(initial=0)
    slack = _ROUNDING * len(entries) * largest
    if np.abs(entries - entries.T).max(initial=0) > slack:
        raise ValueError(f"{name} is not symmetric: give (A + Aᵀ)/2 if rounding made it so")
    smallest = np.linalg.eigvalsh(entries)[0] if definite else 0
    if smallest < -slack:
        raise ValueError(f"{name} has the eigenvalue {smallest:.3g}: a covariance has none below 0")


def check_eigenvalues(values: ArrayLike, name: str, matrix: str) -> None:
    """Raise if numbers that can be read are no eigenvalues of a covariance, up to rounding."""
    if not is_readable(values):
        return
    numbers = np.atleast_1d(np.asarray(values, float))
    check_finite(numbers, name)
    least = numbers.min(initial=0)
    if least < -_ROUNDING * numbers.size * np.abs(numbers).max(initial=0):
        raise ValueError(f"{name} holds {least:.3g}: no eigenvalue of {matrix} is negative")


def check_broadcast(**values: ArrayLike) -> None:
    """Raise, by name, if numbers and arrays do not broadcast against each other."""
    shapes = {name: jnp.shape(value) for name, value in values.items()}
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        listed = ", ".join(f"{name} has shape {shape}" for name, shape in shapes.items() if shape)
        raise ValueError(f"{listed}: expected shapes that broadcast") from None


def is_readable(value: Any) -> bool:
    """Whether the value is a number or an array: a pytree is rebuilt around other things, too."""
    return isinstance(value, int | float | np.ndarray | np.number | Array) and is_concrete(value)


def check_finite(
    array: ArrayLike, name: str, advice: str = "drop them or find out where they come from"
) -> None:
    """Raise if a concrete array holds a NaN or an infinity."""
    if is_concrete(array):
        check_byte_order(array, name)
        bad = ~np.isfinite(np.asarray(array))
        if bad.any():
            first = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"{name} holds {bad.sum()} NaN or infinite entries, the first at {first}: {advice}"
            )


def check_byte_order(array: ArrayLike, name: str) -> None:
    """Raise if an array of NumPy has the byte order of another machine, which JAX does not take."""
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        raise ValueError(f"{name} is {array.dtype.str}: give {name}.astype({array.dtype.name!r})")


def check_factorable(array: ArrayLike, name: str) -> None:
    """Raise if an array is in half precision, which LAPACK's factorisations do not have."""
    check_byte_order(array, name)
    dtype = jnp.result_type(array)
    if jnp.finfo(dtype).bits < 32:
        raise ValueError(f"{name} is {dtype}: no matrix is factored in it; give float32 or float64")


def admit(prompt: Prompt, *, factored: bool = False) -> Prompt:
    """The prompt as JAX arrays, if it has a demonstration and finite numbers in one precision, a
    full one if its moments are to be ``factored``.

    The query's label is not looked at: whoever predicts may not know it.
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


def number(
    value: Real, name: str, prompt: Prompt, advice: str, positive: bool = True
) -> Array:  # []
    """One finite number > 0 (>= 0 unless ``positive``), in the precision of the prompt."""
    if isinstance(value, str | bytes):
        raise ValueError(f"{name} = {value!r}: expected a number, not text")
    if jnp.shape(value) != ():
        raise ValueError(f"{name} has shape {jnp.shape(value)}: it is one number; vmap over many")
    if is_concrete(value):
        dtype = jnp.result_type(prompt.x)
        plain = float(value)
        with np.errstate(over="ignore"):
            kept = float(np.asarray(plain).astype(dtype))  # what is computed with
        lost = 0 < kept < float(jnp.finfo(dtype).tiny)  # XLA computes with 0 in its place
        if not math.isfinite(kept) or plain < 0 or (positive and kept == 0) or lost:
            bound = "> 0" if positive else ">= 0"
            told = "" if plain == kept or math.isnan(plain) else f", which is {kept} in {dtype}"
            told = f", which is too small for {dtype}" if lost else told
            raise ValueError(f"{name} = {plain}{told}: expected a finite number {bound}; {advice}")
    return jnp.asarray(value, jnp.result_type(prompt.x))


def schedule(values: ArrayLike, name: str, prompt: Prompt) -> Array:  # [steps]
    """One finite number for each step, in the precision of the prompt."""
    values = jnp.asarray(values, jnp.result_type(prompt.x))
    chex.assert_rank(values, 1, custom_message=f"{name} is [steps], one entry for each step")
    check_finite(values, name)
    return values


def cached_if_jitted(make: Callable[..., Callable]) -> Callable[..., Callable]:
    """Cache the program ``make(function, *options)`` of a function that is jitted.

    Any other function may read what has changed since, and its program is made anew each time.
    """
    cache = functools.lru_cache(maxsize=16)(make)

    @functools.wraps(make)
    def program(function: Callable, *options: Any) -> Callable:
        jitted = isinstance(function, jax.stages.Wrapped)
        return (cache if jitted else make)(function, *options)

    return program


def map_rows(function: Callable[[Array], Array], rows: Array, together: int) -> Array:
    """``jax.lax.map``, ``together`` rows at a time; outside of jit few parts are a loop in Python,
    since a function that is made anew in every call would be compiled in every call."""
    starts = range(0, len(rows), together)
    if len(starts) > _FEW or not is_concrete(jnp.zeros(())):
        return jax.lax.map(function, rows, batch_size=together)
    parts = [jax.vmap(function)(rows[start : start + together]) for start in starts]
    return jnp.concatenate(parts)


def side_by_side(together: int | None, on_cpu: int) -> int:
    """How many rows of a ``lax.map`` go side by side: decided here for every platform.

    ``together`` where it is said, else what suits the platform: ``on_cpu`` rows, or many more.

    Ask for fewer where their memory is too much. The number is part of what the last bits rest on.
    """
    if together is not None:
        return check_at_least(together, "together")
    return on_cpu if jax.default_backend() == "cpu" else _ON_ACCELERATORS * on_cpu
