"""A sweep: one experiment at several values of its keys, and what is judged as they change.

Each cell is computed, saved and judged as a run is, in a folder of its own; a cell that is there
is not computed again. One Dataset has all of them: of each judged number ``value``,
``interval_low``, ``interval_high`` and ``verdict`` along ``claim`` and the swept keys, and every
array of the results that has one shape in all cells.
"""

import re
import shutil
import textwrap
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from lsa_lab.harness.draw import pictures, style
from lsa_lab.harness.run import process, progress, records, runner, series
from lsa_lab.harness.run.outcomes import counts
from lsa_lab.harness.run.runner import Job
from lsa_lab.judging.claims import Claim
from lsa_lab.judging.statements import cells_of
from lsa_lab.judging.statistics import Interval, level
from lsa_lab.store import results, safe_files
from lsa_lab.training.status import DivergedError

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_LINES, _COLUMNS = 8, 3  # lines of a panel, panels of a row


def run(keys: list[str], cells: Mapping[tuple, Job]) -> int:
    """Carry out the cells, one after the other, then save and draw the sweep; the exit status: 1 if
    a cell could not be judged, 3 if one diverged."""
    console, statuses = Console(), [0]
    bars = progress.bars(console)
    datasets: dict[tuple, xr.Dataset] = {}
    claims: dict[tuple, list[Claim]] = {}
    with progress.screen(bars):
        every = bars.add_task("cells", total=len(cells), of_parts=True)
        for place, job in cells.items():
            words = ", ".join(f"{key} = {value}" for key, value in zip(keys, place, strict=True))
            process.free_mappings()
            try:
                with progress.own_bar(bars, words):
                    datasets[place], spent = _cell(job, bars)
                claims[place] = runner.judge_result(job.experiment, datasets[place])
                verdicts = counts([claim.verdict for claim in claims[place]])
                series.say(console, f"{words}: {spent}; {verdicts}")
            except DivergedError as error:
                statuses.append(series.DIVERGED)
                series.say(console, f"error: {words}: {error}")
            except (ValueError, safe_files.OwnedError) as error:
                statuses.append(1)
                series.say(console, f"error: {words} is not judged: {error}")
            bars.advance(every)
    if claims:
        _save(keys, cells, datasets, claims, console)
    return max(statuses)


def _save(
    keys: list[str],
    cells: Mapping[tuple, Job],
    datasets: "Mapping[tuple, xr.Dataset]",
    claims: Mapping[tuple, list[Claim]],
    console: Console,
) -> None:
    job = next(iter(cells.values()))
    folder = job.folder.parent
    values = (list(dict.fromkeys(axis)) for axis in zip(*cells, strict=True))
    axes = dict(zip(keys, values, strict=True))
    dataset = join_cells(axes, datasets, claims)
    config = results.plain(job.config) | {"sweep": axes}
    results.save(dataset, folder / "result.nc", config=config)
    by_id = {claim.id: claim for each in claims.values() for claim in each}
    bounds: dict[str, set[Interval]] = {id: set() for id in by_id}
    for place in claims:
        for cell in cells_of(records.statements(job.experiment, cells[place].config)):
            bounds[cell.id].add(cell.bounds)
    with style.context():
        pictures.save(plot(dataset, keys, by_id, bounds), folder)
    series.say(console, f"all cells in one Dataset: {folder / 'result.nc'}")
    series.say(console, f"what is judged: {folder / 'figure.pdf'}")


def _cell(job: Job, bars: Any) -> "tuple[xr.Dataset, str]":
    """The result of a cell, and the seconds that it took, unless it was there."""
    path = job.folder / "result.nc"
    try:
        return results.load(path, config=job.config), "kept"
    except (FileNotFoundError, ValueError):  # of another configuration, or damaged
        began = time.monotonic()
    with safe_files.owned(job.checkpoints), safe_files.owned(job.folder):
        dataset = runner.compute(job, bars)
        seconds = time.monotonic() - began
        results.save(dataset, path, config=job.config, wall_time=seconds)
        shutil.rmtree(job.checkpoints)
    return results.load(path, config=job.config), f"{seconds:.1f} s"


