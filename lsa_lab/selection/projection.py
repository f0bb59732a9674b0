"""Gradients too large for memory: their random projection, and the gap in their own space.

    v ↦ R v,  R [width, p] with independent entries N(0, 1/width)

keeps lengths: |R v|²/|v|² is χ²_width/width for any v fixed beforehand, of mean 1 and standard
deviation √(2/width); all of M such vectors are within a factor 1 ± ε with probability 1 - δ once
width ≥ 8 ln(2M/δ)/ε², ε < 1 (Johnson and Lindenstrauss 1984, with the χ² tail bound). A subset
found by its projected gap is not fixed beforehand: among so many subsets, some look better than
they are, the more the more directions the gradients have beyond ``width`` (p = 4096 without
structure, width 512: a gap of 1.6 projected, 5.3 in truth, 5.6 at random). So the gap of the chosen
deserves a second walk, with ``gap``:

    chosen = match(project(blocks(), key, 1024), 128)       # blocks() yields arrays [b, p]
    print(chosen.objective, "projected,", gap(blocks(), chosen.indices), "in truth")
"""

import functools
from collections.abc import Iterable

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_finite, check_indices, check_whole
from lsa_lab.prompts import in_native_order

_COLUMNS = 1024  # of R, drawn at a time and forgotten


def project(blocks: Iterable[ArrayLike], key: Array, width: int) -> Array:  # [m, width]
    """R g for the rows g of every block [b, p], one block in memory at a time.

    R depends on the key alone: blocks of any size give the same numbers up to rounding. Drawing it
    again for every block costs p·width random numbers, little beside blocks of many rows.
    """
    if check_whole(width, "width") < 1:
        raise ValueError(f"width = {width}: it is at least 1, and 8 ln(2M/δ)/ε² for M vectors")
    rows = [_project(block, key, width) for block in _admitted(blocks)]
    if not rows:
        raise ValueError("no blocks: an iterator that was walked through once is empty")
    return jnp.concatenate(rows)


def gap(blocks: Iterable[ArrayLike], indices: ArrayLike) -> Array:  # []
    """|mean_S g - ḡ|₂ of the rows themselves, in one walk; indices count through the blocks."""
    indices = np.asarray(indices)
    if indices.ndim != 1 or len(np.unique(indices)) != max(indices.size, 1):
        raise ValueError(f"indices of shape {indices.shape}: expected [k], one or more, all unlike")
    check_indices(indices, max(int(indices.max()) + 1, 1))
    origin, count = None, 0
    for block in _admitted(blocks):
        if origin is None:
            origin = block.mean(0)  # sums of differences from it lose fewer digits
            total = chosen = jnp.zeros_like(origin)
        rows = block - origin[None]
        here = indices[(indices >= count) & (indices < count + len(block))] - count
        total, chosen = total + rows.sum(0), chosen + rows[here].sum(0)
        count += len(block)
    if origin is None or indices.min() < 0 or indices.max() >= count:
        raise ValueError(f"indices up to {indices.max()} of {count} rows: has the iterator ended?")
    return jnp.linalg.norm(chosen / len(indices) - total / count)


def _admitted(blocks: Iterable[ArrayLike]) -> Iterable[Array]:
    width = None
    for number, block in enumerate(blocks):
        block = jnp.asarray(in_native_order(block))
        chex.assert_rank(block, 2, custom_message="a block is [b, p], one row a candidate")
        width = width or block.shape[1]
        chex.assert_shape(block, (None, width), custom_message="every block has the same width")
        check_finite(block, f"block {number}")
        yield block


@functools.partial(jax.jit, static_argnames="width")
def _project(block: Array, key: Array, width: int) -> Array:  # [b, p] -> [b, width]
    parts = -(-block.shape[1] // _COLUMNS)
    block = jnp.pad(block, ((0, 0), (0, parts * _COLUMNS - block.shape[1])))

    def add(rows: Array, part: Array) -> tuple[Array, None]:
        turn = jax.random.normal(jax.random.fold_in(key, part), (_COLUMNS, width), block.dtype)
        columns = jax.lax.dynamic_slice_in_dim(block, part * _COLUMNS, _COLUMNS, axis=1)
        return rows + columns @ turn, None

    start = jnp.zeros((len(block), width), block.dtype)
    return jax.lax.scan(add, start, jnp.arange(parts))[0] / width**0.5
