"""Choice of a subset whose mean gradient is near that of its pool: the selection of CLG (A3).

    minimise over |S| = n   | (1/n) Σ_{j∈S} g_j - (1/m) Σ_i g_i |₂

greedily, then by single swaps (A3 and its code; docs/theory, "Greedy and swaps"). With
c_i = g_i - ḡ and C = Σ_S c_j the objective is |C|/n, and

    adding j:         |C + c_j|² - |C|²       = c_j·c_j + 2 C·c_j
    swapping i for j: |C - c_i + c_j|² - |C|² = c_j·c_j + 2 C·c_j + c_i·c_i - 2 C·c_i - 2 c_i·c_j

so that only the chosen candidates' rows of the Gram matrix are formed. |C|² is never added up from
these differences, which would lose half the digits: C is summed afresh after each swap, and the
swap is kept if C is then shorter.

    >>> selection = match(jnp.array([[0.0], [1.0], [4.0], [7.0], [8.0]]), 2)  # their mean is 4
    >>> print(jnp.sort(selection.indices), selection.objective)
    [1 3] 0.0
"""

import functools

import chex
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_at_least, check_finite, check_indices, check_size, is_concrete
from lsa_lab.prompts import to_native_order
from lsa_lab.selection.whitening import whiten_gradients

TOLERANCE = 1e-6  # a swap must shorten the gap by this share of it


class Selection(flax.struct.PyTreeNode):
    """The chosen candidates and the gaps on the way to them."""

    indices: Array  # [size]  in the order of choice; a swap puts the new candidate in place
    objective: Array  # []  the gap |mean of the chosen - mean of the pool|
    history: Array  # [size + swaps]  the gap after each addition and after each swap


def match(
    gradients: ArrayLike,  # [m, p]
    size: int,
    *,
    max_swaps: int = 1000,
    reverse: bool = False,
    whiten: bool = False,
) -> Selection:
    """Choose ``size`` candidates whose mean gradient is near that of all m.

        chosen = match(gradients, 128)  # NumPy or JAX, one row a candidate
        prompt = [pool[i] for i in chosen.indices]
        print(chosen.objective, "against", random_gap(gradients, 128), "at random")

    The greedy rule adds the candidate that brings the running mean nearest. Swaps follow, the best
    one each time, until no swap shortens the gap by more than 1e-6 of it (A3's code: by 1e-6).

    Args:
        gradients: floats; copies of a row are candidates of their own.
        size: the number of candidates to choose, 1 to m.
        max_swaps: the number of swaps allowed.
        reverse: make the gap as large as the greedy rule can, without swaps: A3's mismatching.
        whiten: match the rows of ``whiten_gradients(gradients, size)``; objective and history are
            theirs.

    Returns:
        The selection. Under jit and vmap its history has size + max_swaps entries, of which the
        last ones are equal. In float32 gaps below about 1e-6 of the gradients' spread are rounding.

    Raises:
        ValueError: an entry is not finite, or ``size`` or ``max_swaps`` is out of range.
    """
    gradients = _check(gradients, size)
    check_at_least(max_swaps, "max_swaps", 0)
    rows = whiten_gradients(gradients, size) if whiten else gradients
    indices, gaps, swaps = _match(rows, size, max_swaps, reverse)
    end = size + int(swaps) if is_concrete(swaps) else None
    return Selection(indices, gaps[-1], gaps[:end])


def gap(gradients: ArrayLike, indices: ArrayLike) -> Array:  # [m, p], [size] -> []
    """Return |mean of a subset's gradients - mean of all|; the indices are all different."""
    indices = jnp.asarray(to_native_order(indices))
    chex.assert_rank(indices, 1, custom_message="indices are [size]; use jax.vmap for many")
    gradients = _check(gradients, len(indices))
    check_indices(indices, len(gradients))
    if is_concrete(indices) and len(np.unique(indices)) < len(indices):
        raise ValueError("indices are not all different: a candidate is chosen at most once")
    centred, unit = _centre(gradients)
    return unit * jnp.linalg.norm(centred[indices].mean(0))


def random_gap(gradients: ArrayLike, size: int) -> Array:  # [m, p] -> []
    """Return the root mean square gap of all subsets of this size.

        E |mean_S g - ḡ|² = (1 - n/m) S²/n,  S² = Σ_i |g_i - ḡ|²/(m - 1)

    (docs/theory, "Random subsets"). It is at least their mean gap.
    """
    centred, unit = _centre(_check(gradients, size))
    m = len(centred)
    return unit * jnp.sqrt((1 - size / m) * (centred**2).sum() / (max(m - 1, 1) * size))


