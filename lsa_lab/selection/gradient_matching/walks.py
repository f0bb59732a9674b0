"""Gradients that memory does not hold, walked through block by block.

The products c_j · c_i of one candidate j with all others are a walk through the gradients; those of
candidates that are likely next are taken along.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import chex
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_finite, check_size

Blocks = ArrayLike | Sequence[ArrayLike] | Callable[[], Iterable[ArrayLike]]

_ENTRIES = 2**20  # of the gradients, centred at a time: they stay in the caches
_KEPT = 3  # candidates at hand beside the chosen, for each of these


class Centre(flax.struct.PyTreeNode):
    """c = ((g - mean) - rest) / scale: the mean of so many is rounded."""

    mean: Array  # [p]
    rest: Array  # [p]
    scale: Array  # []

    def rows(self, gradients: Array) -> Array:  # [b, p]
        return ((gradients - self.mean[None]) - self.rest[None]) / self.scale


class Pool:
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
        check_size(size, self.m, "candidates")
        mean = origin + sum(sums) / self.m
        parts = [_spread(piece, mean) for piece in self._pieces()]
        rests, spans, largest = (jnp.stack(part) for part in zip(*parts, strict=True))
        check_finite(largest, "gradients")
        limits = jnp.finfo(mean.dtype)
        rounding = jnp.maximum(limits.eps * largest.max(), limits.tiny)
        scale = jnp.maximum(spans.max(), rounding)
        self.centre = Centre(mean, rests.sum(0) / self.m, scale)
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


@jax.jit
def _sum(gradients: Array, origin: Array) -> Array:  # [b, p], [p] -> [p]
    return (gradients - origin[None]).sum(0)


@jax.jit
def _spread(gradients: Array, mean: Array) -> tuple[Array, Array, Array]:
    rows = gradients - mean[None]
    return rows.sum(0), jnp.abs(rows).max(), jnp.abs(gradients).max()


@jax.jit
def _squares(gradients: Array, centre: Centre) -> Array:  # [b, p] -> [b]
    return (centre.rows(gradients) ** 2).sum(1)


@jax.jit
def _products(gradients: Array, centre: Centre, rows: Array) -> Array:  # [b, p], [k, p] -> [b, k]
    return centre.rows(gradients) @ rows.T
