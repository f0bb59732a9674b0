"""The report is complete, needs no network, and one broken folder does not stop it."""

import dataclasses
import importlib

import pytest

from lsa_lab.harness.report import report
from lsa_lab.harness.report.headlines import Headline, HeadlineRow, family_level
from lsa_lab.judging.claims import Statement, judge
from lsa_lab.store import provenance


def test_the_report_is_complete_and_needs_no_network(toy, program):
    program("run", "toy")
    readme = toy / "README.md"
    readme.write_text(f"before\n{report.BEGIN}\nyesterday\n{report.END}\nafter\n", encoding="utf-8")
    assert program("report") == 0
    page = (toy / "figures" / "index.html").read_text(encoding="utf-8")
    assert "http" not in page
    assert "<script src" not in page
    assert "<link" not in page
    for link in ("figure.png", "figure.pdf", "result.nc", "config.json"):
        assert f'"toy/{link}"' in page
        assert (toy / "figures" / "toy" / link).exists()
    assert "a &lt; b" in page
    ledger = (toy / "figures" / "CLAIMS.md").read_text(encoding="utf-8")
    own = (toy / "figures" / "toy" / "README.md").read_text(encoding="utf-8")
    for verdict in ("holds", "fails", "undecided"):
        assert f"**{verdict}**" in ledger
        assert f"**{verdict}**" in own
        assert f'class="verdict {verdict}"' in page
    for text in (ledger, own):
        assert "a \\| b" in text
        assert "mean over runs of the mean <= 9" in text
        assert "(n = 40)" in text
    assert "## [toy](toy/README.md): 1 hold, 1 fail, 1 undecided" in ledger
    front = readme.read_text(encoding="utf-8")
    assert front.startswith("before\n")
    assert front.endswith("after\n")
    assert "yesterday" not in front
    assert "(figures/toy) | It does \\| nearly. | 1/1/1 |" in front


def test_the_front_page_shows_the_questions_that_a_package_puts_first(toy, copies):
    """One of two experiments, with its theme's page; another one's result changes nothing there."""
    program = copies("theme.toy", "theme.second")
    (toy / "two_lab" / "headlines.py").write_text('FIRST = ("toy",)\n', encoding="utf-8")
    readme, theme = toy / "README.md", toy / "docs" / "themes" / "theme.md"
    readme.write_text(f"{report.BEGIN}\n{report.END}\n", encoding="utf-8")
    theme.parent.mkdir(parents=True)
    theme.touch()
    program("run", "all")
    assert program("report") == 0
    front = readme.read_text(encoding="utf-8")
    assert front.count("(figures/") == 1
    assert "\n| [theme](docs/themes/theme.md) | [Does the mean of " in front
    assert "The pages of the themes have the other questions" in front
    assert "## [second]" in (toy / "figures" / "CLAIMS.md").read_text(encoding="utf-8")


def test_a_first_question_that_is_none_is_refused(toy, program, monkeypatch, capsys):
    program("run", "toy")
    headlines = importlib.import_module("toy_lab.headlines")
    monkeypatch.setattr(headlines, "FIRST", ("toi",), raising=False)
    assert program("report") == 2
    assert "headlines.py: no experiment 'toi'; nearest 'toy'" in capsys.readouterr().err


def test_a_report_of_the_same_results_writes_nothing(toy, program, capsys):
    program("run", "toy")
    program("report")
    capsys.readouterr()
    assert program("report") == 0
    assert capsys.readouterr().out == ""


def test_a_changed_configuration_is_in_no_table(toy, program):
    program("run", "toy")
    program("report")
    tables = [(toy / "figures" / name).read_bytes() for name in ("CLAIMS.md", "index.html")]
    program("run", "toy", "--config.n", "7")
    program("report")
    assert tables == [(toy / "figures" / name).read_bytes() for name in ("CLAIMS.md", "index.html")]


@pytest.mark.parametrize(
    ("devices", "processes", "words"),
    [
        (2, 1, "2 x NVIDIA H100"),
        (3, 3, "NVIDIA H100, in 3 processes"),
        (16, 2, "NVIDIA H100, in 2 processes with 8 each"),
    ],
)
def test_devices_that_processes_may_share_are_not_counted(
    toy, program, monkeypatch, devices, processes, words
):
    facts = provenance.facts
    own = {"device": "NVIDIA H100", "device_count": devices, "process_count": processes}
    monkeypatch.setattr(provenance, "facts", lambda: facts() | own)
    program("run", "toy")
    assert program("report") == 0
    readme = (toy / "figures" / "toy" / "README.md").read_text(encoding="utf-8")
    assert f"- device: {words}\n" in readme
    page = (toy / "figures" / "index.html").read_text(encoding="utf-8")
    assert f"<dt>device</dt><dd>{words}</dd>" in page


def test_a_result_of_before_processes_were_counted_is_of_one():
    assert report._device({"device": "cpu", "device_count": 2}) == "2 x cpu"


def test_a_broken_folder_is_named_and_the_rest_is_written(toy, program, monkeypatch, capsys):
    program("run", "toy")
    program("run", "toy", "--tier", "paper")
    (toy / "figures" / "toy" / "paper" / "result.nc").write_bytes(b"nothing")
    assert program("report") == 1
    assert "toy/paper is left out of the report" in capsys.readouterr().err
    ledger = (toy / "figures" / "CLAIMS.md").read_text(encoding="utf-8")
    assert "toy/paper cannot be read" in ledger
    assert "**holds**" in ledger


