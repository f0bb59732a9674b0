"""A sweep: one experiment along one field of its configuration, and a plot of one claim."""

import contextlib
import dataclasses
import textwrap
from pathlib import Path
from typing import Any

from lsa_lab.files import write_file
from lsa_lab.lab import arguments, batch, results, settings
from lsa_lab.lab.catalogue import Experiment, UsageError, check_known, relative
from lsa_lab.lab.commands import Run
from lsa_lab.lab.pages import format_value


def run_sweep(experiment: Experiment, command: Run) -> int:
    """Run an experiment at each value of one field; plot a claim against it."""
    name, _, text = command.sweep.partition("=")
    values = [value for value in text.split(",") if value]
    if not name or len(values) < 2:
        raise UsageError(f"--sweep {command.sweep}: write a field and values, as n=8,16,32")
    settings.configure(command.tier)
    module = experiment.load()
    points = [(*command.config, f"{arguments.PREFIX}{name}", value) for value in values]
    for point in points:  # a wrong value is refused before the first run
        arguments.parse_config(module, command.tier, point, experiment.name)
    claims = {claim.id: claim for claim in module.CLAIMS}
    chosen, tables = command.claim or module.CLAIMS[0].id, []
    check_known("claim", chosen, claims)
    for point in points:
        record = batch.run_one(experiment, dataclasses.replace(command, config=point))
        tables.append(record["claims"])
        for row in tables[-1]:
            if row["claim"] == chosen:
                print(f"  {name} = {point[-1]}, {row['id']}: {format_value(row)} {row['verdict']}")
    folder = batch.choose_root(command) / experiment.name / f"sweep,{name}"
    joined = join_claims(tables, name, values)
    write_file(folder / "result.nc", results.encode(joined, {"experiment": experiment.name}))
    draw_sweep(joined, claims[chosen], folder)
    print(relative((folder / "figure.pdf").resolve()))
    return 0


def join_claims(tables: list[list[dict[str, Any]]], name: str, values: list[str]) -> Any:
    """Return a Dataset of value, low and high of every cell (id, swept field)."""
    import pandas as pd

    places: list[Any] = list(values)
    with contextlib.suppress(ValueError):  # words
        places = list(map(float, values))
    frames = [pd.DataFrame(rows).set_index("id")[["value", "low", "high"]] for rows in tables]
    joined = pd.concat([frame.astype(float) for frame in frames], keys=places, names=[name])
    return joined.to_xarray().transpose("id", name)


def draw_sweep(joined: Any, claim: Any, folder: Path) -> None:
    """Draw one claim, a line for each of its cells, against the swept field."""
    from lsa_lab.lab import plotting

    (name,) = set(joined.dims) - {"id"}
    with plotting.context():
        picture, (ax,) = plotting.figure(4.0, 3.0)
        for cell in joined["id"].values:
            if cell.partition("[")[0] != claim.id:
                continue
            row = joined.sel(id=cell)
            bars = [(row.value - row.low).fillna(0), (row.high - row.value).fillna(0)]
            look = {"marker": "o", "capsize": 2, "elinewidth": 0.8, "label": cell}
            ax.errorbar(joined[name].values, row.value, bars, **look)
        quantity = claim.criterion.partition(":")[0]
        ax.set(xlabel=name, ylabel="\n".join(textwrap.wrap(quantity, 40)))
        ax.legend()
        for kind in ("pdf", "png"):
            write_file(folder / f"figure.{kind}", plotting.encode(picture, kind))
