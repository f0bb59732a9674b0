"""Pages: README.md of a result, CLAIMS.md, claims.csv and index.html of all results."""

import csv
import importlib
import importlib.util
import io
import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from lsa_lab.lab import results
from lsa_lab.lab.catalogue import Experiment, UsageError, find
from lsa_lab.lab.progress import format_seconds
from lsa_lab.store.safe_files import write

Row = Mapping[str, Any]
HONESTY = (
    "The criteria of version 1.0 were chosen after results of earlier versions had been seen; "
    "they were written down before the runs shown here, on fresh seeds."
)
LEGEND = (
    "A claim **holds** if its 95 % interval lies within the bounds, **fails** if it lies outside, "
    "and is **undecided** otherwise; an **estimate** has no bounds. It is *registered* if the "
    "commit that computed the result already held the claim as it stands, else *exploratory*."
)


def format_value(row: Row) -> str:
    """Return value and interval of a row, as "0.12 [0.1, 0.14]"."""
    if row["low"] is None or row["low"] == row["high"]:
        return f"{row['value']:.3g}"
    return f"{row['value']:.3g} [{row['low']:.3g}, {row['high']:.3g}]"


def count_verdicts(rows: Iterable[Row]) -> str:
    """Return how many cells have each verdict, as "3 hold, 1 undecided"."""
    counts = Counter(row["verdict"] for row in rows)
    plural = {"holds": ("holds", "hold"), "fails": ("fails", "fail")}
    words = []
    for verdict, count in sorted(counts.items(), key=lambda item: -item[1]):
        one, many = plural.get(verdict, (verdict, verdict + "s" * (verdict == "estimate")))
        words.append(f"{count} {one if count == 1 else many}")
    return ", ".join(words)


def render_result(experiment: Experiment, record: Row, module: ModuleType) -> str:
    """Return the page of a result: question, figure, caption, claims, and how to run it again."""
    notes = [f"- `{claim.id}`: {claim.note}" for claim in module.CLAIMS if claim.note]
    registered = (
        f"Registered {record['registered']}, computed" if record["registered"] else "Computed"
    )
    context = (module.__doc__ or "").strip().partition("\n")[2].strip()
    command = f"lsa-lab run {experiment.name} --tier {record['tier']}"
    if experiment.package != "experiments":
        command += f" --package {experiment.package}"
    lines = [
        f"# {record['question']}",
        "",
        *([context, ""] if context else []),
        f"![{record['caption']}](figure.png)",
        "",
        record["caption"],
        "",
        *_claims_table(record["claims"]),
        "",
        *(["Notes:", "", *notes, ""] if notes else []),
        LEGEND,
        "",
        f"{registered} {record['date']}, {record['tier']} tier, {format_seconds(record['seconds'])}"
        + (f", commit {record['commit'][:12]}." if record["commit"] else "."),
        "Compute it again:",
        "",
        f"    {command}",
        "",
        "`result.nc` has the data (open it with xarray), `claims.json` the table above.",
    ]
    return "\n".join(lines) + "\n"


def _claims_table(rows: Sequence[Row]) -> list[str]:
    """Return a Markdown table: a claim, then a line for each of its cells."""
    lines = [
        "| Claim | Criterion | Value, 95 % interval | Units | Verdict | Null |",
        "|---|---|---|---|---|---|",
    ]
    for _, group in itertools.groupby(rows, key=lambda row: row["claim"]):
        cells = list(group)
        for i, row in enumerate(cells):
            claim = f"{row['statement']} ({row['source']}, `{row['claim']}`)"
            if i:
                claim = f"the same for {row['cell']}"
            verdict = f"{row['verdict']}, {row['status']}"
            values = (
                claim,
                row["criterion"] if i == 0 else "",
                format_value(row),
                str(row["runs"]),
                verdict,
                row["null"] if i == 0 else "",
            )
            lines.append(f"| {' | '.join(value.replace('|', chr(92) + '|') for value in values)} |")
    return lines


def report(package: str) -> list[Path]:
    """Write CLAIMS.md, claims.csv and index.html from the committed results of a package."""
    experiments = find(package)
    root = next((each.root for each in experiments.values()), Path.cwd())
    return write_report(root / "figures", _load_papers(package, root), package)


def write_report(figures: Path, papers: ModuleType | None, package: str) -> list[Path]:
    """Write the pages of all results below a folder; return their paths."""
    records = dict(results.find_records(figures))
    contents = {
        "CLAIMS.md": render_claims(records, papers),
        "claims.csv": render_csv(records),
        "index.html": render_index(records, papers),
    }
    for name, content in contents.items():
        write(figures / name, content.encode())
    return [figures / name for name in contents]


def _load_papers(package: str, root: Path) -> ModuleType | None:
    """Return ``papers.py`` of a package, if it has one."""
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    if importlib.util.find_spec(f"{package}.papers") is None:
        return None
    return importlib.import_module(f"{package}.papers")


