"""A subset of the pool whose mean gradient is that of the whole pool: the selection of CLG (A3).

    minimise over |S| = n   | (1/n) Σ_{j∈S} g_j - (1/m) Σ_i g_i |₂

greedily, then by single swaps (A3 and its code; docs/theory, "Greedy and swaps"). With
c_i = g_i - ḡ and C = Σ_S c_j the objective is |C|/n, and the rest comes from products of the c_i:

    adding j:         |C + c_j|² - |C|²       = c_j·c_j + 2 C·c_j
    swapping i for j: |C - c_i + c_j|² - |C|² = c_j·c_j + 2 C·c_j + c_i·c_i - 2 C·c_i - 2 c_i·c_j

Only the chosen's rows of the Gram matrix are formed. |C|² is not added up from differences, which
would lose half the digits: C is summed afresh, and a swap counts if that makes it shorter.

    >>> selection = match(jnp.array([[0.0], [1.0], [4.0], [7.0], [8.0]]), 2)  # their mean is 4
    >>> print(np.sort(selection.indices), selection.objective)
    [1 3] 0.0
"""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import (
    check_at_least,
    check_finite,
    check_indices,
    check_size,
    is_concrete,
)
from lsa_lab.prompts import in_native_order
from lsa_lab.selection.gradient_matching.blocks import match_blocks as match_blocks
from lsa_lab.selection.gradient_matching.rules import TOLERANCE, best_swap, first, random_gap
from lsa_lab.selection.gradient_matching.rules import Certificate as Certificate
from lsa_lab.selection.gradient_matching.rules import Selection as Selection
from lsa_lab.selection.gradient_matching.whitening import whitened as whitened


def match(
    gradients: ArrayLike,
    size: int,
    *,
    max_swaps: int = 1000,
    reverse: bool = False,
    whiten: bool = False,
) -> Selection:
    """Choose ``size`` demonstrations whose mean gradient is near that of all m.

        chosen = match(gradients, 128)               # [m, p], NumPy or JAX, one row a candidate
        prompt = [pool[i] for i in chosen.indices]
        print(chosen.objective, "against", chosen.certificate.random, "at random")

    Greedy on the running mean, then the best single swap until none shortens the gap by more than
    1e-6 of it (A3's code: by 1e-6). ``reverse`` makes the gap as large as greed can, without swaps:
    A3's mismatching. ``whiten`` matches all directions of the pool alike, not by their size, as far
    as ``size`` demonstrations can (``whitening``): objective, history and certificate are then
    those of ``whitened(gradients, size)``. Ties, up to rounding, go to the lowest index. Copies are
    candidates of their own, each chosen at most once; ``certificate.repeats`` counts them. May be
    jitted and vmapped; ``history`` then has size + max_swaps entries, the last ones equal. The
    precision is that of the gradients: in float32 gaps below about 1e-6 of their spread are
    rounding. In memory lie the gradients and their centred copy; larger ones: ``match_blocks``.
    """
    gradients = _admit(gradients, size)
    check_at_least(max_swaps, "max_swaps", 0)
    rows = whitened(gradients, size) if whiten else gradients
    selection, swaps = _match(rows, size, max_swaps, reverse)
    end = size + int(swaps) if is_concrete(swaps) else None
    selection = selection.replace(history=selection.history[:end])
    if not whiten:
        return selection
    repeats = certify(gradients, selection.indices).repeats  # white rows of copies are rounded
    return selection.replace(certificate=selection.certificate.replace(repeats=repeats))


def certify(gradients: ArrayLike, indices: ArrayLike) -> Certificate:  # [m, p], [size]
    """The certificate of any subset, of ``match`` or of a rival; its indices are all different."""
    indices = jnp.asarray(in_native_order(indices))
    chex.assert_rank(indices, 1, custom_message="indices are [size]; use jax.vmap for many")
    (size,) = jnp.shape(indices)
    gradients = _admit(gradients, size)
    m = len(gradients)
    check_indices(indices, m)
    if is_concrete(indices) and len(np.unique(indices)) < size:
        raise ValueError(f"indices of {m} candidates are different numbers from 0 to {m - 1}")
    return _certify(*_centred(gradients), indices)


def random_expectation(gradients: ArrayLike, size: int) -> Array:  # []
    """The mean squared gap of all subsets of this size; its root is at least their mean gap.

    E|mean_S g - ḡ|² = (1 - n/m) S²/n,  S² = Σ_i |g_i - ḡ|² / (m - 1).

    docs/theory, "Random subsets".
    """
    centred, scale = _centred(_admit(gradients, size))
    return (scale * random_gap((centred**2).sum(), len(centred), size)) ** 2