@functools.partial(jax.jit, static_argnames=("size", "max_swaps", "reverse"))
def _match(
    gradients: Array, size: int, max_swaps: int, reverse: bool
) -> tuple[Array, Array, Array]:
    """Return the indices [size], the gaps [size + max_swaps], and the number of swaps."""
    centred, unit = _centre(gradients)
    squares = (centred**2).sum(1)
    indices, gaps = _add_greedily(centred, squares, size, -1.0 if reverse else 1.0)
    gaps, swaps = jnp.pad(gaps, (0, max_swaps), mode="edge"), jnp.zeros((), int)
    if not reverse and size < len(centred):
        indices, gaps, swaps = _swap(centred, squares, indices, gaps, max_swaps)
    return indices, unit * gaps, swaps


def _add_greedily(centred: Array, squares: Array, size: int, sign: float) -> tuple[Array, Array]:
    """Return the indices and the gaps after each addition, [size] and [size]."""

    def add(state: tuple[Array, Array], t: Array) -> tuple[tuple, tuple]:
        total, taken = state
        change = sign * (squares + 2 * (centred @ total))
        j = jnp.where(taken, jnp.inf, change).argmin()
        total = total + centred[j]
        return (total, taken.at[j].set(True)), (j, jnp.linalg.norm(total) / t)

    start = jnp.zeros_like(centred[0]), jnp.zeros(len(centred), bool)
    return jax.lax.scan(add, start, jnp.arange(1, size + 1).astype(centred.dtype))[1]


def _swap(
    centred: Array, squares: Array, indices: Array, gaps: Array, max_swaps: int
) -> tuple[Array, Array, Array]:
    """Return the indices, the gaps and the number of swaps after the best swaps in turn."""
    size = len(indices)

    def swap(state: tuple) -> tuple:
        indices, total, scores, rows, gaps, swaps, _ = state  # scores c·C [m], rows c_i·c [size, m]
        entering = (squares + 2 * scores).at[indices].set(jnp.inf)
        leaving = squares[indices] - 2 * scores[indices]
        change = entering[None] + leaving[:, None] - 2 * rows
        i, j = jnp.unravel_index(change.argmin(), change.shape)
        changed = indices.at[i].set(j)
        shorter = centred[changed].sum(0)
        better = jnp.linalg.norm(shorter) < (1 - TOLERANCE) * jnp.linalg.norm(total)
        later = better & (jnp.arange(len(gaps)) >= size + swaps)
        gaps = jnp.where(later, jnp.linalg.norm(shorter) / size, gaps)
        products = centred @ jnp.stack([shorter, centred[j]], axis=1)  # one pass through memory
        rows = rows.at[i].set(products[:, 1])  # not read after a swap that is not kept
        indices, total = jnp.where(better, changed, indices), jnp.where(better, shorter, total)
        return indices, total, products[:, 0], rows, gaps, swaps + better.astype(int), better

    chosen = centred[indices]
    total, none, going_on = chosen.sum(0), jnp.zeros((), int), jnp.ones((), bool)
    start = (indices, total, centred @ total, chosen @ centred.T, gaps, none, going_on)
    end = jax.lax.while_loop(lambda state: state[-1] & (state[-2] < max_swaps), swap, start)
    return end[0], end[4], end[5]


@jax.jit
def _centre(gradients: Array) -> tuple[Array, Array]:  # [m, p], []
    """Return g_i - ḡ in units of its largest entry, so that squares neither overflow nor vanish.

    The unit is at least the rounding of the gradients: equal gradients are then centred to 0.
    """
    centred = gradients - gradients.mean(0)[None]
    centred = centred - centred.mean(0)[None]  # the first mean is rounded, for large m
    limits = jnp.finfo(centred.dtype)
    rounding = jnp.maximum(limits.eps * jnp.abs(gradients).max(), limits.tiny)
    unit = jnp.maximum(jnp.abs(centred).max(), rounding)
    return centred / unit, unit


def _check(gradients: ArrayLike, size: int) -> Array:  # [m, p]
    """Return the gradients as an array; refuse those from which ``size`` cannot be chosen."""
    gradients = jnp.asarray(to_native_order(gradients))
    chex.assert_rank(gradients, 2, custom_message="gradients are [m, p], one row a candidate")
    if not jnp.issubdtype(gradients.dtype, jnp.floating):
        raise ValueError(f"gradients are {gradients.dtype}: give floats, say astype(float)")
    check_size(size, len(gradients), "candidates")
    check_finite(gradients, "gradients")
    return gradients
