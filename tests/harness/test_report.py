"""The report is complete, needs no network, and one broken folder does not stop it."""

import dataclasses
import importlib
import math
import re

import pytest

from lsa_lab.harness.report import report
from lsa_lab.harness.report.headlines import Headline, Message, Proof, Words
from lsa_lab.harness.run.laboratory import experiments_of
from lsa_lab.store import provenance


def test_the_report_is_complete_and_needs_no_network(ran, toy, program):
    ran()
    readme = toy / "README.md"
    readme.write_text(f"before\n{report.BEGIN}\nyesterday\n{report.END}\nafter\n", encoding="utf-8")
    assert program("report") == 0
    names = ("index.html", "theme.html", "statements.html", "cells.html", "toy/index.html")
    pages = {name: (toy / "figures" / name).read_text(encoding="utf-8") for name in names}
    for page in pages.values():
        assert "http" not in page
        assert "<script src" not in page
        assert "<link" not in page
    page = pages["toy/index.html"]
    for name in ("index.html", "theme.html", "cells.html"):
        assert '<a href="toy/index.html">' in pages[name]
    for link in ("figure.png", "figure.pdf", "result.nc", "config.json"):
        assert f'"../toy/{link}"' in page
        assert (toy / "figures" / "toy" / link).exists()
    assert "a &lt; b" in page
    ledger = (toy / "figures" / "CLAIMS.md").read_text(encoding="utf-8")
    own = (toy / "figures" / "toy" / "README.md").read_text(encoding="utf-8")
    for verdict in ("holds", "fails", "undecided"):
        assert f"**{verdict}**" in own
        assert f'class="verdict {verdict}"' in page
    assert "a \\| b" in own
    assert "mean over runs of the mean <= 9" in own
    assert "(n = 40)" in own
    assert "| [toy](toy/README.md) |" in ledger
    assert "| 1 hold, 1 fail, 1 undecided |" in ledger
    front = readme.read_text(encoding="utf-8")
    assert front.startswith("before\n")
    assert front.endswith("after\n")
    assert "yesterday" not in front
    assert (
        "| T1, section 2 | The mean is small | [**holds**](tests/small.py) | **holds**: " in front
    )
    assert "[toy](figures/toy/README.md)" in front
    assert "Theorem 1" not in front


def test_experiments_without_a_theme_have_pages_with_names_and_links_that_lead_to_them(copies, toy):
    program = copies("toy")
    assert program("run", "toy") == 0
    assert program("report") == 0
    figures = toy / "figures"
    pages = sorted(path.relative_to(figures).as_posix() for path in figures.rglob("*.html"))
    assert pages == [
        "cells.html",
        "index.html",
        "no-theme.html",
        "statements.html",
        "toy/index.html",
    ]
    for name in pages:
        page = figures / name
        links = re.findall(r'(?:href|src)="([^"]*)"', page.read_text(encoding="utf-8"))
        assert links
        for link in links:
            inside = (page.parent / link).resolve().is_relative_to(figures)
            assert (page.parent / link).exists() or not inside, f"{name} leads to {link!r}"
            assert link.rpartition("/")[2] not in ("", ".html")
    index = (figures / "index.html").read_text("utf-8")
    assert '<a href="no-theme.html">Experiments</a>' in index
    assert "<title>two_lab: figures</title>" in index
    assert "cards/index.html" not in index
    ledger = (figures / "CLAIMS.md").read_text("utf-8")
    assert "\n## A table for each experiment\n" in ledger
    for empty in ("Level", "level", "lie apart", "Smaller tiers", "were changed"):
        assert empty not in ledger
    (figures / "cards").mkdir()
    (figures / "cards" / "index.html").touch()
    assert program("report") == 0
    assert '<a href="cards/index.html">' in (figures / "index.html").read_text("utf-8")


