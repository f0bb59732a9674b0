"""Risk over the rate, the layer, the module, the shots and the run, always on the same prompts."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.analyses.clipping.edits import (
    Edit,
    Layers,
    Pieces,
    Ranks,
    as_tuple,
    kept_ranks,
    rebuild,
    svd_terms,
)
from lsa_lab.analyses.clipping.ranks import RATES, Rate
from lsa_lab.models.matrices import matrices
from lsa_lab.models.moments import compiled

Risk = Callable[[Any, Any], Array]  # (params of one model, prompts [B]) -> the error of each [B]


class Averages(flax.struct.PyTreeNode):
    """The mean and the median over prompts. Stacks of linear layers explode on rare prompts: there
    only the median is informative."""

    mean: Array | np.ndarray
    median: Array | np.ndarray


class Curve(flax.struct.PyTreeNode):
    """Risks of R runs, S shots, K choices of layers, M of modules and Q rates.

    ``change`` is the average of clipped - unclipped over the same prompts: below 0, clipping helps.
    It is exactly 0 where a rate cuts nothing. Its spread is over runs: R numbers at each place.
    """

    unclipped: Averages  # [R, S]
    clipped: Averages  # [R, S, K, M, Q]
    change: Averages  # [R, S, K, M, Q]


def curve(
    risk: Risk,
    params: Any,  # every leaf [R, ...]
    batch: Any,  # every leaf [B, ...]
    *,
    modules: Sequence[str | tuple[str, ...]],
    layers: Sequence[Layers] | None = None,
    rates: Sequence[Rate] = RATES,
    shots: Sequence[int] | None = None,
) -> Curve:
    """Return the risk of every model after every single edit; errors that overflow make it NaN.

    Args:
        risk: returns the errors [B] of one model; compiled once for each function object.
        params: models of R runs; the first axis of every leaf is that of runs.
        batch: a Prompt or anything else that ``risk`` takes.
        modules: names or patterns of ``matrices``; those in a tuple are cut together.
        layers: by default each layer alone; those in a tuple are cut together.
        rates: shares of the singular values to cut, or "drop".
        shots: numbers of demonstrations; the first ones of the same prompts. All by default.

    Raises:
        ValueError: leaves without a common axis of runs; a module, layer or number of shots that
            does not exist; errors of another shape.
    """
    num_runs = _count_runs(params)
    together = [as_tuple(module) for module in modules]
    names = list(dict.fromkeys(itertools.chain(*together)))
    stacks = jax.vmap(lambda model: matrices(model, names))(params)
    if layers is None:
        layers = range(next(iter(stacks.values())).shape[1])
    edits = [Edit(*edit) for edit in itertools.product(layers, together, rates)]
    table, places, whole = tabulate(jax.tree.map(lambda leaf: leaf[0], params), names, edits)
    models, batches = (params, svd_terms(stacks)), _shorten(batch, shots)
    cells = [_average(models, table, part, whole, risk=risk) for part in batches]
    risks, changes = jax.tree.map(lambda *shots: np.stack(shots, axis=1), *cells)  # [R, S, C]
    shape = (num_runs, len(batches), len(layers), len(together), len(rates))
    clipped, change = jax.tree.map(lambda x: x[:, :, places].reshape(shape), (risks, changes))
    return Curve(jax.tree.map(lambda x: x[:, :, whole], risks), clipped, change)


def tabulate(
    params: Any, modules: Sequence[str], edits: Sequence[Edit]
) -> tuple[Ranks, np.ndarray, int]:  # each [C, L]; [E]; a row
    """Return the distinct ranks that edits keep, the row of each edit, and that of no edit.

    Rates that keep the same rank are one row, which is computed once.
    """
    everything = kept_ranks(params, Edit(0, tuple(modules), 0.0))
    kept = [everything, *(everything | kept_ranks(params, edit) for edit in edits)]
    flat = np.stack([np.concatenate(list(ranks.values())) for ranks in kept])
    _, first, places = np.unique(flat, axis=0, return_index=True, return_inverse=True)
    table = {name: np.stack([kept[row][name] for row in first]) for name in everything}
    places = places.reshape(-1)
    return table, places[1:], int(places[0])


def edited_errors(
    risk: Risk, params: Any, pieces: Pieces, table: Ranks, batch: Any
) -> Array:  # [C, B]
    """Return the errors of one model after each edit of ``table``, one edit after the other."""
    num_prompts = len(jax.tree.leaves(batch)[0])

    def measure(kept: dict[str, Array]) -> Array:
        errors = risk(rebuild(params, pieces, kept), batch)
        if errors.shape != (num_prompts,):
            raise ValueError(
                f"risk returns shape {errors.shape}: expected ({num_prompts},), the error of each "
                "prompt"
            )
        return errors

    return jax.lax.map(measure, table)


@functools.partial(compiled, static_argnames="risk")
def _average(
    models: tuple[Any, Pieces], table: Ranks, batch: Any, whole: Array, *, risk: Risk
) -> tuple[Averages, Averages]:  # [R, C]
    """Average the errors after each edit, and their differences to the row without an edit."""

    def average(model: tuple[Any, Pieces]) -> tuple[Averages, Averages]:
        errors = edited_errors(risk, *model, table, batch)
        change = errors - errors[whole][None]
        return (
            Averages(errors.mean(1), jnp.median(errors, axis=1)),
            Averages(change.mean(1), jnp.median(change, axis=1)),
        )

    return jax.lax.map(average, models)


def _count_runs(params: Any) -> int:
    counts = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(params)}
    if len(counts) != 1 or () in counts:
        listed = sorted(count for shape in counts for count in shape)
        raise ValueError(
            f"the leaves of params have first axes of different sizes, {listed}: the first axis of "
            "every leaf is that of runs; give one model such an axis of length 1, "
            "jax.tree.map(lambda leaf: leaf[None], params)"
        )
    return counts.pop()[0]


def _shorten(batch: Any, shots: Sequence[int] | None) -> list[Any]:
    """Return the batch with each number of demonstrations."""
    if shots is None:
        return [batch]
    available = batch.x.shape[1]
    if not all(0 <= n <= available for n in shots):
        raise ValueError(f"shots {tuple(shots)}: the prompts have {available} demonstrations")
    return [batch.replace(x=batch.x[:, :n], y=batch.y[:, :n]) for n in shots]
