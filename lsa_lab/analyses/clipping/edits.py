"""An edit keeps the first places of the matrices of some modules in some layers.

A2 truncates a projection as it is stored, with its heads joined into one matrix (``matrices``);
the merged w_kq and w_pv [L, H, e, e] are products of one head's projections and are edited per
head. Heads that a layer lacks are stored as zeros and count towards the joined matrix.

A matrix has min(p, q) places: the terms of its SVD, or parts of its entries in order of magnitude.
Both keep the same number of parameters at the same rate.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.analyses.clipping import ranks
from lsa_lab.analyses.clipping.ranks import DROP, Rate, check_rate, kept_rank, truncate
from lsa_lab.arguments import check_whole
from lsa_lab.models.matrices import matrices, replace_matrices

Layers = int | tuple[int, ...]  # one layer, or several edited together
Ranks = dict[str, np.ndarray]  # the places kept in each layer [L], by the name of the matrix


class Terms(flax.struct.PyTreeNode):
    """A matrix as Σ_i values_i left_i right_i, with r = min(p, q) terms."""

    left: Array  # [..., p, r]
    values: Array  # [..., r]
    right: Array  # [..., r, q]

    def keep(self, matrix: Array, rank: Array) -> Array:  # [..., p, q]
        """Return the sum of the first ``rank`` terms."""
        place = jax.lax.broadcasted_iota(rank.dtype, self.values.shape, self.values.ndim - 1)
        values = jnp.where(place < rank[..., None], self.values, 0)
        return ((self.left * values[..., None, :]) @ self.right).astype(matrix.dtype)


class Pruning(flax.struct.PyTreeNode):
    """The magnitudes of the entries of a matrix in falling order."""

    magnitudes: Array  # [..., p q]

    def keep(self, matrix: Array, rank: Array) -> Array:  # [..., p, q]
        """Return the ``count_parameters`` largest entries, and all that equal the last of them."""
        count = count_parameters(matrix.shape[-2], matrix.shape[-1], rank)
        last = jnp.take_along_axis(self.magnitudes, jnp.maximum(count, 1)[..., None] - 1, -1)
        is_kept = (jnp.abs(matrix) >= last[..., None]) & (count > 0)[..., None, None]
        return jnp.where(is_kept, matrix, 0)


Pieces = Mapping[str, Terms] | Mapping[str, Pruning]  # by the name of the matrix


def svd_terms(stacks: Mapping[str, Array]) -> dict[str, Terms]:
    """Return the singular value decomposition of each matrix [..., p, q] of ``matrices``."""
    return {name: Terms(*ranks.svd(stack)) for name, stack in stacks.items()}


def sorted_magnitudes(stacks: Mapping[str, Array]) -> dict[str, Pruning]:
    """Return the sorted magnitudes of the entries of each matrix."""

    def sort(stack: Array) -> Pruning:
        return Pruning(jnp.sort(jnp.abs(stack).reshape(*stack.shape[:-2], -1), descending=True))

    return {name: sort(jnp.asarray(stack)) for name, stack in stacks.items()}


def count_parameters(p: int, q: int, rank: Any) -> Any:
    """Return r (p + q - r), the number of parameters of a p x q matrix of rank r; p q at full rank.

    Its two factors hold r (p + q) numbers, and r² of them choose a basis.
    """
    return rank * (p + q - rank)


@dataclasses.dataclass(frozen=True)
class Edit:
    """A truncation of some modules of some layers at one rate.

    The rate "drop" keeps nothing; for attention and MLP together it removes a layer (A2's B.6).
    """

    layers: Layers
    modules: str | tuple[str, ...]
    rate: Rate

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", as_tuple(self.layers))
        object.__setattr__(self, "modules", as_tuple(self.modules))
        if self.rate != DROP:
            check_rate(self.rate)


def kept_ranks(params: Any, edit: Edit) -> Ranks:
    """Return the number of singular values (or entries) that an edit keeps, by matrix and layer."""
    layers, modules = as_tuple(edit.layers), as_tuple(edit.modules)
    kept = {}
    for name, stack in jax.eval_shape(lambda params: matrices(params, modules), params).items():
        num_layers, full = stack.shape[0], min(stack.shape[-2:])
        _check_layers(layers, num_layers)
        kept[name] = np.full(num_layers, full)
        kept[name][list(layers)] = 0 if edit.rate == DROP else kept_rank(full, edit.rate)
    return kept


@jax.jit
def rebuild(params: Any, pieces: Pieces, kept: Mapping[str, Array]) -> Any:
    """Return the params of one model, rebuilt from the singular values (or entries) that are kept.

    ``kept`` says how many those are in each layer [L] of some matrices, as ``kept_ranks`` does, and
    ``pieces`` are these matrices, decomposed. A matrix that keeps everything keeps its bits.
    """
    edited = {}
    for name, stack in matrices(params, list(kept)).items():
        rank = jnp.asarray(kept[name]).reshape(-1, *(1,) * (stack.ndim - 3))
        rank = jnp.broadcast_to(rank, stack.shape[:-2])
        is_whole = rank == min(stack.shape[-2:])
        edited[name] = jnp.where(is_whole[..., None, None], stack, pieces[name].keep(stack, rank))
    return replace_matrices(params, edited)


def clip(params: Any, layers: Layers, modules: str | Iterable[str], rate: Rate) -> Any:
    """Return the params of one model with some modules of some layers truncated at ``rate``.

    Only the matrices of these layers are decomposed. The first layer is 0.
    """
    layers, edited = as_tuple(layers), {}
    for name, stack in matrices(params, modules).items():
        _check_layers(layers, len(stack))
        rows = stack[np.array(layers)]
        new = jnp.zeros_like(rows) if rate == DROP else truncate(rows, rate)
        edited[name] = stack.at[np.array(layers)].set(new)
    return replace_matrices(params, edited)


def as_tuple(values: Any) -> tuple:
    """Return values as a tuple, a single value too."""
    if isinstance(values, str | int | np.integer):
        return (values,)
    return tuple(values)


def _check_layers(layers: tuple[int, ...], count: int) -> None:
    if not layers or not all(0 <= check_whole(layer, "layer") < count for layer in layers):
        raise ValueError(f"layers {layers}: this model has 0 to {count - 1}")