def test_a_question_has_a_page_that_opens_with_its_answer(ran, toy, program):
    ran()
    (toy / "CITATION.cff").write_text('title: "toys & co"\nversion: 3\n  - name: "Nobody"\n')
    program("report")
    page = (toy / "figures" / "toy" / "index.html").read_text(encoding="utf-8")
    own = (toy / "figures" / "toy" / "README.md").read_text(encoding="utf-8")
    assert "<h1>It does | nearly.</h1>" in page
    assert own.startswith("# It does | nearly.\n")
    for text, table in ((page, "families"), (own, "Claims: ")):
        places = [text.index(word) for word in ("The mean of n", "Setting.", "Limits.", table)]
        assert places == sorted(places)
        assert "Play with it and go." in text
        assert (
            "The means of n numbers, nine at a time. Laptop tier, d = 5, n = 40, sparsity = 2"
            in text
        )
        assert "Of 3 cells these are not safe: 1 undecided." in text
    assert "  author = {{Nobody}},\n" in own
    assert "  howpublished = {toys \\& co, version 3},\n" in own
    assert "note = {toy\\_lab, toy, laptop tier, contents " in own


def test_a_first_line_that_is_the_place_of_no_headline_is_refused(
    ran, program, monkeypatch, capsys
):
    ran()
    headlines = importlib.import_module("toy_lab.headlines")
    monkeypatch.setattr(headlines, "FIRST", ("T1, section 3",))
    assert program("report") == 2
    said = "headlines.py: no headline 'T1, section 3'; nearest 'T1, section 2'"
    assert said in capsys.readouterr().err


def test_a_report_of_the_same_results_writes_nothing(ran, program, capsys):
    ran()
    program("report")
    capsys.readouterr()
    assert program("report") == 0
    assert capsys.readouterr().out == ""


def test_a_changed_configuration_is_in_no_table(ran, toy, program):
    ran()
    program("report")
    tables = [(toy / "figures" / name).read_bytes() for name in ("CLAIMS.md", "index.html")]
    program("run", "toy", "--config.n", "7")
    program("report")
    assert tables == [(toy / "figures" / name).read_bytes() for name in ("CLAIMS.md", "index.html")]


def test_devices_that_processes_may_share_are_not_counted(toy, program, monkeypatch):
    facts, words = provenance.facts, "NVIDIA H100, in 2 processes with 8 each"
    own = {"device": "NVIDIA H100", "device_count": 16, "process_count": 2}
    monkeypatch.setattr(provenance, "facts", lambda: facts() | own)
    program("run", "toy")
    assert program("report") == 0
    readme = (toy / "figures" / "toy" / "README.md").read_text(encoding="utf-8")
    assert f"- device: {words}\n" in readme
    page = (toy / "figures" / "toy" / "index.html").read_text(encoding="utf-8")
    assert f"<dt>device</dt><dd>{words}</dd>" in page
    assert report._device(own | {"device_count": 3, "process_count": 3}).endswith("in 3 processes")
    assert report._device({"device": "cpu", "device_count": 2}) == "2 x cpu"  # of before


def test_a_broken_folder_is_named_and_the_rest_is_written(ran, toy, program, monkeypatch, capsys):
    ran()
    ran("paper")
    (toy / "figures" / "toy" / "paper" / "result.nc").write_bytes(b"nothing")
    assert program("report") == 1
    assert "toy/paper is left out of the report" in capsys.readouterr().err
    ledger = (toy / "figures" / "CLAIMS.md").read_text(encoding="utf-8")
    assert "toy/paper cannot be read" in ledger
    assert "1 hold, 1 fail, 1 undecided" in ledger


def test_a_result_of_another_configuration_is_named(ran, toy, program, monkeypatch, capsys):
    ran()
    config = importlib.import_module("toy_lab.theme.toy.config")
    monkeypatch.setitem(config.TIERS, "laptop", config.Config(scale=0.5))
    assert program("report") == 1
    assert "scale = 1.0 in the file, scale = 0.5 here" in capsys.readouterr().err


def test_a_smoke_result_is_drawn_again_and_not_reported(toy, program, capsys):
    program("run", "toy", "--tier", "smoke", "--out", "out")
    capsys.readouterr()
    assert program("draw", "toy", "--out", "out") == 0
    assert program("report", "--out", "out") == 1
    assert "out/toy holds the smoke tier: run toy --tier laptop" in capsys.readouterr().err


