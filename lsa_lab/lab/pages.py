"""Pages: README.md of a result; CLAIMS.md, claims.csv and index.html of all; and one a paper."""

import importlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from lsa_lab.files import write_file
from lsa_lab.lab import results
from lsa_lab.lab.catalogue import Experiment, UsageError, add_to_path
from lsa_lab.lab.progress import format_seconds

Row = Mapping[str, Any]
ABOUT = (
    "lsa_lab is a laboratory for the theory of in-context learning: it asks which algorithm a "
    "sequence model runs inside its prompt."
)
CONVERSIONS = {
    "value": lambda x: x,
    "percent": lambda x: 100 * x,
    "gain": lambda x: 100 * (x - 1),
    "loss": lambda x: 100 * (1 - x),
}


def format_value(row: Row) -> str:
    """Return value and interval of a row, as "0.12 [0.1, 0.14]"."""
    if row["low"] is None or row["low"] == row["high"]:
        return f"{row['value']:.3g}"
    return f"{row['value']:.3g} [{row['low']:.3g}, {row['high']:.3g}]"


def count_verdicts(rows: Iterable[Row]) -> str:
    """Return how many cells have each verdict, as "3 hold, 1 undecided"."""
    plurals = {"holds": "hold", "fails": "fail", "estimate": "estimates"}
    counts = Counter(row["verdict"] for row in rows).most_common()
    words = [f"{n} {word if n == 1 else plurals.get(word, word)}" for word, n in counts]
    return ", ".join(words)


def group_by_claim(rows: Iterable[Row]) -> list[tuple[str, list[Row]]]:
    """Return the rows of each claim, in order."""
    return [(claim, list(group)) for claim, group in itertools.groupby(rows, lambda r: r["claim"])]


def _render(template: str, **values: Any) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lsa_lab.lab"),
        autoescape=jinja2.select_autoescape(),
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": format_value, "counts": count_verdicts}
    environment.filters |= {"by_claim": group_by_claim, "seconds": format_seconds}
    environment.filters["cell"] = lambda text: text.replace("|", "\\|")
    text = environment.get_template(template).render(about=ABOUT, **values)
    return re.sub(r"\n{3,}", "\n\n", text).lstrip("\n")


def render_result(experiment: Experiment, record: Row, module: ModuleType) -> str:
    """Return the page of a result: question, figure, caption, claims, and how to run it again."""
    command = f"lsa-lab run {experiment.name} --tier {record['tier']}"
    if experiment.package != "experiments":
        command += f" --package {experiment.package}"
    context = (module.__doc__ or "").strip().partition("\n")[2].strip()
    notes = [f"`{claim.id}`: {claim.note}" for claim in module.CLAIMS if claim.note]
    prediction = experiment.figures / "prediction.json"
    predicted = json.loads(prediction.read_text())["date"] if prediction.exists() else ""
    values = {"context": context, "notes": notes, "command": command, "predicted": predicted}
    return _render("result.md", record=record, **values)


def load_papers(package: str, root: Path) -> Any:
    """Return the module ``papers`` of a package with PAPERS and STATEMENTS; None without one."""
    if not root.joinpath(*package.split("."), "papers.py").exists():
        return None
    add_to_path(root)
    return importlib.import_module(f"{package}.papers")


def write_report(figures: Path, papers: Any = None) -> list[Path]:
    """Write the pages of all results below a folder, and docs/papers; return their paths."""
    records = dict(results.find_records(figures))
    answers = answer_statements(records, papers.STATEMENTS) if papers else []
    values = {
        "records": records,
        "papers": papers.PAPERS if papers else (),
        "statements": answers,
        "themes": itertools.groupby(
            sorted(records.items(), key=lambda item: (item[1]["theme"], item[0])),
            key=lambda item: item[1]["theme"],
        ),
    }
    contents = {
        figures / "CLAIMS.md": _render("claims.md", **values),
        figures / "claims.csv": results.load_claims(figures).to_csv(index=False),
        figures / "index.html": _render("index.html", **values),
    }
    for paper in papers.PAPERS if papers else ():
        statements = [answer for answer in answers if answer["key"].startswith(f"{paper.key},")]
        page = figures.parent / "docs/papers" / f"{paper.key.lower()}.md"
        contents[page] = _render("paper.md", paper=paper, statements=statements)
    for path, content in contents.items():
        write_file(path, content.encode())
    return [*contents]


def answer_statements(
    records: Mapping[str, Row], statements: Iterable[Any]
) -> list[dict[str, Any]]:
    """Return each statement of the papers with our finding and its verdict, where computed."""
    answers = []
    for statement in statements:
        row = find_row(records, statement.experiment, statement.claim)
        finding, verdict = "not computed for 1.0 yet", ""
        if row is not None:
            finding, verdict = fill_finding(statement.finding, row), row["verdict"]
            verdict += "" if row["status"] == "registered" else ", exploratory"
        elif not statement.experiment:
            refuted = statement.counterexample and not statement.proof
            verdict = "published data" if statement.data else "refuted" if refuted else "proved"
            finding = statement.finding
        answer = {"computed": row is not None, "finding": finding, "verdict": verdict}
        answers.append(vars(statement) | answer | {"criterion": row["criterion"] if row else ""})
    return answers


def find_row(records: Mapping[str, Row], experiment: str, claim: str) -> Row | None:
    """Return the row of a primary claim, by its id; None if its result is not there.

    Raises UsageError if the result lacks the claim, or if the claim has several cells.
    """
    if experiment not in records:
        return None
    rows = [row for row in records[experiment]["claims"] if claim in (row["id"], row["claim"])]
    if len(rows) != 1:
        raise UsageError(
            f"papers.py: {claim!r} of {experiment} names {len(rows)} rows; name the id of one"
        )
    return rows[0]


def fill_finding(finding: str, row: Row) -> str:
    """Return the sentence of a finding with its number, and the interval behind it."""
    used = [name for name in CONVERSIONS if f"{{{name}}}" in finding]
    if not used:
        return finding
    convert = CONVERSIONS[used[0]]
    text = finding.format(**{used[0]: f"{convert(row['value']):.3g}"})
    if row["low"] is None:
        return text
    low, high = sorted([convert(row["low"]), convert(row["high"])])
    return f"{text.rstrip('.')} [{low:.3g}, {high:.3g}]."
