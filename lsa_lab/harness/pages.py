"""How results read: verdicts in words, tables of claims, the ledger, the page of all figures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lsa_lab.claims import Claim
from lsa_lab.harness.headlines import Headline
from lsa_lab.harness.outcomes import counts

if TYPE_CHECKING:
    from lsa_lab.harness.report import Result

_RULE = """\
A claim holds if its whole interval keeps the bound, fails if none of it does, and is undecided
otherwise. It is thin if an end of the interval is nearer to the bound than a tenth of its width.
The bounds stand in the experiments' configurations; whatever was changed or added after a look at
results is said in the row, and whether fresh runs judge it. A worst place is chosen by the judged
runs themselves unless the row says otherwise, which makes a row harder to hold and easier to fail.
"""
_HEADLINE_COLUMNS = (
    *("Paper", "It says", "Tried on", "Measured", "95 % interval", "Verdict", "All at once"),
    "Where",
)
_COLUMNS = ("Claim", "Source", "Criterion", "Measured", "95 % interval", "Verdict")


@dataclass(frozen=True)
class HeadlineRow:
    """One statement of a paper beside what was found."""

    headline: Headline
    result: "Result | None"  # None where a theorem decides
    claim: Claim | None
    family: Claim | None  # with the interval that all headlines share

    @property
    def verdict(self) -> str:
        return f"{self.headline.proved}" if self.claim is None else self.claim.verdict

    @property
    def doubt(self) -> str:
        return "proved" if self.claim is None else doubt(self.claim)

    @property
    def family_verdict(self) -> str:
        return self.verdict if self.family is None else self.family.verdict


def headline_rows(headlines: Sequence[Headline], whole: Sequence["Result"]) -> list[HeadlineRow]:
    """The headlines whose experiments have results; a row that none of them has raises."""
    results = {result.name: result for result in whole}
    rows = []
    for headline in headlines:
        name, _, id = headline.row.partition(".")
        if not id:
            rows.append(HeadlineRow(headline, None, None, None))
        elif name in results:
            claims = {claim.id: claim for claim in results[name].claims}
            if id not in claims:
                raise ValueError(f"{headline.place}: {name} has no row {id!r}")
            rows.append(HeadlineRow(headline, results[name], claims[id], results[name].family[id]))
    return rows


def summary(whole: Sequence["Result"]) -> str:
    """As "365 claims: 173 hold, 114 fail, 78 undecided; 12 of the decided are thin, 50 ..."."""
    claims = [claim for result in whole for claim in result.claims]
    thin, revised = sum(claim.thin for claim in claims), [c for c in claims if c.revision]
    afresh = sum(bool(claim.redrawn) for claim in revised)
    again = sum(bool(claim.redrawn) for claim in claims) - afresh
    return (
        f"{len(claims)} claims: {counts([claim.verdict for claim in claims])}. {thin} of the "
        f"decided are thin. {len(revised)} were changed or added after a look at results; "
        f"{afresh} of these are judged by runs drawn after the change. {again} others were drawn "
        "anew as they stood."
    )


def family_level(front: Sequence[HeadlineRow]) -> str:
    """What the headline verdicts say together."""
    judged = [(row.claim, row.family) for row in front if row.claim and row.family]
    stand = sum(alone.verdict == together.verdict for alone, together in judged)
    return (
        "Tried on: theorem, proved for all sizes; toy, weights that were constructed, drawn or "
        "briefly trained; trained, models whose risk is near the best known; real table, data. "
        f"{len(judged)} of these verdicts rest on samples. At 95 % each about one in twenty "
        f"intervals misses its truth. The last column judges with intervals of "
        f"{100 * (1 - 0.05 / max(1, len(judged))):.2f} %, so that all of them cover at once with "
        f"probability 95 % (Bonferroni): {stand} of {len(judged)} verdicts stay."
    )


def ledger(
    whole: Sequence["Result"], broken: dict[str, str], front: Sequence[HeadlineRow] = ()
) -> str:
    """CLAIMS.md: the headlines, then the claims of every result, one table a result."""
    parts = [f"# Claims\n\n{_RULE}\n{summary(whole)}\n"]
    parts += [f"\n- **{name} cannot be read**: {text}\n" for name, text in broken.items()]
    if front:
        parts.append(f"\n## Headlines\n\n{family_level(front)}\n\n{headline_table(front)}")
    for result in whole:
        link = f"[{result.title}]({result.folder}/README.md)"
        parts.append(f"\n## {link}: {result.counts}\n\n{result.question}\n\n{table(result.claims)}")
    return "".join(parts)


def headline_table(front: Sequence[HeadlineRow]) -> str:
    """A Markdown table with one row for each headline."""
    columns = (
        "Paper",
        "It says",
        "Tried on",
        "Measured",
        "95 % interval",
        "Verdict",
        "All at once",
    )
    rows = [(*columns, "Where"), ("---",) * (len(columns) + 1)]
    for row in front:
        measured, where = ("", ""), f"[theorem](../{row.headline.theorem})"
        if row.claim is not None and row.result is not None:
            measured = number(row.claim.value), interval(row.claim.interval)
            where = f"[{row.headline.row}]({row.result.folder}/README.md)"
        verdicts = _verdict(row.verdict, row.doubt), row.family_verdict
        paper = row.headline.place, row.headline.says, row.headline.badge
        rows.append((*paper, *measured, *verdicts, where))
    return _rows(rows)


def page(result: "Result") -> str:
    """README.md of one result: question, answer, figure, claims, and where the numbers are from."""
    facts = "".join(f"- {key}: {value}\n" for key, value in result.provenance.items())
    return (
        f"# {result.title}\n\n**{result.question}**\n\n![{result.question}](figure.png)\n\n"
        f"{result.caption}\n\n[Vector figure](figure.pdf), [data](result.nc), "
        f"[configuration](config.json)\n\n## Claims: {result.counts}\n\n{table(result.claims)}\n"
        f"## Where the numbers come from\n\n{facts}"
    )


def findings(whole: Sequence["Result"], root: Path) -> str:
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
        said = [
            claim.revision and f". *After a look at results: {claim.revision}*",
            claim.redrawn and f". *Drawn anew: {claim.redrawn}*",
        ]
        criterion = claim.criterion + "".join(filter(None, said))
        measured = number(claim.value), interval(claim.interval)
        verdict = _verdict(claim.verdict, doubt(claim))
        rows.append((claim.statement, claim.source, criterion, *measured, verdict))
    return _rows(rows)


def html(
    whole: Sequence["Result"], broken: dict[str, str], front: Sequence[HeadlineRow] = ()
) -> str:
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
    environment.filters |= {"number": number, "interval": interval, "doubt": doubt}
    return environment.get_template("index.html").render(
        results=whole,
        broken=broken,
        front=front,
        rule=_RULE,
        summary=summary(whole),
        family_level=family_level(front),
    )


def doubt(claim: Claim) -> str:
    """What is to be said of a verdict: "thin", or what would decide an undecided one."""
    if claim.verdict != "undecided":
        return "thin" if claim.thin else ""
    if claim.interval == (-math.inf, math.inf):
        return "too few samples for an interval"
    if not claim.runs_factor <= 100:
        return "its value lies at the bound"
    return f"about {max(1.1, claim.runs_factor):.2g} times the samples would decide"


def number(value: float) -> str:
    return f"{value:.3g}"


def interval(ends: tuple[float, float]) -> str:
    if ends == (-math.inf, math.inf):
        return "unknown"
    return f"[{number(ends[0])}, {number(ends[1])}]"


def _verdict(word: str, doubt: str) -> str:
    return f"**{word}**{', ' if doubt else ''}{doubt}"


def _rows(rows: Sequence[Sequence[str]]) -> str:
    escaped = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in escaped)