def test_the_ledger_has_levels_whose_sentences_are_generated_from_their_cells(ran, toy, program):
    ran()
    program("report")
    ledger = (toy / "figures" / "CLAIMS.md").read_text(encoding="utf-8")
    first, rest = ledger.split("## Level 0")[1].split("## Level 1")
    assert "1 cells stand behind these lines" in first
    line = next(line for line in first.splitlines() if "T1, section 2" in line)
    assert line.split(" | ")[2] == "[**holds**](../tests/small.py)"
    assert line.split(" | ")[3].startswith("**holds**: ")
    assert line.split(" | ")[3].endswith("] of one ([toy](toy/README.md))")
    assert line.split(" | ")[4] == "not tried"
    assert "| [**fails**](../tests/large.py) | not tried | not tried | none needed, " in first
    messages, index = rest.split("## Level 2")
    assert "| 1 of 3 hold | as wrong: " in messages
    assert "| [toy](toy/README.md): mean |" in messages
    assert "1 hold, 1 fail, 1 undecided" in index
    page = (toy / "figures" / "statements.html").read_text(encoding="utf-8")
    assert '<tr class="headline row" data-paper="T1">' in page
    assert "1 of 3 hold" in (toy / "figures" / "theme.html").read_text(encoding="utf-8")


def test_a_larger_tier_takes_the_laptops_place_in_every_table(toy, program, monkeypatch):
    """At the paper tier the mean is large, and nobody asks for the few."""
    claims = importlib.import_module("toy_lab.theme.toy.claims")
    usual = claims.statements

    def statements(config):
        mean, wrong, few = usual(config)
        if config.n == 40:
            return mean, wrong, few
        return dataclasses.replace(mean, at_most=None, at_least=9), wrong

    monkeypatch.setattr(claims, "statements", statements)
    paper = toy / "docs" / "papers" / "t1.md"
    paper.parent.mkdir(parents=True)
    paper.write_text("`toy.mean`, `toy.few`\n")
    readme = toy / "README.md"
    readme.write_text(f"{report.BEGIN}\n{report.END}\n", encoding="utf-8")
    program("run", "toy")
    program("run", "toy", "--tier", "paper")
    assert program("report") == 0
    ledger = (toy / "figures" / "CLAIMS.md").read_text(encoding="utf-8")
    front, index = ledger.split("## Level 2")
    line = front.split("| T1, section 2 |")[1].splitlines()[0]
    assert "**fails**" in line
    assert "[toy](toy/paper/README.md)" in line
    assert "(out of date: toy.mean fails, not holds)" in front
    (row,) = [line for line in index.splitlines() if line.startswith("| [toy (paper)]")]
    assert "| 0 hold, 2 fail, 0 undecided | [laptop](toy/README.md) differs in: mean holds; " in row
    assert row.endswith("0 of 2 rows lie apart |")
    assert "Of 2 rows that stand in two tiers 0 lie apart." in index
    assert paper.read_text() == "`toy.mean` **fails**, `toy.few` **undecided**\n"
    assert "(figures/toy/paper/README.md)" in readme.read_text()
    page = (toy / "figures" / "toy" / "index.html").read_text(encoding="utf-8")
    assert "Out of date: toy.mean fails, not holds." in page
    assert '<a href="../toy/figure.png">The laptop tier</a>: 1 hold' in page


def test_a_headline_without_its_row_is_named_and_the_rest_is_written(
    ran, toy, program, monkeypatch, capsys
):
    ran()
    headlines = importlib.import_module("toy_lab.headlines")
    lost = dataclasses.replace(headlines.HEADLINES[0], trained=Words("{0:i}", "toy.median"))
    monkeypatch.setattr(headlines, "HEADLINES", (lost,))
    assert program("report") == 1
    assert "toy.median is left out of the report: a sentence names it" in capsys.readouterr().err
    ledger = (toy / "figures" / "CLAIMS.md").read_text(encoding="utf-8")
    assert "- **toy.median cannot be read**: a sentence names it, and that experiment" in ledger
    assert "[toy](toy/README.md)" in ledger


