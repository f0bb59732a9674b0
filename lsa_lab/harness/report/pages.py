"""How results read: the ledger in levels, the front page's lines, a page for each result."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from lsa_lab.harness.report.cells import Index
from lsa_lab.harness.report.levels import Levels
from lsa_lab.harness.report.result import Result
from lsa_lab.harness.report.tables import (
    LEGEND,
    Family,
    families,
    literal,
    markdown,
    verdict_words,
)
from lsa_lab.harness.run.outcomes import counts, numbered
from lsa_lab.judging.statistics import level

RULE = """\
A cell is one judged number. It holds if its whole interval keeps the bound, fails if none of it
does, and is undecided otherwise; an estimate has no bound and gets no verdict. Bounds stand in the
experiments' claims and were fixed before the run, unless a mark says otherwise.
"""
_HEAD = ("Paper", "It says", "Proved", "Regression", "Language model", "Explained by")


def summary(whole: Sequence[Result]) -> str:
    """As "365 cells in 180 families: 173 hold, 114 fail, 78 undecided. ..."."""
    claims = [claim for result in whole for claim in result.claims]
    count = sum(1 + len(f.controls) for result in whole for f in families(result.claims))
    revised = [claim for claim in claims if claim.revision]
    afresh = sum(bool(claim.redrawn) for claim in revised)
    cells, groups = numbered(len(claims), "cell"), numbered(count, "family", "families")
    said = f"{cells} in {groups}: {counts([c.verdict for c in claims])}."
    if not revised:
        return said
    return (
        f"{said} {numbered(len(revised), 'cell was', 'cells were')} changed or added after a look "
        f"at results, and {afresh} of them are judged by runs drawn since."
    )


def ledger(whole: Sequence[Result], broken: dict[str, str], levels: Levels) -> str:
    """CLAIMS.md: level 0, a line a statement; level 1, messages by theme; level 2, an experiment a
    line, whose page has its table and, folded within it, level 3."""
    parts = [f"# Claims\n\n{RULE}\n{summary(whole)}\n\nMarks: {LEGEND}\n"]
    parts += [f"\n- **{name} cannot be read**: {text}\n" for name, text in broken.items()]
    if levels.lines:
        rows = [_HEAD, ("---",) * len(_HEAD), *(line.markdown() for line in levels.lines)]
        parts.append(
            "\n## Level 0: the papers' statements\n\nA column has one verdict: where its cells "
            f'differ it reads "3 of 6". {levels.together}\n\n{markdown(rows)}'
        )
    if levels.by_theme:
        parts.append("\n## Level 1: messages\n")
    for theme, messages in levels.by_theme.items():
        rows = [("Message", "Beside it", "Rows"), ("---",) * 3]
        rows += [message.markdown() for message in messages]
        title = next(r.experiment.theme_title for r in whole if r.experiment.theme == theme)
        parts.append(f"\n### {title}\n\n{markdown(rows)}")
    rows = [("Experiment", "Question", "Answer", "Cells", "Smaller tiers"), ("---",) * 5]
    has_tiers = any(result.smaller for result in whole)
    for result in whole:
        smaller = "; ".join(
            f"[{each.tier}]({each.folder}/README.md) differs in: {words}; "
            "{} of {} rows lie apart".format(*result.apart(each))
            for each, words in result.beside
        )
        link = f"[{result.title}]({result.folder}/README.md)"
        rows.append((link, result.question, result.answer, result.counts, smaller))
    rows = rows if has_tiers else [row[:-1] for row in rows]
    is_led = bool(levels.lines or levels.by_theme)
    table_title, below = ("Level 2: a table", "level 3: ") if is_led else ("A table", "")
    tiers = f" {_tiers(whole)}" if has_tiers else ""
    parts.append(
        f"\n## {table_title} for each experiment\n\nAn experiment's page has its figure, its "
        f"table with a family a row, and folded below it {below}controls, and what the marks "
        f"stand for.{tiers}\n\n{markdown(rows)}"
    )
    return "".join(parts)


def _tiers(whole: Sequence[Result]) -> str:
    """How many rows of all experiments lie apart from those of smaller tiers, and what that is."""
    pairs = [result.apart(each) for result in whole for each in result.smaller]
    apart, rows = (sum(column) for column in zip(*pairs, strict=True))
    return (
        "A row lies apart from that of a smaller tier where their values differ by more than both "
        "intervals allow: one row in twenty does by chance, and more where the tiers differ in "
        f"sizes too. Of {rows} rows that stand in two tiers {apart} lie apart."
    )


def page(result: Result, about: Mapping[str, str]) -> str:
    """README.md of one result: the answer, its figure, what follows, in which setting, how to cite
    it; folded the claims and where the numbers are from; further figures last."""
    facts = "".join(f"- {key}: {literal(text)}\n" for key, text in result.provenance.items())
    so_what = f"**So what.** {result.so_what}\n\n" if result.so_what else ""
    appendix = "".join(f"\n![Appendix]({name})\n" for name in result.appendix)
    return (
        f"# {result.answer}\n\n**{result.question}** `{result.name}`, {result.tier} tier\n\n"
        f"![{result.question}](figure.png)\n\n{result.rest}\n\n{so_what}"
        f"**Setting.** {result.setting}\n\n**Limits.** {result.limits}\n\n"
        "[Vector figure](figure.pdf), [data](result.nc), [configuration](config.json)\n\n"
        f"{_folded(f'Claims: {result.counts}', table(result.families))}{guards(result)}"
        f"{_folded('Cite this', f'```bibtex{chr(10)}{result.bibtex(about)}```{chr(10)}')}"
        f"{_folded('Where the numbers come from', facts)}{appendix}"
    )


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n</details>\n\n"


def front_lines(levels: Levels, root: Path) -> str:
    """The front page's table: the strongest lines of level 0."""
    lines = {line.headline.place: line for line in levels.lines}
    chosen = [lines[place] for place in levels.first if place in lines]
    rows = [line.markdown(f"{root.as_posix()}/", "") for line in chosen]
    return markdown([_HEAD, ("---",) * len(_HEAD), *rows])


