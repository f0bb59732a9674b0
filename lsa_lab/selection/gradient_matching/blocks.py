"""``match`` for gradients that memory does not hold: the same choice, block by block.

Each addition and each swap needs the products of one candidate with all others: a walk through
the gradients.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import check_at_least
from lsa_lab.selection.gradient_matching.rules import (
    TOLERANCE,
    Certificate,
    Selection,
    best_swap,
    first,
    random_gap,
)
from lsa_lab.selection.gradient_matching.walks import Blocks, Pool


def match_blocks(
    blocks: Blocks,  # together [m, p]
    size: int,
    *,
    max_swaps: int = 1000,
    reverse: bool = False,
    together: int = 16,
) -> Selection:
    """``match`` of gradients that lie in a file or in blocks, or are computed for every walk.

        gradients = np.load("gradients.npy", mmap_mode="r")  # [m, p]
        chosen = match_blocks(gradients, 128)

    ``blocks``: what can be sliced by rows, as an array in a file; a list of arrays [b, p]; or a
    function each of whose calls walks through such arrays anew. At most size + swaps + 4 walks,
    twice as many through blocks from a function; fewer, for a walk takes ``together`` candidates.
    Memory holds their products with all others and some gradients: about (4 size + together)
    (m + p) numbers of the gradients' dtype, a quarter of a gigabyte for 128 of 100 000 in float32.
    """
    check_at_least(max_swaps, "max_swaps", 0)
    check_at_least(together, "together")
    pool = Pool(blocks, size, together)
    chosen, history = _greedy(pool, size, -1.0 if reverse else 1.0)
    if not reverse and size < pool.m:
        history = history + _swap(pool, chosen, max_swaps)
    certificate = _certificate(pool, chosen)
    gaps = pool.centre.scale * jnp.stack(history)
    return Selection(jnp.array(chosen.indices), certificate.objective, gaps, certificate)


class _Chosen:
    """The subset as it grows and changes: who, their rows c_i, and their products with all."""

    def __init__(self) -> None:
        self.indices: list[int] = []
        self.rows: list[Array] = []  # each [p]
        self.products: list[Array] = []  # each [m]

    def put(self, place: int, index: int, row: Array, products: Array) -> None:
        here = slice(place, place + 1)
        self.indices[here], self.rows[here], self.products[here] = [index], [row], [products]


def _greedy(pool: Pool, size: int, sign: float) -> tuple[_Chosen, list[Array]]:
    """The chosen, and the gap after each addition."""
    chosen, history = _Chosen(), []
    total, scores = jnp.zeros_like(pool.centre.mean), jnp.zeros_like(pool.squares)
    taken = jnp.zeros(pool.m, bool)
    for t in range(1, size + 1):
        j, change = _addition(pool.squares, total, scores, taken, sign)
        row, products = pool.candidate(int(j), change)
        chosen.put(t, int(j), row, products)
        total, scores, taken = total + row, scores + products, taken.at[j].set(True)
        history.append(jnp.linalg.norm(total) / t)
    return chosen, history


def _swap(pool: Pool, chosen: _Chosen, max_swaps: int) -> list[Array]:
    """The best swaps in turn, made in ``chosen``; the gap after each."""
    history: list[Array] = []
    while len(history) < max_swaps:
        total = jnp.stack(chosen.rows).sum(0)
        i, j, change = _exchange(pool.squares, total, *_arrays(chosen))
        row, products = pool.candidate(int(j), change)
        shorter = jnp.stack(chosen.rows).at[i].set(row).sum(0)
        if not jnp.linalg.norm(shorter) < (1 - TOLERANCE) * jnp.linalg.norm(total):
            break
        chosen.put(int(i), int(j), row, products)
        history.append(jnp.linalg.norm(shorter) / len(chosen.indices))
    return history


def _certificate(pool: Pool, chosen: _Chosen) -> Certificate:
    rows, size = jnp.stack(chosen.rows), len(chosen.indices)
    total = best = rows.sum(0)
    if size < pool.m:
        i, j, change = _exchange(pool.squares, total, *_arrays(chosen))
        best = total - rows[i] + pool.candidate(int(j), change)[0]
    copies = size - len(np.unique(np.asarray(rows), axis=0))
    gaps = pool.centre.scale * jnp.linalg.norm(jnp.stack([total, best]), axis=1) / size
    random = pool.centre.scale * random_gap(pool.squares.sum(), pool.m, size)
    return Certificate(gaps[0], gaps[1], random, jnp.array(copies))


def _arrays(chosen: _Chosen) -> tuple[Array, Array]:  # [size, m], [size]
    return jnp.stack(chosen.products), jnp.array(chosen.indices)


@functools.partial(jax.jit, static_argnames="sign")
def _addition(
    squares: Array, total: Array, scores: Array, taken: Array, sign: float
) -> tuple[Array, Array]:
    """Who is added, and what each would change."""
    change = jnp.where(taken, jnp.inf, sign * (squares + 2 * scores))
    return first(change, squares, total), change


@jax.jit
def _exchange(squares: Array, total: Array, rows: Array, indices: Array) -> tuple:
    """The place and who takes it, and the least that each would change."""
    scores = rows.sum(0)
    i, j = best_swap(squares, total, scores, rows, indices)
    leaving = squares[indices] - 2 * scores[indices]
    change = squares + 2 * scores + (leaving[:, None] - 2 * rows).min(0)
    return i, j, change.at[indices].set(jnp.inf)
