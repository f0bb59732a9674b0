"""``match`` for gradients that memory does not hold: the same choice, block by block.

Each addition and each swap needs the products c_j · c_i of one candidate j with all others, which
is a walk through the gradients. The products of those that are likely next are taken along.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import chex
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_at_least, check_finite
from lsa_lab.selection.gradient_matching.rules import (
    TOLERANCE,
    Certificate,
    Selection,
    best_swap,
    first,
    random_gap,
)

Blocks = ArrayLike | Sequence[ArrayLike] | Callable[[], Iterable[ArrayLike]]

_ENTRIES = 2**20  # of the gradients, centred at a time: they stay in the caches
_KEPT = 3  # candidates at hand beside the chosen, for each of these


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
    pool = _Pool(blocks, size, together)
    chosen, history = _greedy(pool, size, -1.0 if reverse else 1.0)
    if not reverse and size < pool.m:
        history = history + _swap(pool, chosen, max_swaps)
    certificate = _certificate(pool, chosen)
    gaps = pool.centre.scale * jnp.stack(history)
    return Selection(jnp.array(chosen.indices), certificate.objective, gaps, certificate)


class _Centre(flax.struct.PyTreeNode):
    """c = ((g - mean) - rest) / scale: the mean of so many is rounded."""

    mean: Array  # [p]
    rest: Array  # [p]
    scale: Array  # []

    def rows(self, gradients: Array) -> Array:  # [b, p]
        return ((gradients - self.mean[None]) - self.rest[None]) / self.scale


class _Chosen:
    """The subset as it grows and changes: who, their rows c_i, and their products with all."""

    def __init__(self) -> None:
        self.indices: list[int] = []
        self.rows: list[Array] = []  # each [p]
        self.products: list[Array] = []  # each [m]

    def put(self, place: int, index: int, row: Array, products: Array) -> None:
        here = slice(place, place + 1)
        self.indices[here], self.rows[here], self.products[here] = [index], [row], [products]


class _Pool:
    """All candidates, walked through, and the few at hand."""

    def __init__(self, blocks: Blocks, size: int, together: int):
        if isinstance(blocks, Iterator):
            raise TypeError(
                "blocks is an iterator, which can be walked through once: give a list, an array in "
                "a file, or the function that makes the iterator; one walk is enough for project"
            )
        self.blocks, self.together = blocks, together
        self.hand: dict[int, tuple[Array, Array]] = {}  # c_j [p] and its products [m]
        self.most = _KEPT * size + together
        sums, counts, origin = [], [], None
        for piece in self._pieces():
            origin = jnp.asarray(piece[0]) if origin is None else origin
            sums.append(_sum(piece, origin))  # of differences, which lose fewer digits
            counts.append(len(piece))
        if origin is None:
            raise ValueError("no blocks: the gradients have no rows")
        self.m = sum(counts)
        if not 1 <= size <= self.m:
            raise ValueError(
                f"size = {size} of a pool of {self.m} candidates: choose 1 to {self.m}"
            )
        mean = origin + sum(sums) / self.m
        parts = [_spread(piece, mean) for piece in self._pieces()]
        rests, spans, largest = (jnp.stack(part) for part in zip(*parts, strict=True))
        check_finite(largest, "gradients")
        limits = jnp.finfo(mean.dtype)
        rounding = jnp.maximum(limits.eps * largest.max(), limits.tiny)
        scale = jnp.maximum(spans.max(), rounding)
        self.centre = _Centre(mean, rests.sum(0) / self.m, scale)
        self.squares = self._walk(_squares)

    def candidate(self, index: int, change: Array) -> tuple[Array, Array]:  # [p], [m]
        """c_j and its products with all; those whose ``change`` [m] is low may be next."""
        if index not in self.hand:
            count = min(self.together, self.m)
            low = np.argpartition(np.asarray(change), count - 1)[:count].tolist()
            wanted = [index, *(j for j in low if j != index and j not in self.hand)][:count]
            rows = self.centre.rows(self._gradients(wanted))
            padded = jnp.pad(rows, ((0, self.together - len(rows)), (0, 0)))
            products = self._walk(_products, padded).T
            self.hand |= {j: (rows[k], products[k]) for k, j in enumerate(wanted)}
            while len(self.hand) > self.most:
                del self.hand[next(iter(self.hand))]
        return self.hand[index]

    def _walk(self, function: Callable, *arguments: Any) -> Array:  # [m, ...]
        return jnp.concatenate([function(p, self.centre, *arguments) for p in self._pieces()])

    def _pieces(self) -> Iterator[Any]:
        """A few rows at a time, of every block."""
        width = None
        for block in self._blocks():
            chex.assert_rank(block, 2, custom_message="a block is [b, p], one row a candidate")
            width = width or block.shape[1]
            chex.assert_shape(block, (None, width), custom_message="blocks have the same width")
            if not jnp.issubdtype(block.dtype, jnp.floating):
                raise ValueError(f"gradients are {block.dtype}: give floats, say astype(float)")
            count = max(_ENTRIES // width, 1)
            for start in range(0, len(block), count):
                yield block[start : start + count]

    def _blocks(self) -> Iterable[Any]:
        blocks: Any = self.blocks
        if callable(blocks):
            return blocks()
        return [blocks] if hasattr(blocks, "shape") else blocks

    def _gradients(self, indices: list[int]) -> Array:  # [k, p]
        rows: dict[int, Array] = {}
        start = 0
        for block in self._blocks():
            stop = start + len(block)
            rows |= {j: jnp.asarray(block[j - start]) for j in indices if start <= j < stop}
            start = stop
            if len(rows) == len(indices):
                break
        return jnp.stack([rows[j] for j in indices])


def _greedy(pool: _Pool, size: int, sign: float) -> tuple[_Chosen, list[Array]]:
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


def _swap(pool: _Pool, chosen: _Chosen, max_swaps: int) -> list[Array]:
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


def _certificate(pool: _Pool, chosen: _Chosen) -> Certificate:
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


@jax.jit
def _sum(gradients: Array, origin: Array) -> Array:  # [b, p], [p] -> [p]
    return (gradients - origin[None]).sum(0)


@jax.jit
def _spread(gradients: Array, mean: Array) -> tuple[Array, Array, Array]:
    rows = gradients - mean[None]
    return rows.sum(0), jnp.abs(rows).max(), jnp.abs(gradients).max()


@jax.jit
def _squares(gradients: Array, centre: _Centre) -> Array:  # [b, p] -> [b]
    return (centre.rows(gradients) ** 2).sum(1)


@jax.jit
def _products(gradients: Array, centre: _Centre, rows: Array) -> Array:  # [b, p], [k, p] -> [b, k]
    return centre.rows(gradients) @ rows.T
