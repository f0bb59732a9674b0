"""Many edits of many models on the same prompts: one loop for those that halt before one layer."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from lsa_lab.analyses.clipping.edits import Risk
from lsa_lab.analyses.clipping.rebuilds import rebuild
from lsa_lab.analyses.clipping.splits import Masks
from lsa_lab.models import moments

Shorten = Callable[[Any, int], Any]  # (batch, n) -> the same prompts with n demonstrations

_ALL, _RUNS, _EDITS = PartitionSpec(), PartitionSpec("runs"), PartitionSpec("edits")
_CELLS = PartitionSpec("runs", "edits")
# Predictions of a whole model that take as long as compiling one more program: a second, and 15 µs
# each for four softmax layers of width 32.
_COMPILED = 2**16


class Averages(flax.struct.PyTreeNode):
    """The mean and the median over prompts. Stacks of linear layers explode on rare prompts, where
    the median alone says something."""

    mean: Array | np.ndarray
    median: Array | np.ndarray


def averages(
    models: tuple[Any, Any],  # params and pieces, every leaf [R, ...]
    table: Masks,  # each [C, ...]
    batch: Any,  # every leaf [B, ...]
    *,
    risk: Risk,
    shots: tuple[int, ...],
    shorten: Shorten,
) -> tuple[Averages, Averages, Averages]:  # [R, S], [R, C, S], [R, C, S]
    """The errors of every model, those after each edit, and the differences of the two.

    An edit leaves the layers before its first one as they are. Edits that share it are one loop,
    and what the loop does not change, the compiler computes once: the edited layers go on from the
    stream before them. Bits are those of a loop over all of them.
    """
    num_runs, num_prompts = (len(jax.tree.leaves(tree)[0]) for tree in (models, batch))
    num_edits = len(next(iter(table.values())))
    mesh = _mesh(num_runs, num_edits)
    models = jax.device_put(models, NamedSharding(mesh, _RUNS))
    batch = jax.device_put(batch, NamedSharding(mesh, _ALL))
    parts, places = [], [np.zeros(0, int)]
    for first, rows in _groups(table, _COMPILED / (num_runs * num_prompts)):
        part = _padded({name: masks[rows] for name, masks in table.items()}, mesh.shape["edits"])
        options = {"risk": risk, "shots": shots, "shorten": shorten, "mesh": mesh, "first": first}
        parts.append((_loops(models, part, batch, **options), len(rows)))
        places.append(rows)
    back = np.argsort(np.concatenate(places))

    def joined(*cells: Array) -> np.ndarray:  # of each part [R, C', S] -> [R, C, S]
        kept = [np.asarray(own)[:, :count] for own, (_, count) in zip(cells, parts, strict=True)]
        return np.concatenate(kept, axis=1)[:, back]

    unclipped = jax.tree.map(np.asarray, parts[0][0][0])
    return unclipped, *jax.tree.map(joined, *[edited for (_, *edited), _ in parts])


def errors_after(
    model: tuple[Any, Any],  # params and pieces
    table: Masks,  # each [C, ...]
    batch: Any,  # every leaf [B, ...]
    *,
    risk: Risk,
) -> np.ndarray:  # [C, B]
    """The errors of one model after each edit; another edit is not another program.

    Every device takes one edit at a time, and none is waited for before all are on their way.
    """
    num_edits = len(next(iter(table.values())))
    mesh = Mesh(np.array(jax.local_devices()).reshape(1, -1), ("runs", "edits"))
    together = mesh.shape["edits"]
    shared = jax.device_put((model, batch), NamedSharding(mesh, _ALL))
    table = _padded(table, together)
    parts = []
    for start in range(0, num_edits, together):
        part = {name: masks[start : start + together] for name, masks in table.items()}
        parts.append(_each(*shared, part, risk=risk, mesh=mesh))
    return np.concatenate([np.asarray(part) for part in parts])[:num_edits]


@functools.partial(moments.compiled, static_argnames=("risk", "mesh"))
def _each(
    model: tuple[Any, Any], batch: Any, table: dict[str, Array], *, risk: Risk, mesh: Mesh
) -> Array:  # [D, B]
    def own(model: tuple[Any, Any], batch: Any, table: dict[str, Array]) -> Array:  # [1, B]
        keep = {name: masks[0] for name, masks in table.items()}
        errors = risk(rebuild(*model, keep), batch)
        _check_errors(errors, batch)
        return errors[None]

    specs = (_ALL, _ALL, _EDITS)
    spread = jax.shard_map(own, mesh=mesh, in_specs=specs, out_specs=_EDITS, check_vma=False)
    return spread(model, batch, table)


@functools.partial(moments.compiled, static_argnames=("risk", "shots", "shorten", "mesh", "first"))
def _loops(
    models: tuple[Any, Any],
    table: dict[str, Array],
    batch: Any,
    *,
    risk: Risk,
    shots: tuple[int, ...],
    shorten: Shorten,
    mesh: Mesh,
    first: int,
) -> tuple[Averages, Averages, Averages]:
    """Each device takes its runs and its edits, one after the other, after one that cuts nothing,
    so that ``risk`` is compiled once for each of the shots."""

    def run(model: tuple[Any, Any], table: dict[str, Array], batch: Any) -> tuple:
        params, pieces = model
        cuts = [shorten(batch, n) for n in shots]

        def cell(base: Array, row: tuple[Array, dict]) -> tuple[Array, tuple]:  # [S, B]
            is_first, keep = row
            edited = rebuild(params, pieces, keep, first)
            errors = jnp.stack([risk(edited, cut) for cut in cuts])
            base = jnp.where(is_first, errors, base)
            change = jnp.where(is_first, 0, errors - base)  # not what rounding leaves
            return base, (_averages(errors), _averages(change))

        errors = jax.eval_shape(risk, params, cuts[0])
        _check_errors(errors, batch)
        nothing = jnp.zeros((len(cuts), *errors.shape), errors.dtype)
        whole = {name: jnp.ones((1, *masks.shape[1:]), bool) for name, masks in table.items()}
        rows = jax.tree.map(lambda *masks: jnp.concatenate(masks), whole, table)
        is_first = jnp.arange(len(next(iter(rows.values())))) == 0
        risks, changes = jax.lax.scan(cell, nothing, (is_first, rows))[1]
        unclipped = jax.tree.map(lambda cells: cells[0], risks)
        return unclipped, *jax.tree.map(lambda cells: cells[1:], (risks, changes))

    def runs(models: tuple[Any, Any], table: dict[str, Array], batch: Any) -> tuple:
        return jax.lax.map(lambda model: run(model, table, batch), models)

    specs = (_RUNS, _EDITS, _ALL)
    out_specs = (_RUNS, _CELLS, _CELLS)
    spread = jax.shard_map(runs, mesh=mesh, in_specs=specs, out_specs=out_specs, check_vma=False)
    return spread(models, table, batch)


def _groups(table: Masks, worth: float) -> Iterator[tuple[int, np.ndarray]]:
    """A layer, and the edits that begin there or after it.

    A further group is a further program, made where it spares the later edits ``worth`` walks
    through a whole model.
    """
    cut = [(~masks).any(tuple(range(2, masks.ndim))) for masks in table.values()]
    touched = np.any(cut, axis=0)  # [C, L]
    num_layers = touched.shape[1]
    begins = touched.argmax(1)
    starts = [int(begins.min(initial=num_layers)) % num_layers]
    for layer in range(starts[0] + 1, num_layers):
        spared = (begins >= layer).sum() * (layer - starts[-1]) / num_layers
        if spared >= worth:
            starts.append(layer)
    for start, stop in zip(starts, [*starts[1:], num_layers], strict=True):
        yield start, np.flatnonzero((begins >= start) & (begins < stop))


def _padded(table: Masks, multiple: int) -> Masks:
    """The same number of edits for each device; those added cut nothing."""

    def longer(masks: np.ndarray) -> np.ndarray:
        more = -len(masks) % multiple
        return np.concatenate([masks, np.ones((more, *masks.shape[1:]), bool)])

    return {name: longer(masks) for name, masks in table.items()}


def _check_errors(errors: Array | jax.ShapeDtypeStruct, batch: Any) -> None:
    num_prompts = len(jax.tree.leaves(batch)[0])
    if errors.shape != (num_prompts,):
        raise ValueError(
            f"risk gives shape {errors.shape}: expected ({num_prompts},), the error of each prompt"
        )


def _averages(errors: Array) -> Averages:  # [S, B] -> [S]
    return Averages(errors.mean(-1), jnp.median(errors, axis=-1))


def _mesh(num_runs: int, num_edits: int) -> Mesh:
    """The devices, as many as share the runs evenly, and of those left over as many as share the
    edits: one program, in which each takes its own."""
    devices = jax.local_devices()
    by_run = max(count for count in range(1, len(devices) + 1) if num_runs % count == 0)
    by_edit = max(min(len(devices) // by_run, num_edits), 1)
    return Mesh(np.array(devices[: by_run * by_edit]).reshape(by_run, by_edit), ("runs", "edits"))
