"""Risk over the rate, the layer, the module, the shots and the seed, always on the same prompts."""

import itertools
from collections.abc import Sequence
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.analyses.clipping.cells import Averages, Shorten, averages
from lsa_lab.analyses.clipping.edits import (
    Edit,
    Layers,
    Risk,
    check_groups,
    distinct,
    keep_masks,
    several,
)
from lsa_lab.analyses.clipping.ranks import RATES, Rate
from lsa_lab.analyses.clipping.splits import Split, by_singular_value
from lsa_lab.models import leaves
from lsa_lab.prompts import Prompt

_ONE = (
    "the first axis of every leaf is that of runs; give one model such an axis of length 1, "
    "jax.tree.map(lambda leaf: leaf[None], params)"
)


class Curve(flax.struct.PyTreeNode):
    """R runs, S shots, K choices of layers, M of modules, Q rates.

    ``change`` is the average of clipped - unclipped over the same prompts: below 0, clipping helps.
    It is 0 exactly where a rate cuts nothing. Its spread is over runs: R numbers at each place.
    """

    unclipped: Averages  # [R, S]
    clipped: Averages  # [R, S, K, M, Q]
    change: Averages  # [R, S, K, M, Q]


def curve(
    risk: Risk,
    params: Any,  # every leaf [R, ...]
    batch: Any,  # Prompt or any other that ``risk`` takes, every leaf [B, ...]
    *,
    modules: Sequence[str | tuple[str, ...]],
    layers: Sequence[Layers] | None = None,
    rates: Sequence[Rate] = RATES,
    shots: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    groups: Sequence[int] | None = None,
    split: Split = by_singular_value,
    shorten: Shorten | None = None,
) -> Curve:
    """``risk`` of every model after every single edit, on the same prompts.

    A tuple in ``modules`` or ``layers`` is cut together; by default each layer alone. Prompts with
    fewer ``shots`` are the first demonstrations of the same prompts; of a batch that is no Prompt
    they are shorten(batch, n). ``split``: a rival such as
    ``by_magnitude``; ``heads``, ``groups``: see ``clip``. A matrix is decomposed once and edits
    that keep the same ranks are run once, one after the other, from the stream before their first
    layer: memory holds the errors [S, B] of one edit and that stream for each device, over which
    runs and edits are spread. ``risk`` is compiled once for each function object and first layer,
    so define it once; an error that overflows makes the averages NaN.
    """
    num_runs = _num_runs(params)
    shots, shorten = _shots(batch, shots, shorten)
    model = jax.tree.map(lambda leaf: leaf[0], params)
    together = _resolved(model, modules)
    every = tuple(itertools.chain(*together))
    check_groups(model, every, groups)
    pieces = split(params, every, per_head=heads is not None or groups is not None)
    first = jax.tree.map(lambda leaf: leaf[0], pieces)
    if layers is None:
        layers = range(next(iter(first.values())).places[0])
    grid = itertools.product(map(several, layers), together, rates)
    masks = [keep_masks(model, first, Edit(*edit), heads, groups) for edit in grid]
    table, place = distinct(masks)
    unclipped, clipped, change = averages(
        (params, pieces), table, batch, risk=risk, shots=shots, shorten=shorten
    )
    shape = (num_runs, len(shots), len(layers), len(together), len(rates))

    def at(uncut: np.ndarray, cells: np.ndarray) -> np.ndarray:  # [R, S], [R, C, S]
        every = np.concatenate([uncut[:, None], cells], axis=1)
        return every[:, place + 1].swapaxes(1, 2).reshape(shape)

    nothing = jax.tree.map(np.zeros_like, unclipped)
    both = jax.tree.map(at, (unclipped, nothing), (clipped, change))
    return Curve(unclipped, *both)


def _num_runs(params: Any) -> int:
    counts = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(params)}
    if len(counts) != 1 or () in counts:
        listed = sorted(count for shape in counts for count in shape)
        raise ValueError(
            f"the leaves of params have first axes of different sizes, {listed}: {_ONE}"
        )
    return counts.pop()[0]


def _resolved(model: Any, modules: Sequence[str | tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The names of each module's matrices in one run, whose leaves have lost their first axis."""
    try:
        return [leaves.resolve(model, module) for module in modules]
    except ValueError as error:
        raise ValueError(f"in the first run, {error}. In a curve {_ONE}") from None


def first_shots(batch: Prompt, n: int) -> Prompt:
    """The first n demonstrations of every prompt."""
    return batch.replace(x=batch.x[:, :n], y=batch.y[:, :n])


def whole(batch: Any, n: int) -> Any:
    """The batch as it is, whatever n."""
    return batch


def _shots(
    batch: Any, shots: Sequence[int] | None, shorten: Shorten | None
) -> tuple[tuple[int, ...], Shorten]:
    if shots is None:
        return (0,), whole
    if shorten is None:
        if not isinstance(batch, Prompt):
            raise TypeError(
                f"shots {tuple(shots)} of a batch that is {type(batch).__name__} and no Prompt: "
                "give shorten, a function (batch, n) -> the batch with n demonstrations"
            )
        available = batch.x.shape[1]
        if not all(0 <= n <= available for n in shots):
            raise ValueError(f"shots {tuple(shots)}: the prompts have {available} demonstrations")
    return tuple(int(n) for n in shots), shorten or first_shots
