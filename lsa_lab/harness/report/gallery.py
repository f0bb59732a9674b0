"""index.html: all figures by theme, each with its answer, its claims, and where it comes from.

One file without links to elsewhere or fonts of its own; the figures lie beside it. Its one script
filters claims, and without it all are there.
"""

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lsa_lab.harness.report.levels import Levels
from lsa_lab.harness.report.pages import RULE, summary
from lsa_lab.harness.report.result import Result
from lsa_lab.harness.report.tables import LEGEND, doubt, marks
from lsa_lab.harness.run.outcomes import interval, number
from lsa_lab.judging.claims import Claim
from lsa_lab.judging.statistics import level

_PAPER = re.compile(r"\b([A-Z]\d)\b")
_JUDGED = re.compile(r"\*\*Judged by experiments?\.\*\*(.*?)(?:\n\n|\n- |\Z)", re.S)


@dataclass(frozen=True)
class Theorem:
    """A statement with a proof that an experiment rests on, as the pages of theory list it."""

    title: str
    page: str  # the page and its heading, from the working folder
    test: str


@dataclass(frozen=True)
class Theme:
    """Results that ask of one matter."""

    name: str
    title: str
    results: list[Result]


def html(
    root: Path,
    whole: Sequence[Result],
    broken: dict[str, str],
    levels: Levels,
    theorems: dict[str, list[Theorem]],
) -> str:
    """The page of the results under ``root``, with links up to the working folder that holds it."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for function in (number, interval, doubt, marks, paper):
        environment.filters[function.__name__] = function
    papers = sorted({paper(claim) for each in whole for claim in each.claims} - {""})
    return environment.get_template("index.html").render(
        title="lsa_lab",
        themes=themes(whole),
        theorems={} if root.is_absolute() else theorems,
        up="" if root.is_absolute() else "../" * len(root.parts),
        papers=papers,
        broken=broken,
        levels=levels,
        rule=RULE,
        summary=summary(whole),
        legend=LEGEND,
        level=level(),
    )


def paper(claim: Claim) -> str:
    """The paper that a claim's source names first, as "A2"; empty if it names none."""
    match = _PAPER.search(claim.source)
    return match[1] if match else ""


def themes(whole: Sequence[Result]) -> list[Theme]:
    """The results by theme, both in the package's order."""
    groups: dict[str, list[Result]] = {}
    for result in whole:
        groups.setdefault(result.experiment.theme, []).append(result)
    return [
        Theme(name, results[0].experiment.theme_title, results) for name, results in groups.items()
    ]


def theorems(pages: Iterable[Path]) -> dict[str, list[Theorem]]:
    """What each experiment rests on: the statements of ``pages`` that say they are judged by it.

    A statement is a heading of the third level with lines "**Test.**" and "**Judged by
    experiment.**" below it.
    """
    rests: dict[str, list[Theorem]] = {}
    for path in pages:
        for block in re.split(r"^### ", path.read_text(encoding="utf-8"), flags=re.M)[1:]:
            heading = block.partition("\n")[0].strip()
            test = re.search(r"\*\*Test\.\*\*[^`]*`([^`]+)`", block)
            judged = _JUDGED.search(block)
            if test is None or judged is None:
                continue
            page = f"{path.as_posix()}#{_anchor(heading)}"
            title = re.sub(r"^[\d.]+\s+", "", heading)
            for name in re.findall(r"`([^`]+)`", judged[1]):
                theorem = Theorem(title, page, test[1])
                rests.setdefault(name, []).append(theorem)
    return rests


def _anchor(heading: str) -> str:
    """As forges make it of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def pixels(picture: Path) -> tuple[int, int]:
    """Width and height of a PNG, from its header."""
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    return width, height
