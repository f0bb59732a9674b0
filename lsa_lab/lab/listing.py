"""Tables for the terminal: the list of experiments, and two results side by side."""

import contextlib
import math
import os
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lsa_lab.files import cache_folder
from lsa_lab.lab import results
from lsa_lab.lab.catalogue import Experiment, UsageError, check_known
from lsa_lab.lab.pages import count_verdicts, format_value
from lsa_lab.lab.progress import format_seconds

Row = Mapping[str, Any]
VERDICTS = (
    "hold, fail, undecided: the 95 % interval of a claim lies within its bounds, outside, or on "
    "one; an estimate has no bounds"
)


def list_experiments(experiments: Mapping[str, Experiment], papers: Any = None) -> str:
    """Return the experiments by theme: name, seconds of quick and full, question, verdicts."""
    if not experiments:
        return "no experiment in this package: lsa-lab new PACKAGE/NAME writes one"
    width, lines, theme = min(100, shutil.get_terminal_size().columns), [], None
    for experiment in sorted(experiments.values(), key=lambda x: (x.theme, x.name)):
        if experiment.theme != theme:
            theme = experiment.theme
            lines += ["", theme.replace("_", " ") or experiment.package]
        lines += _describe(experiment, width)
    notes = [
        "quick: the time of lsa-lab run NAME; full: the time of the committed result",
        VERDICTS,
    ]
    if papers is not None:
        keys = (f"{x.key}: {x.title} (arXiv {x.arxiv})" for x in papers.PAPERS)
        notes += [*keys, "A number such as 2306.09927 is that of another paper on arXiv."]
    lines.append("")
    for note in notes:
        lines += textwrap.wrap(note, width, subsequent_indent="    ")
    return "\n".join(lines).lstrip("\n")


def _describe(experiment: Experiment, width: int) -> list[str]:
    record, verdicts = dict[str, Any](), "no result yet"
    try:
        if (experiment.figures / "claims.json").exists():
            record = results.load_record(experiment.figures)
            verdicts = count_verdicts(record["claims"])
    except UsageError as error:
        verdicts = str(error)
    quick, full = (format_seconds(record.get(name)) for name in ("quick_seconds", "seconds"))
    head = f"  {experiment.name:26}quick {quick:>6}, full {full:>6}   {verdicts}"
    question = textwrap.wrap(experiment.question, width - 6)
    return [head, *(f"      {line}" for line in question)]


def find_record(name: str, experiments: Mapping[str, Experiment], cached: bool) -> dict[str, Any]:
    """Return the record of a folder of results, or of an experiment: cached, or committed."""
    folder = Path(os.path.expanduser(name))
    if not (folder / "claims.json").exists():
        check_known("experiment or folder", name, experiments)
        folder = cache_folder() / "figures" / name if cached else experiments[name].figures
    return results.load_record(folder)


def find_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the claims of a result; none if it is not there."""
    try:
        return results.load_record(folder)["claims"]
    except UsageError:
        return []


def compare_records(left: Row, right: Row) -> str:
    """Return the claims of two results side by side, with intervals and verdicts."""
    rows = [{row["id"]: row for row in record["claims"]} for record in (left, right)]
    table = [("claim", *(f"{record['tier']}, {record['date'][:10]}" for record in (left, right)))]
    for name in rows[0] | rows[1]:
        cells = [row.get(name) for row in rows]
        table.append((name, *(f"{format_value(x)} {x['verdict']}" if x else "-" for x in cells)))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    ]
    return "\n".join([*lines, describe_difference(left["claims"], right["claims"])])


def describe_difference(rows: Sequence[Row], others: Sequence[Row], which: str = "") -> str:
    """Return by how much the values of claims differ, relatively, and whether verdicts agree."""
    by_id = {row["id"]: row for row in others}
    pairs = [(row, by_id[row["id"]]) for row in rows if row["id"] in by_id]
    values = [(a["value"], b["value"]) for a, b in pairs]
    largest = max((abs(a - b) / max(abs(a), abs(b), 1e-300) for a, b in values), default=math.nan)
    agree = sum(a["verdict"] == b["verdict"] for a, b in pairs)
    verdicts = "" if agree == len(pairs) else f"{agree} of {len(pairs)} "
    return f"numbers differ {which}by {largest:.0e}; {verdicts}verdicts agree"


def expect_seconds(experiment: Experiment, tier: str, folder: Path) -> float | None:
    """Return the seconds of the last run of this tier and configuration, None if unknown.

    ``folder`` is that of the result; without a result in it the committed one counts.
    """
    folders = (folder, experiment.figures) if folder.name == experiment.name else (folder,)
    for path in folders:
        with contextlib.suppress(UsageError):
            record = results.load_record(path)
            if record["tier"] == tier:
                return record["seconds"]
            if tier == "quick" and record["quick_seconds"]:
                return record["quick_seconds"]
    return None
