"""An edit: which places of which matrices in which layers are kept."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from jax import Array

from lsa_lab.analyses.clipping.factors import Factors
from lsa_lab.analyses.clipping.ranks import DROP, Rate, check_rate, kept_rank
from lsa_lab.analyses.clipping.rebuilds import rebuild, rebuild_touched
from lsa_lab.analyses.clipping.splits import Masks, Pieces, Split, by_singular_value
from lsa_lab.arguments import check_whole
from lsa_lab.models import leaves

Layers = int | tuple[int, ...]  # one layer, or several edited together
Risk = Callable[[Any, Any], Array]  # (params of one model, prompts [B]) -> the error of each [B]


@dataclasses.dataclass(frozen=True)
class Edit:
    """One rate for some modules of some layers, each of their matrices cut to its own kept rank.

    The rate "drop" keeps nothing; of attention and MLP together it removes a layer (A2's B.6).
    """

    layers: tuple[int, ...]
    modules: tuple[str, ...]
    rate: Rate

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", several(self.layers))
        object.__setattr__(self, "modules", several(self.modules))
        if self.rate != DROP:
            check_rate(self.rate)


def keep_masks(
    params: Any,
    pieces: Pieces,
    edit: Edit,
    heads: Sequence[int] | None = None,
    groups: Sequence[int] | None = None,
) -> Masks:
    """True at every place of ``pieces`` (those of one model) that the edit keeps.

    ``heads``, ``groups``: only these (see ``clip``), with pieces taken per head.
    """
    masks = {name: np.ones(piece.places, bool) for name, piece in pieces.items()}
    stacks = leaves.stacks(params, edit.modules)
    for name in (stack.name for stack in stacks):
        if name not in masks:
            raise ValueError(f"no pieces of {name}: split the params by every module edited")
        _check_indices("layer", edit.layers, masks[name].shape[0])
    where: dict[str, Any] = {stack.name: list(edit.layers) for stack in stacks}
    if heads is not None or groups is not None:
        chosen = _per_head(stacks, masks, heads, groups)
        where = {name: np.ix_(edit.layers, indices) for name, indices in chosen.items()}
    for name, places in where.items():
        full = masks[name].shape[-1]
        rank = 0 if edit.rate == DROP else kept_rank(full, edit.rate)
        masks[name][places] = np.arange(full) < rank
    return masks


def clip(
    params: Any,
    layers: Layers,
    modules: str | Iterable[str],
    rate: Rate,
    *,
    heads: Sequence[int] | None = None,
    groups: Sequence[int] | None = None,
    split: Split = by_singular_value,
) -> Any:
    """The params of one model, some modules of some layers cut at ``rate``; the first layer is 0.

    The heads of a projection are stacked into one matrix, unless ``heads`` names those whose own
    matrices are cut (see ``splits``). Where heads share keys and values, these are the heads of W_Q
    and W_O, and ``groups`` names the matrices of W_K and W_V. ``split``: another way to cut to the
    same size, or ``Factors``, so that no other layer is decomposed. A module of another model is a
    pattern of paths, ``layers_*/mlp/kernel`` (see ``models.leaves``).
    """
    edit = Edit(several(layers), several(modules), rate)
    leaves.check_one_model(params, edit.modules)
    check_groups(params, edit.modules, groups)
    pieces = split(params, edit.modules, per_head=heads is not None or groups is not None)
    masks = keep_masks(params, pieces, edit, heads, groups)
    put_back = rebuild_touched if isinstance(pieces, Factors) else rebuild
    return put_back(params, pieces, masks)


def distinct(masks: Sequence[Masks]) -> tuple[Masks, np.ndarray]:  # each [C', ...], [C]
    """The different masks among C that cut something, and where each of the C stands among them.

    Rates of one rank are one edit. Where nothing is cut the place is -1.
    """
    flat = np.stack([np.concatenate([m.ravel() for m in mask.values()]) for mask in masks])
    rows, first, place = np.unique(flat, axis=0, return_index=True, return_inverse=True)
    place = place.reshape(-1)
    cutting = ~rows.all(1)
    table = {name: np.stack([mask[name] for mask in masks])[first[cutting]] for name in masks[0]}
    renumbered = np.where(cutting, np.cumsum(cutting) - 1, -1)
    return table, renumbered[place]


def _check_indices(name: str, indices: Sequence[int], count: int) -> None:
    if not len(indices) or not all(0 <= check_whole(index, name) < count for index in indices):
        raise ValueError(f"{name}s {tuple(indices)}: this model has 0 to {count - 1}")


def check_groups(params: Any, modules: Iterable[str], groups: Sequence[int] | None) -> None:
    """Raise if groups are named where every head has its own keys and values."""
    if groups is not None and not any(s.axes.has_groups for s in leaves.stacks(params, modules)):
        raise ValueError(
            f"groups are given, and no matrix of {', '.join(modules)} is shared by heads: name "
            "heads alone"
        )


def _per_head(
    stacks: Iterable[leaves.Stack],
    masks: Masks,
    heads: Sequence[int] | None,
    groups: Sequence[int] | None,
) -> dict[str, Sequence[int]]:
    """The heads or groups of each matrix that are edited."""
    chosen: dict[str, Sequence[int]] = {}
    counts: dict[str, int] = {}
    for stack in stacks:
        name = stack.name
        kind, indices = ("group", groups) if stack.axes.has_groups else ("head", heads)
        if masks[name].ndim != 3:
            raise ValueError(f"{kind}s are given, but {name} is not split per head")
        if indices is None:
            raise ValueError(
                f"{name} has one matrix for each {kind}, and no {kind}s are given: give {kind}s= "
                "too, or choose other modules"
            )
        count = masks[name].shape[1]
        if counts.setdefault(kind, count) != count:
            raise ValueError(
                f"{name} has {count} {kind}s and the module before it {counts[kind]}: cut one "
                "after the other"
            )
        _check_indices(kind, indices, count)
        chosen[name] = indices
    return chosen


def several(values: Any) -> tuple:
    """Values as a tuple, one value too."""
    if isinstance(values, str | int | np.integer):
        return (values,)
    return tuple(values)