def find_row(records: Mapping[str, Row], experiment: str, claim: str) -> Row | None:
    """Return the row of a primary claim, by its id; None if its result is not there.

    Raises UsageError if the result lacks the claim, or if the claim has several cells.
    """
    if experiment not in records or not claim:
        return None
    rows = [row for row in records[experiment]["claims"] if claim in (row["id"], row["claim"])]
    if len(rows) != 1:
        raise UsageError(
            f"papers.py: {claim!r} of {experiment} names {len(rows)} rows; name the id of one"
        )
    return rows[0]


def fill_finding(finding: str, row: Row) -> str:
    """Return the sentence of a finding with its number and the interval behind it."""
    names = {
        "value": lambda x: x,
        "percent": lambda x: 100 * x,
        "gain": lambda x: 100 * (x - 1),
        "loss": lambda x: 100 * (1 - x),
    }
    used = [name for name in names if f"{{{name}}}" in finding]
    ends = [row["low"], row["high"]]
    if not used or None in ends:
        return finding.format(**{name: f"{f(row['value']):.3g}" for name, f in names.items()})
    convert = names[used[0]]
    low, high = sorted(map(convert, ends))
    text = finding.format(**{used[0]: f"{convert(row['value']):.3g}"})
    return f"{text.rstrip('.')} [{low:.3g}, {high:.3g}]."


def paper_rows(records: Mapping[str, Row], papers: ModuleType | None) -> list[dict[str, str]]:
    """Return the table of the papers' statements: says, finding, verdict, null, proof."""
    rows = []
    for statement in papers.STATEMENTS if papers else ():
        row = find_row(records, statement.experiment, statement.claim)
        finding = "not computed for 1.0 yet"
        if row is not None:
            finding = fill_finding(statement.finding, row)
        elif not statement.experiment:
            finding = statement.finding
        status = "" if row is None or row["status"] == "registered" else ", exploratory"
        rows.append(
            {
                "key": statement.key,
                "says": statement.says,
                "finding": finding,
                "verdict": "proved" if not statement.experiment else "",
                "null": statement.null,
                "proof": statement.proof,
                "experiment": statement.experiment if row is not None else "",
            }
            | ({} if row is None else {"verdict": row["verdict"] + status})
        )
    return rows


def render_claims(records: Mapping[str, Row], papers: ModuleType | None) -> str:
    """Return CLAIMS.md: the statements of the papers in order, then the experiments by theme."""
    lines = ["# Claims", "", HONESTY, "", LEGEND, ""]
    if papers:
        lines += ["## What the papers say, and what we find", ""]
        for paper in papers.PAPERS:
            link = f"[{paper.arxiv}](https://arxiv.org/abs/{paper.arxiv})"
            lines.append(f"- **{paper.key}**: *{paper.title}*, {link}; we had {paper.text}.")
        lines += [
            "",
            "| The paper says | We find | Verdict | Null | Proved by |",
            "|---|---|---|---|---|",
        ]
        for row in paper_rows(records, papers):
            finding = row["finding"]
            if row["experiment"]:
                finding += f" ([{row['experiment']}]({row['experiment']}/README.md))"
            proof = f"[test](../{row['proof']})" if row["proof"] else ""
            cells = (f"{row['key']}: {row['says']}", finding, row["verdict"], row["null"], proof)
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    for theme, named in itertools.groupby(
        sorted(records.items(), key=lambda item: (item[1]["theme"], item[0])),
        key=lambda item: item[1]["theme"],
    ):
        lines += [f"## {(theme or 'Experiments').replace('_', ' ').capitalize()}", ""]
        for name, record in named:
            lines += [
                f"### [{name}]({name}/README.md)",
                "",
                f"{record['question']} {count_verdicts(record['claims'])}.",
                "",
                *_claims_table(record["claims"]),
                "",
            ]
    return "\n".join(lines).rstrip() + "\n"


def render_csv(records: Mapping[str, Row]) -> str:
    """Return every claim of all results as one table."""
    rows = [
        {"experiment": name} | row for name, record in records.items() for row in record["claims"]
    ]
    content = io.StringIO()
    if rows:
        writer = csv.DictWriter(content, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return content.getvalue()


def render_index(records: Mapping[str, Row], papers: ModuleType | None) -> str:
    """Return index.html: all figures, and the claims with filters."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lsa_lab.lab"), autoescape=True, trim_blocks=True
    )
    environment.filters["number"] = format_value
    environment.filters["counts"] = count_verdicts
    return environment.get_template("index.html").render(
        records=records,
        papers=papers.PAPERS if papers else (),
        statements=paper_rows(records, papers),
        legend=LEGEND.replace("*", ""),
        honesty=HONESTY,
    )
