"""How the axes of a leaf make one matrix for each layer, and back.

One letter an axis: L layers, H heads, k the width of a head, any two others the matrix. Heads join
their k, in the order in which they are stacked, and stand apart where there is no k. "(4k)" are 4
heads in one axis. G in place of H are groups: each has the one matrix that its heads share. Axes
before these, such as runs, are kept.

    >>> kernel = jnp.arange(24.0).reshape(3, 2, 4)  # [D, H, k], as Flax has it
    >>> print(LeafAxes("DHk").stacked([kernel]).shape)
    (1, 3, 8)
    >>> print(LeafAxes("DHk").stacked([kernel], per_head=True).shape)
    (1, 2, 3, 4)
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array


@dataclass(frozen=True)
class LeafAxes:
    """The letters of a leaf, such as "pq", "LHkD" or "(4k)D"."""

    text: str

    @property
    def letters(self) -> str:
        """One letter for each axis, once folded heads are unfolded; groups are like heads."""
        return re.sub(r"\(\d+k\)", "Hk", self.text).replace("G", "H")

    @property
    def has_layers(self) -> bool:
        return "L" in self.letters

    @property
    def has_heads(self) -> bool:
        """Whether there is more than one matrix in a layer, of heads or of groups."""
        return "H" in self.letters

    @property
    def has_groups(self) -> bool:
        return "G" in self.text

    def stands_apart(self, per_head: bool) -> bool:
        """Whether every head is a matrix of its own."""
        return self.has_heads and (per_head or "k" not in self.letters)

    def fault(self, shape: tuple[int, ...]) -> str | None:
        """What speaks against these axes for a leaf of this shape."""
        letters, folded = self.letters, self._folded
        matrix = [letter for letter in letters if letter not in "LH"]
        distinct = letters.isalpha() and len(set(letters)) == len(letters) and len(matrix) == 2
        if (
            not distinct
            or ("k" in letters and not self.has_heads)
            or len(shape) < len(self._stored)
        ):
            return (
                f"{self.text!r} are no axes of a leaf of shape {shape}: give the two of a matrix, "
                "with L for layers and H for heads of width k, such as pq, Lpq, DHk or (4k)D"
            )
        if folded and (folded[0] == 0 or shape[folded[1]] % folded[0]):
            return f"{folded[0]} heads do not divide the axis of {shape[folded[1]]} in {shape}"
        return None

    def lead(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes of the axes before these, such as that of runs."""
        return shape[: len(shape) - len(self._stored)]

    def num_layers(self, shape: tuple[int, ...]) -> int:
        """The layers that one leaf holds."""
        return shape[self._stored.index("L") - len(self._stored)] if self.has_layers else 1

    def of_layer(self, leaves: Sequence[Array], layer: int) -> list[Array]:
        """The leaves, of those whose ``stacked`` are all layers, whose ``stacked`` is this one."""
        if not self.has_layers:
            return [leaves[layer]]
        after = len(self._stored) - self._stored.index("L") - 1
        return [leaves[0][..., layer : layer + 1, *[slice(None)] * after]]

    def stacked(
        self, leaves: Iterable[Array], per_head: bool = False
    ) -> Array:  # [..., L, p, q], per head and where heads stand apart [..., L, H, p, q]
        """The matrices of the leaves: of one that has layers, or of one for each layer."""
        parts = [self._unfolded(jnp.asarray(leaf)) for leaf in leaves]
        whole = parts[0] if self.has_layers else jnp.stack(parts, -len(self.letters) - 1)
        order = self._order(per_head)
        whole = whole.transpose(_permutation(whole.ndim, self._spread, order))
        if "Hk" not in order or per_head:
            return whole
        joined = order.index("H") - len(order)
        shape = whole.shape
        return whole.reshape(*shape[:joined], -1, *shape[joined + 2 or len(shape) :])

    def unstacked(self, matrix: Array, leaves: Sequence[Array]) -> list[Array]:
        """The leaves, of the same shapes as those given, whose ``stacked`` is the matrix."""
        first = jnp.asarray(leaves[0])
        unfolded = self._unfolded(first).shape
        num_lead = len(unfolded) - len(self.letters)
        sizes = {"L": len(leaves)} | dict(zip(self.letters, unfolded[num_lead:], strict=True))
        order = self._order(per_head=matrix.ndim - num_lead == 4)
        whole = matrix.reshape(*unfolded[:num_lead], *(sizes[letter] for letter in order))
        whole = whole.transpose(_permutation(whole.ndim, order, self._spread))
        if self.has_layers:
            return [whole.reshape(first.shape)]
        layers = range(len(leaves))
        return [jnp.take(whole, t, axis=num_lead).reshape(first.shape) for t in layers]

    def from_layer(
        self, first: int, leaves: Sequence[Array], others: Sequence[Array]
    ) -> list[Array]:
        """The leaves before layer ``first``, and others, of the same shapes, from there on."""
        if first == 0:
            return list(others)
        if not self.has_layers:
            return [*leaves[:first], *others[first:]]
        axis = self._stored.index("L") - len(self._stored)
        before, after = (
            jnp.split(leaves[0], [first], axis)[0],
            jnp.split(others[0], [first], axis)[1],
        )
        return [jnp.concatenate([before, after], axis)]

    @property
    def _stored(self) -> str:
        """The letters of the leaf as it is stored, # for folded heads."""
        return re.sub(r"\(\d+k\)", "#", self.text)

    @property
    def _spread(self) -> str:
        """The letters once the layers are stacked."""
        return self.letters if self.has_layers else f"L{self.letters}"

    @property
    def _folded(self) -> tuple[int, int] | None:
        """The number of folded heads, and their axis from the end."""
        folded = re.search(r"\((\d+)k\)", self.text)
        return (int(folded[1]), self._stored.index("#") - len(self._stored)) if folded else None

    def _unfolded(self, leaf: Array) -> Array:
        if self._folded is None:
            return leaf
        num_heads, axis = self._folded
        before, after = leaf.shape[:axis], leaf.shape[leaf.ndim + axis + 1 :]
        return leaf.reshape(*before, num_heads, -1, *after)

    def _order(self, per_head: bool) -> str:
        """The letters of the matrices, layers first; Hk where heads are stacked."""
        row, column = (letter for letter in self.letters if letter not in "LH")
        if not self.has_heads:
            return f"L{row}{column}"
        if self.stands_apart(per_head):
            return f"LH{row}{column}"
        return "L" + f"{row}{column}".replace("k", "Hk")


def _permutation(ndim: int, before: str, after: str) -> list[int]:
    lead = ndim - len(before)
    return [*range(lead), *(lead + before.index(letter) for letter in after)]
