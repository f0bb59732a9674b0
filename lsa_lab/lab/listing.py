"""Tables for the terminal: the list of experiments, and two results side by side."""

import os
import shutil
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lsa_lab.files import cache_folder
from lsa_lab.lab import results
from lsa_lab.lab.catalogue import Experiment, UsageError, check_known
from lsa_lab.lab.pages import count_verdicts, format_value
from lsa_lab.lab.progress import format_seconds


def list_experiments(experiments: Mapping[str, Experiment]) -> str:
    """Return the experiments by theme: name, seconds of quick and full, question, verdicts."""
    if not experiments:
        return "no experiment in this package: lsa-lab new PACKAGE/NAME writes one"
    width = min(100, shutil.get_terminal_size().columns)
    lines, theme = [], None
    for experiment in sorted(experiments.values(), key=lambda each: (each.theme, each.name)):
        if experiment.theme != theme:
            theme = experiment.theme
            lines += ["", theme.replace("_", " ") or experiment.package]
        lines += _describe(experiment, width)
    lines += ["", "quick: the time of lsa-lab run NAME; full: the time of the committed result"]
    return "\n".join(lines).lstrip("\n")


def _describe(experiment: Experiment, width: int) -> list[str]:
    record: Mapping[str, Any] | None = None
    try:
        record = results.load_record(experiment.figures)
        verdicts = count_verdicts(record["claims"])
    except UsageError as error:
        verdicts = "no result yet" if "damaged" not in str(error) else "damaged result"
    quick = format_seconds(record["quick_seconds"] if record else None)
    full = format_seconds(record["seconds"] if record else None)
    head = f"  {experiment.name:26}quick {quick:>6}, full {full:>6}   {verdicts}"
    question = textwrap.wrap(
        experiment.question, width, initial_indent=" " * 6, subsequent_indent=" " * 6
    )
    return [head, *question]


def find_record(name: str, experiments: Mapping[str, Experiment], cached: bool) -> dict[str, Any]:
    """Return the record of a folder of results, or of an experiment: cached, or committed."""
    folder = Path(os.path.expanduser(name))
    if (folder / "claims.json").exists():
        return results.load_record(folder)
    check_known("experiment or folder", name, experiments)
    folder = cache_folder() / "figures" / name if cached else experiments[name].figures
    return results.load_record(folder)


def compare_records(left: Mapping[str, Any], right: Mapping[str, Any]) -> str:
    """Return the claims of two results side by side, with intervals and verdicts."""
    rows = [{row["id"]: row for row in record["claims"]} for record in (left, right)]
    names = list(rows[0] | rows[1])
    titles = [f"{record['tier']}, {record['date'][:10]}" for record in (left, right)]
    table = [("claim", *titles)]
    for name in names:
        cells = [_cell(row.get(name)) for row in rows]
        table.append((name, *cells))
    widths = [max(len(line[i]) for line in table) for i in range(3)]
    lines = [
        "  ".join(word.ljust(w) for word, w in zip(line, widths, strict=True)).rstrip()
        for line in table
    ]
    shared = [name for name in names if name in rows[0] and name in rows[1]]
    same = sum(rows[0][name]["verdict"] == rows[1][name]["verdict"] for name in shared)
    return "\n".join([*lines, f"{same} of {len(shared)} verdicts agree"])


def _cell(row: Mapping[str, Any] | None) -> str:
    return "-" if row is None else f"{format_value(row)} {row['verdict']}"