def join_cells(
    axes: Mapping[str, list],
    datasets: "Mapping[tuple, xr.Dataset]",
    claims: Mapping[tuple, list[Claim]],
) -> "xr.Dataset":
    """One Dataset with the swept keys as axes; NaN and "" where a cell has no such number."""
    import xarray as xr

    def is_shared(name: Any, array: "xr.DataArray") -> bool:
        others = [each.get(name) for each in datasets.values()]
        return not {"claim", *axes} & {name, *array.dims} and all(
            other is not None and other.sizes == array.sizes for other in others
        )

    first = next(iter(datasets.values()))
    shared = [name for name, array in first.data_vars.items() if is_shared(name, array)]
    parts, ids = [], list(dict.fromkeys(c.id for each in claims.values() for c in each))
    for place, each in claims.items():
        rows: dict[str, list] = {
            "value": [claim.value for claim in each],
            "verdict": [claim.verdict for claim in each],
            "interval_low": [claim.interval[0] for claim in each],
            "interval_high": [claim.interval[1] for claim in each],
        }
        part = xr.Dataset({name: ("claim", row) for name, row in rows.items()})
        part = part.assign_coords(claim=[claim.id for claim in each])
        own = datasets[place][shared].reset_coords(drop=True).drop_attrs()
        own = own.map(lambda array: array.astype(float) if array.dtype == bool else array)
        values = {key: [value] for key, value in zip(axes, place, strict=True)}
        parts.append(part.merge(own.drop_vars(list(rows), errors="ignore")).expand_dims(values))
    whole = xr.merge(parts, join="outer", compat="no_conflicts").reindex({**axes, "claim": ids})
    texts = {name: array for name, array in whole.data_vars.items() if array.dtype == object}
    return whole.assign({name: array.fillna("").astype(str) for name, array in texts.items()})


def plot(
    dataset: "xr.Dataset",
    keys: list[str],
    families: Mapping[str, Claim],
    bounds: Mapping[str, set[Interval]],
) -> "Figure":
    """What is judged over the first swept key, with intervals: a panel for each family of numbers,
    a line for each of its cells and each place on the other keys, and the bounds that they share.
    The sentence above says what is judged, not that it holds, nor at which value of a swept key."""
    panels: dict[str, list[str]] = {}
    for id, claim in families.items():
        panels.setdefault(claim.family.id if claim.family else id, []).append(id)
    rows = -(-len(panels) // _COLUMNS)
    columns = min(_COLUMNS, len(panels))
    picture, axes = style.figure(3.2 * columns, 2.6 * rows, (rows, columns))
    for ax, ids in zip(axes, panels.values(), strict=False):
        _panel(ax, dataset, keys, ids)
        claim = families[ids[0]]
        kept: set[Interval] = set().union(*(bounds[id] for id in ids))
        for bound in kept.pop() if len(kept) == 1 else ():
            if np.isfinite(bound):
                ax.axhline(bound, color="grey", lw=0.8, ls="--")
        says, criterion = claim.statement, claim.criterion
        if claim.family:
            says, criterion = claim.family.says, claim.family.criterion
        measured = re.split(" [<>]= | is estimated", criterion)[0]
        ax.set_title(_wrapped(f"Judged: {_without(says, keys)}", 46, 2), fontsize=7)
        words = f"{_wrapped(_without(measured, keys), 34, 3)}\n{level()} interval"
        ax.set_ylabel(words, fontsize=7)
        ax.set_xlabel(f"{keys[0]}")
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    return picture


def _wrapped(text: str, width: int, lines: int) -> str:
    return "\n".join(textwrap.wrap(text, width, max_lines=lines, placeholder=" ..."))


def _without(text: str, keys: list[str]) -> str:
    """A sentence without the values of the swept keys, "at n = 10"."""
    for key in keys:
        name = re.escape(key.rpartition(".")[2])
        text = re.sub(rf",?( (at|for|of|with))? \b{name} = [-+.\w]*\w", "", text)
    return text


def _panel(ax: "Axes", dataset: "xr.Dataset", keys: list[str], ids: list[str]) -> None:
    x = dataset[keys[0]].values
    is_number = np.issubdtype(x.dtype, np.number)
    places = x if is_number else np.arange(len(x))
    rest = dataset.sel(claim=ids).stack(line=("claim", *keys[1:]))
    for i in range(min(rest.sizes["line"], _MOST_LINES)):
        line = rest.isel(line=i)
        middle, low, high = (
            line[name].values for name in ("value", "interval_low", "interval_high")
        )
        claim, *others = line["line"].item() if keys[1:] else (line["line"].item()[0],)
        named = [claim] * (len(ids) > 1)
        named += [f"{key} = {value}" for key, value in zip(keys[1:], others, strict=True)]
        bars = np.nan_to_num(np.abs(np.stack([middle - low, high - middle])), posinf=0)
        ax.errorbar(places, middle, bars, marker="o", capsize=2, label=", ".join(named))
    if is_number and len(x) > 1 and x.min() > 0 and x.max() / x.min() >= 10:
        style.log_axes(ax, x=True, ticks=list(x))
    elif len(x) <= _MOST_LINES or not is_number:
        ax.set_xticks(places, [f"{value:g}" if is_number else str(value) for value in x])
    if rest.sizes["line"] > 1:
        ax.legend(fontsize=5)