def test_a_result_of_another_configuration_is_named(toy, program, monkeypatch, capsys):
    program("run", "toy")
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


def test_claims_that_have_changed_since_are_named_with_what_to_do(
    toy, program, monkeypatch, capsys
):
    program("run", "toy")
    claims = importlib.import_module("toy_lab.theme.toy.claims")
    monkeypatch.setattr(claims, "numbers", lambda dataset: dataset["rule"])
    assert program("report") == 1
    assert "KeyError: " in (error := capsys.readouterr().err)
    assert "run it again" in error


def test_headlines_stand_first_with_their_verdicts_alone_and_all_at_once(toy, program):
    program("run", "toy")
    program("report")
    ledger = (toy / "figures" / "CLAIMS.md").read_text(encoding="utf-8")
    page = (toy / "figures" / "index.html").read_text(encoding="utf-8")
    front = ledger.split("## Headlines")[1].split("## [toy]")[0]
    assert "1 of these verdicts rest on samples" in front
    assert "| T1, section 2 | The mean is small | toy |" in front
    assert "[toy.mean](toy/README.md)" in front
    assert "**fails**, proved | fails | [theorem](../tests/large.py)" in front
    assert "T1, Theorem 1" in page


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
    front, tables = ledger.split("\n## [toy")
    assert "**fails**" in front.split("| T1, section 2 |")[1].splitlines()[0]
    assert "[toy.mean](toy/paper/README.md)" in front
    assert tables.startswith(" (paper)](toy/paper/README.md): 0 hold, 2 fail, 0 undecided\n")
    words = "[The laptop tier](toy/README.md): 1 hold, 1 fail, 1 undecided. Verdicts that differ"
    assert f"{words} there: mean holds." in tables
    assert paper.read_text() == "`toy.mean` **fails**, `toy.few` **undecided**\n"
    assert readme.read_text().count("figures/toy") == 1
    assert "(figures/toy/paper) (paper tier) | It does \\| nearly. | 0/2/0 |" in readme.read_text()
    page = (toy / "figures" / "index.html").read_text(encoding="utf-8")
    assert page.count("<article ") == 1
    assert '<a href="toy/figure.png">The laptop tier</a>: 1 hold' in page


def test_a_headline_without_its_row_is_an_error(toy, program, monkeypatch):
    program("run", "toy")
    headlines = importlib.import_module("toy_lab.headlines")
    lost = dataclasses.replace(headlines.HEADLINES[0], row="toy.median")
    monkeypatch.setattr(headlines, "HEADLINES", (lost,))
    with pytest.raises(ValueError, match="toy has no row 'median'"):
        program("report")


@pytest.mark.parametrize(
    "words", [{}, {"row": "toy.mean", "theorem": "t.py"}, {"theorem": "t.py"}, {"proved": "fails"}]
)
def test_a_headline_is_decided_by_a_row_or_by_a_theorem(words):
    with pytest.raises(ValueError, match="give a row, or a theorem and what it proves"):
        Headline("T1", "It is", "toy", **words)
    with pytest.raises(ValueError, match="badge 'proof'"):
        Headline("T1", "It is", "proof", row="toy.mean")


def test_what_was_changed_after_a_look_is_said_and_counted(toy, program, monkeypatch):
    program("run", "toy")
    config, claims = (
        importlib.import_module(f"toy_lab.theme.toy.{door}") for door in ("config", "claims")
    )
    first, *others = claims.statements(config.Config())
    revised = dataclasses.replace(first, revision="it was the median")
    again = dataclasses.replace(others[0], redrawn="12 fresh runs, 8 before")
    monkeypatch.setattr(claims, "statements", lambda _: (revised, again, *others[1:]))
    program("report")
    for name in ("CLAIMS.md", "index.html", "toy/README.md"):
        text = (toy / "figures" / name).read_text(encoding="utf-8")
        assert "After a look at results: it was the median" in text
        assert "Drawn anew: 12 fresh runs, 8 before" in text
        if name != "toy/README.md":
            assert "1 were changed or added after a look at results; 0 of these" in text
            assert "1 others were drawn anew as they stood" in text
            assert "too few samples for an interval" in text


def test_pages_on_papers_are_given_the_verdicts_of_the_rows_that_they_name(toy, program):
    program("run", "toy")
    page = toy / "docs" / "papers" / "t1.md"
    page.parent.mkdir(parents=True)
    page.write_text("| Theorem 1 | `toy.mean` **fails**, `toy.wrong`, `tests/large.py` |\n")
    assert program("report") == 0
    text = "| Theorem 1 | `toy.mean` **holds**, `toy.wrong` **fails**, `tests/large.py` |\n"
    assert page.read_text(encoding="utf-8") == text
    program("report")
    assert page.read_text(encoding="utf-8") == text


def test_a_headline_that_falls_at_the_common_level_is_seen_to_fall():
    statement = Statement("mean", "derived here", "It is", "the mean", at_least=0)
    samples = {"mean": [0.1, 0.5, 0.9, 1.3]}
    claims = [judge([statement], samples, level)[0] for level in (0.9, 0.999)]
    assert [claim.verdict for claim in claims] == ["holds", "undecided"]
    headline = Headline("T1", "It is", "toy", row="toy.mean")
    row, same = (
        HeadlineRow(headline, None, claims[0], family) for family in (claims[1], claims[0])
    )
    assert (row.verdict, row.family_verdict) == ("holds", "undecided")
    assert "1 of 2 verdicts stay" in family_level([row, same])