NONE = Words("none needed, because it is a toy")


@pytest.mark.parametrize(
    ("says", "build"),
    [
        ("nothing decides it", lambda: Headline("T1", "It is", NONE)),
        ("name the null's rows", lambda: Headline("T1", "It is", Words("0"), Proof("holds", "t"))),
        ("name the null's rows", lambda: Message("{0}", "toy.mean", "by chance", stands="holds")),
        (
            "hides a number",
            lambda: Headline("T1", "It is", NONE, trained=Words("{0:i}", "toy.mean toy.few")),
        ),
        ("no '1' among the rows", lambda: Words("{1}", "toy.mean")),
        ("counts no cells", lambda: Words("all hold", "toy.*", "counted")),
        (
            "one verdict, or one a name",
            lambda: Words("{0}", "toy.mean toy.few", "holds fails holds"),
        ),
        ("the verdicts that it supposes", lambda: Message("{0}", "toy.mean", NONE.text, stands="")),
    ],
)
def test_a_headline_that_shows_one_cell_or_names_no_null_is_refused(says, build):
    with pytest.raises(ValueError, match=says):
        build()


def test_what_was_changed_after_a_look_is_said_and_counted(ran, toy, program, monkeypatch):
    ran()
    config, claims = (
        importlib.import_module(f"toy_lab.theme.toy.{door}") for door in ("config", "claims")
    )
    first, *others = claims.statements(config.Config())
    revised = dataclasses.replace(first, revision="it was the median")
    again = dataclasses.replace(others[0], redrawn="12 fresh runs, 8 before")
    monkeypatch.setattr(claims, "statements", lambda _: (revised, again, *others[1:]))
    program("report")
    for name in ("toy/index.html", "toy/README.md"):
        text = (toy / "figures" / name).read_text(encoding="utf-8")
        assert "after a look: it was the median" in text
        assert "drawn anew: 12 fresh runs, 8 before" in text
        assert "too few samples for an interval" in text
    ledger = (toy / "figures" / "CLAIMS.md").read_text(encoding="utf-8")
    assert "1 cell was changed or added after a look at results, and 0 of them" in ledger
    assert "**holds**†: " in ledger
    assert "| The mean is " in ledger


def test_pages_on_papers_are_given_the_verdicts_of_the_rows_that_they_name(ran, toy, program):
    ran()
    page = toy / "docs" / "papers" / "t1.md"
    page.parent.mkdir(parents=True)
    page.write_text("| 1 | `toy.mean` **fails**, `toy.wrong`, `toy.*`, `tests/large.py` |\n")
    assert program("report") == 0
    text = "| 1 | `toy.mean` **holds**, `toy.wrong` **fails**, `toy.*` **1 of 3, 1 undecided**, "
    text += "`tests/large.py` |\n"
    assert page.read_text(encoding="utf-8") == text
    program("report")
    assert page.read_text(encoding="utf-8") == text


OTHERS = [
    ((1.3, (1.1, 1.5)), (0, 1)),  # 0.3 between them, and √(0.3² + 0.2²) from both intervals
    ((1.4, (1.0, 1.6)), (0, 1)),  # the longer half faces the smaller value
    ((1.5, (1.4, 1.9)), (1, 1)),
    ((0.5, (0.4, 0.9)), (0, 1)),
    ((0.2, (0.1, 0.3)), (1, 1)),
    ((1.5, (-math.inf, math.inf)), (0, 0)),
]


def test_a_row_lies_apart_where_both_intervals_do_not_bridge_the_gap(ran, toy):
    ran()
    (whole,), _ = report.collect(experiments_of("toy_lab").values(), toy / "figures")
    claim = dataclasses.replace(whole.claims[0], value=1.0, interval=(0.5, 1.3))
    here = dataclasses.replace(whole, claims=[claim])
    for (value, interval), counts in OTHERS:
        again = dataclasses.replace(claim, value=value, interval=interval)
        there = dataclasses.replace(whole, claims=[again])
        assert here.apart(there) == there.apart(here) == counts
