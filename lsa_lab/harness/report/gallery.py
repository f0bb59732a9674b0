"""The pages of figures: all in small under their answers, a page a question, pages of claims.

They need no network and no fonts of their own; the figures lie beside them. One script filters and
searches, and without it everything is there.
"""

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lsa_lab import __version__
from lsa_lab.harness.report.levels import Levels
from lsa_lab.harness.report.pages import RULE, summary
from lsa_lab.harness.report.result import Result
from lsa_lab.harness.report.tables import LEGEND, case, doubt, marks
from lsa_lab.harness.run.outcomes import interval, number, numbered
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

    name: str  # empty where experiments lie in the package itself
    title: str
    results: list[Result]

    @property
    def stem(self) -> str:
        """What its page is called; without a name as no folder of Python is called."""
        return self.name or "no-theme"


def pages(
    root: Path,
    whole: Sequence[Result],
    broken: dict[str, str],
    levels: Levels,
    theorems: dict[str, list[Theorem]],
    about: Mapping[str, str],
    findings: Mapping[str, str],
) -> dict[str, str]:
    """{name: text} of the pages under ``root``, with links up to the working folder that holds it:
    index.html, one of statements and one of all cells, a page a theme and a page a question.
    ``about`` is what an entry of a bibliography says of the software."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["numbered"] = numbered
    for function in (case, number, interval, doubt, marks, paper):
        environment.filters[function.__name__] = function
    is_inside = not root.is_absolute()
    context = {
        "title": about["title"].partition(":")[0],
        "about": about,
        "home": "",  # from a page to index.html
        "themes": themes(whole),
        "theorems": theorems if is_inside else {},
        "findings": findings if is_inside else {},
        "up": "../" * len(root.parts) if is_inside else "",
        "papers": sorted({paper(claim) for each in whole for claim in each.claims} - {""}),
        "cards_there": (root / "cards" / "index.html").exists(),
        "broken": broken,
        "levels": levels,
        "rule": RULE,
        "summary": summary(whole),
        "legend": LEGEND,
        "level": level(),
    }
    own: dict[str, tuple[str, dict[str, object]]] = {
        name: (name, {}) for name in ("index.html", "statements.html", "cells.html")
    }
    for theme in themes(whole):
        own[f"{theme.stem}.html"] = ("theme.html", {"theme": theme})
    for result in whole:
        more = {"result": result, "home": "../", "moved": levels.moved(result.name)}
        own[f"{result.name}/index.html"] = ("question.html", more)
    return {
        name: environment.get_template(template).render(context | more)
        for name, (template, more) in own.items()
    }


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
            anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")  # of forges
            page = f"{path.as_posix()}#{anchor}"
            title = re.sub(r"^[\d.]+\s+", "", heading)
            for name in re.findall(r"`([^`]+)`", judged[1]):
                theorem = Theorem(title, page, test[1])
                rests.setdefault(name, []).append(theorem)
    return rests


def findings(notes: Iterable[Path]) -> dict[str, str]:
    """{page from the working folder: its heading} of notes on what was learned."""
    heads = {path: path.read_text(encoding="utf-8").partition("\n")[0] for path in notes}
    return {path.as_posix(): head.removeprefix("# ") for path, head in heads.items()}


def about(package: str, citation: Path) -> dict[str, str]:
    """Title, author and version for a bibliography, as CITATION.cff has them; without one those of
    the package, judged by this version of the harness."""
    text = citation.read_text(encoding="utf-8") if citation.exists() else ""
    said = {
        key: match[1] if (match := re.search(rf'^[ -]*{name}: "?([^"\n]+)', text, re.M)) else ""
        for key, name in (("title", "title"), ("author", "name"), ("version", "version"))
    }
    plain = {"title": package, "author": f"The authors of {package}", "version": __version__}
    return {key: said[key] or plain[key] for key in plain}


def pixels(picture: Path) -> tuple[int, int]:
    """Width and height of a PNG, from its header."""
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    return width, height