@functools.partial(jax.jit, static_argnames=("size", "max_swaps", "reverse"))
def _match(gradients: Array, size: int, max_swaps: int, reverse: bool) -> tuple[Selection, Array]:
    """The selection, and the number of swaps."""
    centred, scale = _centred(gradients)
    squares = (centred**2).sum(1)
    indices, gaps = _greedy(centred, squares, size, -1.0 if reverse else 1.0)
    history = jnp.concatenate([gaps, jnp.full(max_swaps, gaps[-1], gaps.dtype)])
    swaps = jnp.zeros((), int)
    if not reverse and size < len(centred):
        indices, history, swaps = _swap(centred, squares, indices, history, max_swaps)
    certificate = _certify(centred, scale, indices)
    return Selection(indices, certificate.objective, scale * history, certificate), swaps


def _greedy(centred: Array, squares: Array, size: int, sign: float) -> tuple:  # [size], [size]
    def add(state: tuple, t: Array) -> tuple[tuple, tuple]:
        total, taken = state
        change = sign * (squares + 2 * (centred @ total))
        j = first(jnp.where(taken, jnp.inf, change), squares, total)
        total = total + centred[j]
        return (total, taken.at[j].set(True)), (j, jnp.linalg.norm(total) / t)

    start = jnp.zeros_like(centred[0]), jnp.zeros(len(centred), bool)
    return jax.lax.scan(add, start, jnp.arange(1, size + 1).astype(centred.dtype))[1]


def _swap(centred: Array, squares: Array, indices: Array, history: Array, max_swaps: int) -> tuple:
    """The indices, the history, and the number of swaps."""
    size, chosen = len(indices), centred[indices]

    def swap(state: tuple) -> tuple:
        indices, total, scores, rows, history, swaps, _ = state
        i, j = best_swap(squares, total, scores, rows, indices)
        changed = indices.at[i].set(j)
        shorter = centred[changed].sum(0)
        better = jnp.linalg.norm(shorter) < (1 - TOLERANCE) * jnp.linalg.norm(total)
        later = better & (jnp.arange(len(history)) >= size + swaps)
        history = jnp.where(later, jnp.linalg.norm(shorter) / size, history)
        products = centred @ jnp.stack([shorter, centred[j]], axis=1)  # one walk through memory
        rows = rows.at[i].set(products[:, 1])  # nobody reads it after a swap that is not taken
        indices, total = jnp.where(better, changed, indices), jnp.where(better, shorter, total)
        return indices, total, products[:, 0], rows, history, swaps + better.astype(int), better

    total, none, going_on = chosen.sum(0), jnp.zeros((), int), jnp.ones((), bool)
    start = (indices, total, centred @ total, chosen @ centred.T, history, none, going_on)
    end = jax.lax.while_loop(lambda state: state[-1] & (state[-2] < max_swaps), swap, start)
    return end[0], end[4], end[5]


@jax.jit
def _certify(centred: Array, scale: Array, indices: Array) -> Certificate:
    m, size = len(centred), len(indices)
    squares, chosen = (centred**2).sum(1), centred[indices]
    total, rows = chosen.sum(0), chosen @ centred.T  # [p], [size, m]
    i, j = best_swap(squares, total, centred @ total, rows, indices)
    best = total - chosen[i] + centred[j] if size < m else total
    apart = squares[indices][None] - 2 * rows[:, indices]  # |c_i - c_j|² up to |c_i|²
    nearest = jnp.where(jnp.tri(size, k=-1, dtype=bool), apart, jnp.inf).argmin(1)
    copies = (chosen == chosen[nearest]).all(1) & (jnp.arange(size) > 0)
    gaps = scale * jnp.linalg.norm(jnp.stack([total, best]), axis=1) / size
    random = scale * random_gap((centred**2).sum(), m, size)
    return Certificate(gaps[0], gaps[1], random, copies.sum())


@jax.jit
def _centred(gradients: Array) -> tuple[Array, Array]:  # [m, p], []
    """g_i - ḡ in units of its largest entry, so that squares neither overflow nor vanish.

    Equal gradients are centred to a rounding of theirs, and compilers round it here and there in
    different ways: the unit is no smaller than that.
    """
    centred = gradients - gradients.mean(0)[None]
    centred = centred - centred.mean(0)[None]  # the first mean is rounded, for large m
    limits = jnp.finfo(centred.dtype)
    rounding = jnp.maximum(limits.eps * jnp.abs(gradients).max(), limits.tiny)
    scale = jnp.maximum(jnp.abs(centred).max(), rounding)
    return centred / scale, scale


def _admit(gradients: ArrayLike, size: int) -> Array:  # [m, p]
    gradients = jnp.asarray(in_native_order(gradients))
    chex.assert_rank(gradients, 2, custom_message="gradients are [m, p], one row a candidate")
    if not jnp.issubdtype(gradients.dtype, jnp.floating):
        raise ValueError(f"gradients are {gradients.dtype}: give floats, say astype(float)")
    m = len(gradients)
    check_size(size, m, "candidates")
    check_finite(gradients, "gradients")
    return gradients
