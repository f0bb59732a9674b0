"""How results read: verdicts in words, tables of claims, the ledger, a page for each."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lsa_lab.claims import Claim
from lsa_lab.harness.headlines import HeadlineRow, family_level, headline_table
from lsa_lab.harness.outcomes import counts
from lsa_lab.harness.tables import doubt, interval, markdown, number, verdict_cell

if TYPE_CHECKING:
    from lsa_lab.harness.report import Result

RULE = """\
A claim holds if its whole interval keeps the bound, fails if none of it does, and is undecided
otherwise. It is thin if an end of the interval is nearer to the bound than a tenth of its width.
The bounds stand in the experiments' configurations; whatever was changed or added after a look at
results is said in the row, and whether fresh runs judge it. A worst place is chosen by the judged
runs themselves unless the row says otherwise, which makes a row harder to hold and easier to fail.
"""
_COLUMNS = ("Claim", "Source", "Criterion", "Measured", "95 % interval", "Verdict")


@dataclass(frozen=True)
class Front:
    """The front page: a file with two markers, the experiments that it begins with, all of them if
    none is named, and the pages of the themes."""

    readme: Path
    first: Sequence[str] = ()
    themes: Sequence[Path] = ()  # each named for its theme


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


def ledger(
    whole: Sequence["Result"], broken: dict[str, str], front: Sequence[HeadlineRow] = ()
) -> str:
    """CLAIMS.md: the headlines, then the claims of every result, one table a result."""
    parts = [f"# Claims\n\n{RULE}\n{summary(whole)}\n"]
    parts += [f"\n- **{name} cannot be read**: {text}\n" for name, text in broken.items()]
    if front:
        parts.append(f"\n## Headlines\n\n{family_level(front)}\n\n{headline_table(front)}")
    for result in whole:
        link = f"[{result.title}]({result.folder}/README.md)"
        parts.append(f"\n## {link}: {result.counts}\n\n{result.question}\n\n")
        parts += [
            f"[The {each.tier} tier]({each.folder}/README.md): {each.counts}. Verdicts that differ "
            f"there: {words}.\n\n"
            for each, words in result.beside
        ]
        parts.append(table(result.claims))
    return "".join(parts)


def page(result: "Result") -> str:
    """README.md of one result: question, answer, figure, claims, and where the numbers are from."""
    facts = "".join(f"- {key}: {value}\n" for key, value in result.provenance.items())
    appendix = "![Appendix](appendix.png)\n\n" if result.appendix else ""
    return (
        f"# {result.title}\n\n**{result.question}**\n\n![{result.question}](figure.png)\n\n"
        f"{result.caption}\n\n{appendix}[Vector figure](figure.pdf), [data](result.nc), "
        f"[configuration](config.json)\n\n## Claims: {result.counts}\n\n{table(result.claims)}\n"
        f"## Where the numbers come from\n\n{facts}"
    )


def findings(front: Front, whole: Sequence["Result"], root: Path) -> str:
    """The front page's table, theme by theme; no other experiment changes it."""
    chosen = [result for result in whole if not front.first or result.name in front.first]
    pages, before = {page.stem: page.as_posix() for page in front.themes}, ""
    rows = [("Theme", "Question", "Answer", "Hold/fail/undecided"), ("---",) * 4]
    for result in chosen:
        theme = result.experiment.theme
        title = theme.replace("_", " ")
        linked = f"[{title}]({pages[theme]})" if theme in pages else title
        verdicts = [claim.verdict for claim in result.claims]
        tally = "/".join(str(verdicts.count(v)) for v in ("holds", "fails", "undecided"))
        place = (root / result.folder).as_posix()
        link = f"[{result.question}]({place})"  # a forge shows the README of a folder
        tier = "" if result.tier == "laptop" else f" ({result.tier} tier)"
        rows.append(("" if theme == before else linked, link + tier, result.answer, tally))
        before = theme
    rest = "\nThe pages of the themes have the other questions, with their figures.\n"
    return markdown(rows) + (rest if len(chosen) < len(whole) else "")


def with_verdicts(text: str, whole: Sequence["Result"]) -> str:
    """The text with its verdict after each row that it names: `experiment.row` **holds**."""
    verdicts = {
        f"{each.name}.{id}": claim.verdict
        for each in whole
        for id, (_, claim) in each.claim_of.items()
    }

    def named(match: re.Match[str]) -> str:
        row = match[1]
        return f"`{row}` **{verdicts[row]}**" if row in verdicts else match[0]

    return re.sub(r"`([^`]+)`(?: \*\*(?:holds|fails|undecided)\*\*)?", named, text)


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
        verdict = verdict_cell(claim.verdict, doubt(claim))
        rows.append((claim.statement, claim.source, criterion, *measured, verdict))
    return markdown(rows)
