"""The checks that public functions share; they read values only where these are concrete."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab import prompts
from lsa_lab.prompts import Prompt

Real = Array | float  # a real number, which may be traced


def is_concrete(value: ArrayLike) -> bool:
    """Whether the value can be read, and is not being traced, vmapped or differentiated."""
    return not isinstance(value, jax.core.Tracer)


def check_at_least(value: int, name: str, least: int = 1) -> None:
    """Raise if a count is too small."""
    if value < least:
        raise ValueError(f"{name} = {value}: it is at least {least}")


def check_spread(value: Real, name: str) -> None:
    """Raise if a Python number is no standard deviation."""
    if isinstance(value, int | float) and not 0 <= value < math.inf:
        raise ValueError(f"{name} = {value}: a standard deviation is finite and not negative")


def check_finite(
    array: ArrayLike, name: str, advice: str = "drop them or find out where they come from"
) -> None:
    """Raise if a concrete array holds a NaN or an infinity."""
    if is_concrete(array):
        bad = ~np.isfinite(np.asarray(array))
        if bad.any():
            first = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"{name} holds {bad.sum()} NaN or infinite entries, the first at {first}: {advice}"
            )


def admit(prompt: Prompt) -> Prompt:
    """The prompt as JAX arrays, if it has a demonstration and finite numbers in one precision.

    The query's label is not looked at: whoever predicts may not know it.
    """
    prompts.check(prompt)
    if prompt.x.shape[0] == 0:
        raise ValueError("x has no rows: an estimator needs at least one demonstration")
    dtypes = {name: jnp.result_type(getattr(prompt, name)) for name in ("x", "y", "x_query")}
    if len(set(dtypes.values())) > 1 or not jnp.issubdtype(dtypes["x"], jnp.floating):
        names = ", ".join(f"{name} is {dtype}" for name, dtype in dtypes.items())
        raise ValueError(f"{names}: give all three one floating dtype, say x.astype(float)")
    for name in dtypes:
        check_finite(getattr(prompt, name), name)
    return jax.tree.map(jnp.asarray, prompt)


def number(
    value: Real, name: str, prompt: Prompt, advice: str, positive: bool = True
) -> Array:  # []
    """One finite number > 0 (>= 0 unless ``positive``), in the precision of the prompt."""
    if jnp.shape(value) != ():
        raise ValueError(f"{name} has shape {jnp.shape(value)}: it is one number; vmap over many")
    if is_concrete(value):
        plain = float(value)
        if not math.isfinite(plain) or plain < 0 or (positive and plain == 0):
            bound = "> 0" if positive else ">= 0"
            raise ValueError(f"{name} = {plain}: expected a finite number {bound}; {advice}")
    return jnp.asarray(value, jnp.result_type(prompt.x))


def schedule(values: ArrayLike, name: str, prompt: Prompt) -> Array:  # [steps]
    """One finite number for each step, in the precision of the prompt."""
    values = jnp.asarray(values, jnp.result_type(prompt.x))
    chex.assert_rank(values, 1, custom_message=f"{name} is [steps], one entry for each step")
    check_finite(values, name)
    return values
