"""Digests of the programs that functions of arrays trace."""

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal


def digest(function: Callable, *arguments: Any) -> str:
    """Return the sha256 of the jaxpr that the arguments trace and of every array it closes over.

    New names and comments in the source leave the digest as it is; another operation, order or
    constant changes it. Raises ValueError for a callback: its host function is in no jaxpr.
    """
    closed = jax.make_jaxpr(function)(*arguments)
    total = hashlib.sha256(re.sub(r"0x[0-9a-f]+", "", str(closed)).encode())  # no addresses
    for constant in _constants(closed):
        if jax.dtypes.issubdtype(constant.dtype, jax.dtypes.prng_key):
            constant = jax.random.key_data(constant)
        array = np.asarray(constant)
        total.update(f"{array.dtype.name} {array.shape} ".encode() + array.tobytes())
    return total.hexdigest()


def _constants(closed: ClosedJaxpr) -> Iterator[Any]:
    """Yield the arrays of the program and of the programs inside it, which print cuts short."""
    yield from (np.asarray(x) if np.isscalar(x) else x for x in closed.consts)
    yield from _inside(closed.jaxpr)


def _inside(jaxpr: Jaxpr) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        if equation.primitive.name in ("pure_callback", "io_callback"):
            raise ValueError(
                f"{equation.primitive.name} calls a function of the host, which a checkpoint "
                "cannot know: compute it in jax, or train without a checkpoint"
            )
        for value in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda x: isinstance(x, ClosedJaxpr | Jaxpr)
        ):
            if isinstance(value, ClosedJaxpr):
                yield from _constants(value)
            elif isinstance(value, Jaxpr):
                yield from _inside(value)
        for variable in equation.invars:
            if isinstance(variable, Literal) and np.ndim(variable.val):
                yield variable.val
