"""Risk over the rate, the layer, the module, the shots and the seed, always on the same prompts."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

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
from lsa_lab.analyses.clipping.rebuilds import rebuild
from lsa_lab.analyses.clipping.splits import Split, by_singular_value
from lsa_lab.models import leaves
from lsa_lab.prompts import Prompt

Shorten = Callable[[Any, int], Any]  # (batch, n) -> the same prompts with n demonstrations

_RUNS, _ALL = PartitionSpec("runs"), PartitionSpec()


class Averages(flax.struct.PyTreeNode):
    """The mean and the median over prompts. Stacks of linear layers explode on rare prompts, where
    the median alone says something."""

    mean: Array | np.ndarray
    median: Array | np.ndarray


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
    that keep the same ranks are run once, one after the other in one program: memory holds the
    errors [S, B] of one edit for each device, over which the runs are spread. ``risk`` is compiled
    once for each function object, so define it once; an error that overflows makes the averages
    NaN.
    """
    num_runs = _num_runs(params)
    shots, shorten = _shots(batch, shots, shorten)
    model = jax.tree.map(lambda leaf: leaf[0], params)
    together = [leaves.resolve(model, module) for module in modules]
    every = tuple(itertools.chain(*together))
    check_groups(model, every, groups)
    pieces = split(params, every, per_head=heads is not None or groups is not None)
    first = jax.tree.map(lambda leaf: leaf[0], pieces)
    if layers is None:
        layers = range(next(iter(first.values())).places[0])
    grid = itertools.product(map(several, layers), together, rates)
    masks = [keep_masks(model, first, Edit(*edit), heads, groups) for edit in grid]
    table, place = distinct(masks)
    table = {
        name: np.concatenate([np.ones_like(masks[0][name])[None], table[name]]) for name in table
    }
    mesh = _mesh(num_runs)
    models = jax.device_put((params, pieces), NamedSharding(mesh, _RUNS))
    shared = jax.device_put((table, batch), NamedSharding(mesh, _ALL))
    risks, changes = _all_runs(models, *shared, risk=risk, shots=shots, shorten=shorten, mesh=mesh)
    shape = (num_runs, len(shots), len(layers), len(together), len(rates))

    def at(cells: Array) -> np.ndarray:  # [R, 1 + C, S]
        return np.asarray(cells)[:, place + 1].swapaxes(1, 2).reshape(shape)

    unclipped = jax.tree.map(lambda cells: np.asarray(cells)[:, 0], risks)
    return Curve(unclipped, jax.tree.map(at, risks), jax.tree.map(at, changes))


@functools.partial(jax.jit, static_argnames=("risk", "shots", "shorten", "mesh"))
def _all_runs(
    models: tuple[Any, Any],  # params and pieces, every leaf [R, ...]
    table: dict[str, Array],  # each [C, ...]
    batch: Any,
    *,
    risk: Risk,
    shots: tuple[int, ...],
    shorten: Shorten,
    mesh: Mesh,
) -> tuple[Averages, Averages]:  # [R, C, S]
    """Averages of the errors after each edit, the first of which cuts nothing, and of their
    differences from that first: one loop, so that ``risk`` is compiled once for each of the shots.
    """

    def run(model: tuple[Any, Any], table: dict[str, Array], batch: Any) -> tuple:
        params, pieces = model
        cuts = [shorten(batch, n) for n in shots]

        def cell(base: Array, row: tuple[Array, dict]) -> tuple[Array, tuple]:  # [S, B]
            is_first, keep = row
            edited = rebuild(params, pieces, keep)
            errors = jnp.stack([risk(edited, cut) for cut in cuts])
            base = jnp.where(is_first, errors, base)
            change = jnp.where(is_first, 0, errors - base)  # not what rounding leaves
            return base, (_averages(errors), _averages(change))

        errors = jax.eval_shape(risk, params, cuts[0])
        nothing = jnp.zeros((len(cuts), *errors.shape), errors.dtype)
        is_first = jnp.arange(len(next(iter(table.values())))) == 0
        return jax.lax.scan(cell, nothing, (is_first, table))[1]

    def runs(models: tuple[Any, Any], table: dict[str, Array], batch: Any) -> tuple:
        return jax.lax.map(lambda model: run(model, table, batch), models)

    specs = (_RUNS, _ALL, _ALL)
    spread = jax.shard_map(runs, mesh=mesh, in_specs=specs, out_specs=_RUNS, check_vma=False)
    return spread(models, table, batch)


def _averages(errors: Array) -> Averages:  # [S, B] -> [S]
    return Averages(errors.mean(-1), jnp.median(errors, axis=-1))


def _mesh(num_runs: int) -> Mesh:
    """The devices, as many as share the runs evenly: one program, in which each takes its runs."""
    devices = jax.local_devices()
    count = max(count for count in range(1, len(devices) + 1) if num_runs % count == 0)
    return Mesh(np.array(devices[:count]), ("runs",))


def _num_runs(params: Any) -> int:
    counts = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(params)}
    if len(counts) != 1 or () in counts:
        listed = sorted(count for shape in counts for count in shape)
        raise ValueError(
            f"the leaves of params have {listed} runs in front: a curve takes runs on the leading "
            "axis of every leaf; give one model an axis of length 1"
        )
    return counts.pop()[0]


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
