"""docs/papers and the rows agree: what a page names exists, and each row is on its paper's page."""

import json
import re
from pathlib import Path

import pytest

from experiments.headlines import HEADLINES
from lsa_lab.harness.run import folders, records
from lsa_lab.harness.run.laboratory import experiments_of
from lsa_lab.judging.statements import cells_of

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs" / "papers"
PAPERS = {"A1": "2508.00385", "A2": "2406.03768", "A3": "2506.04579", "A4": "2408.04532"}
READINGS = ("as stated", "in our setting", "modelled on", "open question")
OPEN = ("nothing yet", "cannot be decided here")


def entries(paper: str) -> dict[str, str]:
    """The places of a paper's page, "Theorem 1", and what decides each."""
    text = (DOCS / f"{paper.lower()}.md").read_text(encoding="utf-8")
    rows = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in text.splitlines()]
    rows = [row for row in rows if len(row) == 3 and row[0] not in ("place", "---")]
    places = [row[0] for row in rows]
    assert len(set(places)) == len(places), f"two rows of {paper} are called alike"
    return {place: decided for place, _, decided in rows}


PAGES = {paper: entries(paper) for paper in PAPERS}
NAMED = {paper: re.findall(r"`([^`]+)`", " ".join(page.values())) for paper, page in PAGES.items()}


def judged_rows() -> dict[str, str]:
    """Committed verdicts, by row; those of a larger tier in the laptop's place."""
    patterns = ("*/config.json", "*/paper/config.json")
    files = [file for pattern in patterns for file in sorted((ROOT / "figures").glob(pattern))]
    verdicts = [json.loads(path.read_text("utf-8"))["verdicts"] for path in files]
    return {row: verdict for each in verdicts for row, verdict in each.items()}


def statements() -> dict[str, str]:
    """The source of every statement at the laptop tier, or at one that has a result, by its row."""
    rows = {}
    for experiment in experiments_of("experiments").values():
        for tier in list(experiment.tiers)[1:]:  # the smoke tier judges nothing
            folder = folders.folder_of(experiment, tier, ROOT / "figures")
            if tier == "laptop" or (folder / "result.nc").exists():
                cells = cells_of(records.statements(experiment, experiment.tiers[tier]))
                rows |= {f"{experiment.name}.{cell.id}": cell.source for cell in cells}
    return rows


SOURCES = statements()


@pytest.mark.parametrize("paper", PAPERS)
def test_every_row_and_file_that_a_page_names_exists(paper):
    lost = [name for name in NAMED[paper] if not (name in SOURCES or (ROOT / name).is_file())]
    assert lost == []


@pytest.mark.parametrize("paper", PAPERS)
def test_every_entry_names_what_decides_it_or_says_why_nothing_does(paper):
    bare = [
        place
        for place, decided in PAGES[paper].items()
        if "`" not in decided and not any(f"*{words}*" in decided for words in OPEN)
    ]
    assert bare == []


@pytest.mark.parametrize("paper", PAPERS)
def test_every_row_that_names_a_paper_is_on_its_page(paper):
    rows = [row for row, source in SOURCES.items() if PAPERS[paper] in source]
    assert [row for row in rows if row not in NAMED[paper]] == []


def test_a_source_that_names_a_paper_says_whose_setting_it_is():
    wrong = [
        f"{row}: {source}"
        for row, source in SOURCES.items()
        for name, number in PAPERS.items()
        if number in source or re.search(rf"\b{name}\b", source)
        if f"{name} ({number})" not in source or not any(words in source for words in READINGS)
    ]
    assert wrong == []


@pytest.mark.parametrize("paper", PAPERS)
def test_a_page_says_the_committed_verdicts(paper):
    said = re.findall(r"`([^`]+)` \*\*(\w+)\*\*", " ".join(PAGES[paper].values()))
    verdicts = judged_rows()
    assert [pair for pair in said if verdicts[pair[0]] != pair[1]] == [], "run the report"
    assert {row for row, _ in said} == {row for row in NAMED[paper] if row in verdicts}


def test_headlines_are_entries_of_the_pages_and_rows_that_exist():
    rows = judged_rows()
    for headline in HEADLINES:
        paper, _, place = headline.place.partition(", ")
        decided = PAGES[paper][place]
        assert f"`{headline.row or headline.theorem}`" in decided, headline.place
        assert headline.row in rows or (ROOT / headline.theorem).is_file(), headline.place
    assert len({headline.place for headline in HEADLINES}) == len(HEADLINES)
