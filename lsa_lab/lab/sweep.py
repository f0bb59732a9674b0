"""A sweep: one experiment along one field of its configuration, and a plot of one claim."""

import functools
from pathlib import Path
from typing import Any

from lsa_lab.files import write_file
from lsa_lab.lab import arguments, batch, results, settings
from lsa_lab.lab.catalogue import Experiment, UsageError, check_known, relative
from lsa_lab.lab.pages import format_value

COLUMNS = ("value", "low", "high")


def run_sweep(experiment: Experiment, command: arguments.Run, config: list[str]) -> int:
    """Run an experiment at each value of one field; plot a claim against it."""
    name, _, text = command.sweep.partition("=")
    values = [value for value in text.split(",") if value]
    if not name or len(values) < 2:
        raise UsageError(f"--sweep {command.sweep}: write a field and values, as n=8,16,32")
    settings.configure(command.tier)
    module = experiment.load()
    points = [[*config, f"{arguments.PREFIX}{name}", value] for value in values]
    for point in points:  # a wrong value is refused before the first run
        arguments.parse_config(module, command.tier, point, experiment.name)
    out = batch.choose_root(command)
    claims = {claim.id: claim for claim in module.CLAIMS}
    claim = command.claim or next(iter(claims))
    check_known("claim", claim, claims)
    records = []
    for point in points:
        record = batch.run_one(experiment, command=command, config=point, out=out)
        if isinstance(record, str):
            raise UsageError(f"{experiment.name}: {record}")
        records.append(record)
        for row in record["claims"]:
            if row["claim"] == claim:
                print(f"  {name} = {point[-1]}, {row['id']}: {format_value(row)} {row['verdict']}")
    folder = out / experiment.name / f"sweep,{name}"
    joined = join_claims(records, name, values)
    write_file(folder / "result.nc", results.encode(joined, {"experiment": experiment.name}))
    draw_sweep(joined, name, claim, claims[claim].criterion, folder)
    print(relative((folder / "figure.pdf").resolve()))
    return 0


def join_claims(records: list[dict[str, Any]], name: str, values: list[str]) -> Any:
    """Return a Dataset of value, low and high of every cell (claim, swept field)."""
    import numpy as np
    import xarray as xr

    ids = list(dict.fromkeys(row["id"] for record in records for row in record["claims"]))
    tables = [{row["id"]: row for row in record["claims"]} for record in records]

    def column(key: str) -> np.ndarray:
        cells = [[table.get(each, {}).get(key) for table in tables] for each in ids]
        return np.array([[np.nan if x is None else x for x in row] for row in cells], float)

    numbers = [_number(value) for value in values]
    data = {key: (("id", name), column(key)) for key in COLUMNS}
    return xr.Dataset(data, {"id": ids, name: numbers})


def _number(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


def draw_sweep(joined: Any, name: str, claim: str, criterion: str, folder: Path) -> None:
    """Draw one claim, a line for each of its cells, against the swept field."""
    import textwrap

    from lsa_lab.lab import plotting

    with plotting.context():
        picture, (ax,) = plotting.figure(4.0, 3.0)
        draw = functools.partial(ax.errorbar, marker="o", capsize=2, elinewidth=0.8)
        for each in joined["id"].values:
            if each == claim or str(each).startswith(f"{claim}["):
                row = joined.sel(id=each)
                bars = [row.value - row.low, row.high - row.value]
                draw(joined[name].values, row.value, [bar.fillna(0) for bar in bars], label=each)
        ax.set(xlabel=name, ylabel="\n".join(textwrap.wrap(criterion.partition(":")[0], 40)))
        ax.legend()
        for kind in ("pdf", "png"):
            write_file(folder / f"figure.{kind}", plotting.encode(picture, kind))
