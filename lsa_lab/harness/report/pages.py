"""How results read: verdicts in words, tables of claims, the ledger, a page for each."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lsa_lab.harness.report.headlines import HeadlineRow, family_level, headline_table
from lsa_lab.harness.report.result import Result
from lsa_lab.harness.report.tables import (
    case,
    doubt,
    interval,
    markdown,
    messages,
    number,
    verdict_cell,
)
from lsa_lab.harness.run.outcomes import counts
from lsa_lab.judging.claims import Claim
from lsa_lab.judging.statistics import level

RULE = """\
A claim holds if its whole interval keeps the bound, fails if none of it does, and is undecided
otherwise. It is thin if an end of the interval is nearer to the bound than a tenth of its width.
A message is one sentence; where it is judged in several cases by one criterion, each case is a
cell with a verdict of its own. The bounds stand in the experiments' claims; whatever was changed
or added after a look at results is said in the row, and whether fresh runs judge it. A worst place
is chosen by the judged runs themselves unless the row says otherwise, which makes a row harder to
hold and easier to fail.
"""


@dataclass(frozen=True)
class Front:
    """The front page: a file with two markers, the experiments that it begins with, all of them if
    none is named, and the pages of the themes."""

    readme: Path
    first: Sequence[str] = ()
    themes: Sequence[Path] = ()  # each named for its theme


def summary(whole: Sequence[Result]) -> str:
    """As "180 messages, judged in 365 cells: 173 hold, 114 fail, 78 undecided; 12 ..."."""
    claims = [claim for result in whole for claim in result.claims]
    count = sum(len(messages(result.claims)) for result in whole)
    thin, revised = sum(claim.thin for claim in claims), [c for c in claims if c.revision]
    afresh = sum(bool(claim.redrawn) for claim in revised)
    again = sum(bool(claim.redrawn) for claim in claims) - afresh
    return (
        f"{count} messages, judged in {len(claims)} cells: "
        f"{counts([claim.verdict for claim in claims])}. {thin} of the decided cells are thin. "
        f"{len(revised)} were changed or added after a look at results; {afresh} of these are "
        f"judged by runs drawn after the change. {again} others were drawn anew as they stood."
    )


def ledger(
    whole: Sequence[Result], broken: dict[str, str], front: Sequence[HeadlineRow] = ()
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


def page(result: Result) -> str:
    """README.md of one result: question, answer, figure, claims, and where the numbers are from."""
    facts = "".join(f"- {key}: {value}\n" for key, value in result.provenance.items())
    appendix = "".join(f"![Appendix]({name})\n\n" for name in result.appendix)
    return (
        f"# {result.title}\n\n**{result.question}**\n\n![{result.question}](figure.png)\n\n"
        f"{result.caption}\n\n{appendix}[Vector figure](figure.pdf), [data](result.nc), "
        f"[configuration](config.json)\n\n## Claims: {result.counts}\n\n{table(result.claims)}\n"
        f"## Where the numbers come from\n\n{facts}"
    )


def findings(front: Front, whole: Sequence[Result], root: Path) -> str:
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


def with_verdicts(text: str, whole: Sequence[Result]) -> str:
    """The text with its verdict after each row that it names: `experiment.row` **holds**."""
    verdicts = {
        f"{each.name}.{id}": claim.verdict
        for each in whole
        for id, (_, claim) in each.claim_of.items()
    }

    def named(match: re.Match[str]) -> str:
        row = match[1]
        return f"`{row}` **{verdicts[row]}**" if row in verdicts else match[0]

    return re.sub(r"`([^`]+)`(?: \*\*(?:holds|fails|undecided|estimated)\*\*)?", named, text)


def table(claims: Sequence[Claim]) -> str:
    """A Markdown table with one row for each message, in it a line for each cell of a family."""
    level_word = level(claims[0].confidence if claims else None)
    columns = ("Claim", "Source", "Criterion", "Measured", f"{level_word} interval", "Verdict")
    rows = [columns, ("---",) * len(columns)]
    for message in messages(claims):
        revision, redrawn = message.remarks("revision"), message.remarks("redrawn")
        criterion = message.criterion
        criterion += f". *After a look at results: {revision}*" if revision else ""
        criterion += f". *Drawn anew: {redrawn}*" if redrawn else ""
        lines = [
            (
                f"{case(claim)}: {number(claim.value)}"
                if message.is_family
                else number(claim.value),
                interval(claim.interval),
                verdict_cell(claim.verdict, doubt(claim)),
            )
            for claim in message.cells
        ]
        cells = ("<br>".join(column) for column in zip(*lines, strict=True))
        rows.append((message.says, message.source, criterion, *cells))
    return markdown(rows)
