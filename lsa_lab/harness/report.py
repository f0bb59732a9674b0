"""What the results say: a page and a ledger for all, a README for each, the front page's table."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lsa_lab import results
from lsa_lab.claims import Claim
from lsa_lab.harness.folders import folder_of
from lsa_lab.harness.laboratory import Experiment
from lsa_lab.harness.outcomes import counts
from lsa_lab.harness.overrides import RefusalError
from lsa_lab.harness.runner import judged, load

BEGIN = "<!-- findings: begin -->"
END = "<!-- findings: end -->"

_INTRODUCTION = """\
# Claims

The bounds were fixed in the configurations before the first runs. Where the statistic was
changed after a result had been seen, the criterion says so. A claim holds if the whole interval
keeps the bound, fails if none of it does, and is undecided otherwise.
"""
_COLUMNS = ("Claim", "Source", "Criterion", "Measured", "95 % interval", "Verdict")


@dataclass(frozen=True)
class Result:
    """One result.nc, judged."""

    experiment: Experiment
    tier: str
    folder: str  # relative to the report
    caption: str
    claims: list[Claim]
    provenance: dict[str, str]

    @property
    def name(self) -> str:
        return self.experiment.name

    @property
    def question(self) -> str:
        return self.experiment.question

    @property
    def title(self) -> str:
        return self.name if self.tier == "laptop" else f"{self.name} ({self.tier})"

    @property
    def answer(self) -> str:
        """The first sentence of the caption."""
        first, stop, _ = self.caption.partition(". ")
        return f"{first}{stop}".strip()

    @property
    def counts(self) -> str:
        return counts([claim.verdict for claim in self.claims])


def collect(experiments: Iterable[Experiment], root: Path) -> tuple[list[Result], dict[str, str]]:
    """Every result of a tier under ``root``, and {name: why} of those that cannot be read.

    Results of a changed configuration have folders of their own and are not looked at.
    """
    whole, broken = [], {}
    for experiment in experiments:
        for tier in ("laptop", "paper"):
            folder = folder_of(experiment, tier, root)
            if not (folder / "result.nc").exists():
                continue
            try:
                whole.append(_read(root, folder, experiment, tier))
            except Exception as error:  # one broken folder does not stop the others
                why = f"{error}"
                if not isinstance(error, RefusalError):
                    why = (
                        f"{type(error).__name__}: {error}; if its doors have changed, run it again"
                    )
                broken[folder.relative_to(root).as_posix()] = why
    return whole, broken


def write(
    experiments: Iterable[Experiment], root: Path, readme: Path | None = None
) -> dict[str, str]:
    """CLAIMS.md, index.html and a README.md in each folder under ``root``, and the table between
    the markers of ``readme``; what could not be read, by folder."""
    whole, broken = collect(experiments, root)
    pages = {root / result.folder / "README.md": page(result) for result in whole}
    pages |= {root / "CLAIMS.md": ledger(whole, broken), root / "index.html": html(whole, broken)}
    if readme is not None and readme.exists():
        old = readme.read_text(encoding="utf-8")
        pages[readme] = between_markers(old, findings(whole, root))
    for path, text in pages.items():
        if not path.exists() or path.read_bytes() != text.encode():
            results.write(path, text.encode())
            print(path)
    return broken


def ledger(whole: Sequence[Result], broken: dict[str, str]) -> str:
    """CLAIMS.md: the claims of every result, one table a result."""
    parts = [_INTRODUCTION]
    parts += [f"\n- **{name} cannot be read**: {text}\n" for name, text in broken.items()]
    for result in whole:
        link = f"[{result.title}]({result.folder}/README.md)"
        parts.append(f"\n## {link}: {result.counts}\n\n{result.question}\n\n{table(result.claims)}")
    return "".join(parts)


def page(result: Result) -> str:
    """README.md of one result: question, answer, figure, claims, and where the numbers are from."""
    facts = "".join(f"- {key}: {value}\n" for key, value in result.provenance.items())
    return (
        f"# {result.title}\n\n**{result.question}**\n\n![{result.question}](figure.png)\n\n"
        f"{result.caption}\n\n[Vector figure](figure.pdf), [data](result.nc), "
        f"[configuration](config.json)\n\n## Claims: {result.counts}\n\n{table(result.claims)}\n"
        f"## Where the numbers come from\n\n{facts}"
    )


def findings(whole: Sequence[Result], root: Path) -> str:
    """The front page's table, a row an experiment."""
    rows = [("Question", "Answer", "Hold/fail/undecided", "Figure")]
    rows.append(("---",) * 4)
    for result in whole:
        verdicts = [claim.verdict for claim in result.claims]
        tally = "/".join(str(verdicts.count(v)) for v in ("holds", "fails", "undecided"))
        place = (root / result.folder).as_posix()
        link = f"[{result.title}]({place})"  # a forge shows the README of a folder
        rows.append((result.question, result.answer, tally, link))
    return _rows(rows)


def table(claims: Sequence[Claim]) -> str:
    """A Markdown table with one row for each claim."""
    rows = [_COLUMNS, ("---",) * len(_COLUMNS)]
    for claim in claims:
        measured = number(claim.value), interval(claim.interval), f"**{claim.verdict}**"
        rows.append((claim.statement, claim.source, claim.criterion, *measured))
    return _rows(rows)


def html(whole: Sequence[Result], broken: dict[str, str]) -> str:
    """One page without scripts, links to elsewhere or fonts of its own; figures lie beside it."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": number, "interval": interval}
    return environment.get_template("index.html").render(results=whole, broken=broken)


def between_markers(text: str, new: str) -> str:
    """``text`` with ``new`` between the two markers; unchanged if it has none."""
    if BEGIN not in text or END not in text:
        return text
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    return f"{before}{BEGIN}\n\n{new}\n{END}{after}"


def number(value: float) -> str:
    return f"{value:.3g}"


def interval(ends: tuple[float, float]) -> str:
    if ends == (-math.inf, math.inf):
        return "unknown"
    return f"[{number(ends[0])}, {number(ends[1])}]"


def _rows(rows: Sequence[Sequence[str]]) -> str:
    escaped = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in escaped)


def _read(root: Path, folder: Path, experiment: Experiment, tier: str) -> Result:
    dataset = load(experiment, tier, folder)
    facts = dataset.attrs
    commit = facts.get("git_commit", "unknown")
    seconds = facts.get("wall_time")
    versions = json.loads(facts["versions"]).items()
    provenance = {
        "tier": tier,
        "commit": commit + (", with uncommitted changes" if facts.get("git_dirty") else ""),
        "device": f"{facts['device_count']} x {facts['device']}",
        "precision": str(facts["precision"]),
        "versions": ", ".join(f"{package} {version}" for package, version in versions),
        "wall time": "unknown, for it was resumed" if seconds is None else f"{seconds:.1f} s",
        "date": str(facts["date"]),
        "contents": f"sha256 {facts['contents_sha256']}",
    }
    door = experiment.door("figure")
    caption = " ".join(door.caption(dataset).split())
    relative = folder.relative_to(root).as_posix()
    claims = judged(experiment, dataset)
    return Result(experiment, tier, relative, caption, claims, provenance)