def with_verdicts(text: str, whole: Sequence[Result]) -> str:
    """The text with its verdict after each row that it names: `experiment.row` **holds**."""
    verdicts = {
        f"{each.name}.{id}": claim.verdict
        for each in whole
        for id, (_, claim) in each.claim_of.items()
    }

    def name_row(match: re.Match[str]) -> str:
        row = match[1]
        return f"`{row}` **{verdicts[row]}**" if row in verdicts else match[0]

    return re.sub(r"`([^`]+)`(?: \*\*(?:holds|fails|undecided|estimated)\*\*)?", name_row, text)


def with_counts(text: str, index: Index) -> str:
    """The text with the verdict of all rows after each pattern: `experiment.*_row` **3 of 6**."""

    def count_rows(match: re.Match[str]) -> str:
        cells = index.cells(match[1])
        return f"`{match[1]}` **{cells.verdict}**" if cells.pairs else match[0]

    return re.sub(r"`(\w+\.[^`*]*\*[^`]*)`(?: \*\*[^*]+\*\*)?", count_rows, text)


def table(rows: Sequence[Family]) -> str:
    """A Markdown table with a row for each family, in it a line for each place on all axes but the
    last."""
    lines = [("Claim", "Source", "Criterion", f"Cells, {level()} intervals"), ("---",) * 4]
    for family in rows:
        cells = [
            (f"{place}: " if place else "")
            + "; ".join(f"{word} {verdict_words(claim)}".strip() for word, claim in row.items())
            for place, row in family.lines
        ]
        lines.append((family.says, family.source, family.criterion, "<br>".join(cells)))
    return markdown(lines)


def guards(result: Result) -> str:
    """Level 3, folded: controls, by the row that they guard, and what the marks stand for."""
    text = "".join(
        f"Controls of: {family.says}\n\n{table(family.controls)}\n"
        for family in result.families
        if family.controls
    )
    text += "".join(f"- {note}\n" for note in result.notes)
    if not text:
        return ""
    return _folded("Controls and notes", f"{LEGEND}\n\n{text}")
