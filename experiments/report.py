"""What the results say: figures/CLAIMS.md, figures/index.html and the tables in README.md."""

import importlib
import json
import math
from dataclasses import dataclass
from pathlib import Path

from experiments import EXPERIMENTS
from experiments.runner import counts, folder_of
from lsa_lab import results
from lsa_lab.claims import Claim

BEGIN = "<!-- claims: begin -->"
END = "<!-- claims: end -->"

COLUMNS = ("Experiment", "Claim", "Source", "Criterion", "Measured", "95 % interval", "Verdict")
SHORT = ("Claim", "Source", "Measured", "95 % interval", "Verdict")

_INTRODUCTION = """\
# Claims

The bounds were fixed in the configurations before the first runs. Where the statistic was
changed after a result had been seen, the criterion says so. A claim holds if the whole interval
keeps the bound, fails if none of it does, and is undecided otherwise.
"""


@dataclass(frozen=True)
class Result:
    """One result.nc, judged."""

    name: str
    question: str
    tier: str
    folder: str  # relative to the report
    claims: list[Claim]
    provenance: dict[str, str]
    changed: str  # how its configuration differs from the tier's, or nothing

    @property
    def title(self) -> str:
        return self.name if self.tier == "laptop" else f"{self.name} ({self.tier})"


def collect(root: Path) -> list[Result]:
    """Every result under ``root``, in the order of EXPERIMENTS."""
    found = []
    for name, question in EXPERIMENTS.items():
        for tier in ("laptop", "paper"):
            folder = folder_of(name, tier, root)
            if (folder / "result.nc").exists():
                found.append(_read(root, folder, name, question, tier))
    return found


def write(root: Path, repository: Path | None = None) -> None:
    """CLAIMS.md and index.html under ``root``, and the tables in the repository's README.md."""
    found = collect(root)
    results.write(root / "CLAIMS.md", markdown(found).encode())
    results.write(root / "index.html", html(found).encode())
    print(f"{root / 'CLAIMS.md'}\n{root / 'index.html'}")
    readme = repository and repository / "README.md"
    if readme and readme.exists():
        old = readme.read_text(encoding="utf-8")
        new = between_markers(old, folded(found))
        if new != old:
            results.write(readme, new.encode())
            print(readme)


def markdown(found: list[Result]) -> str:
    parts = [_INTRODUCTION, table(COLUMNS, found), "\n## Where the numbers come from\n"]
    for result in found:
        parts.append(f"\n### {result.title}\n\n{result.question}\n\n")
        parts.extend(f"- {key}: {value}\n" for key, value in result.provenance.items())
        if result.changed:
            parts.append(f"- **not the tier's configuration**: {result.changed}\n")
    return "\n".join(parts[:2]) + "".join(parts[2:])


def html(found: list[Result]) -> str:
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
    return environment.get_template("index.html").render(results=found)


def table(columns: tuple[str, ...], found: list[Result]) -> str:
    """A Markdown table with one row for each claim."""
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    for result in found:
        for claim in result.claims:
            cells = {
                "Experiment": result.title,
                "Claim": claim.statement,
                "Source": claim.source,
                "Criterion": claim.criterion,
                "Measured": number(claim.value),
                "95 % interval": interval(claim.interval),
                "Verdict": f"**{claim.verdict}**",
            }
            escaped = (" ".join(cells[c].split()).replace("|", "\\|") for c in columns)
            lines.append("| " + " | ".join(escaped) + " |")
    return "\n".join(lines) + "\n"


def folded(found: list[Result]) -> str:
    """For each experiment its verdicts, figure and code in one line, its claims folded below."""
    parts = []
    for result in found:
        verdicts = counts([claim.verdict for claim in result.claims])
        parts.append(
            f"<details><summary><b>{result.title}</b>: {verdicts}</summary>\n\n{result.question} "
            f"[Figure](figures/{result.folder}/figure.pdf), "
            f"[code](experiments/{result.name}.py)\n\n{table(SHORT, [result])}\n</details>\n"
        )
    return "".join(parts)


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


def _read(root: Path, folder: Path, name: str, question: str, tier: str) -> Result:
    dataset = results.load(folder / "result.nc")
    claims = importlib.import_module(f"experiments.{name}").claims(dataset)
    ids = [claim.id for claim in claims]
    if len(set(ids)) < len(ids):
        raise ValueError(f"{name}: two claims have the same id, among {', '.join(ids)}")
    facts = dataset.attrs
    versions = json.loads(facts["versions"])
    commit = facts.get("git_commit", "unknown")
    seconds = facts.get("wall_time")
    provenance = {
        "tier": tier,
        "commit": commit + (", with uncommitted changes" if facts.get("git_dirty") else ""),
        "device": f"{facts['device_count']} x {facts['device']}",
        "precision": str(facts["precision"]),
        "versions": ", ".join(f"{package} {v}" for package, v in versions.items()),
        "wall time": "unknown, for it was resumed" if seconds is None else f"{seconds:.1f} s",
        "date": str(facts["date"]),
        "contents": f"sha256 {facts['contents_sha256']}",
    }
    # A value given on the command line, or a tier that was edited since the run.
    ran = json.loads(facts["config"])
    declared = results.plain(importlib.import_module(f"experiments.configs.{name}").TIERS[tier])
    changed = [k for k in ran | declared if ran.get(k, ...) != declared.get(k, ...)]
    text = "; ".join(f"{k} = {ran.get(k)}, declared {declared.get(k)}" for k in changed)
    relative = folder.relative_to(root).as_posix()
    return Result(name, question, tier, relative, claims, provenance, text)
