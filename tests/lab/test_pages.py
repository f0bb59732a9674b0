"""Pages: numbers are filled in by program, and the index can be filtered."""

import json
import re
import shutil
from types import SimpleNamespace

import pytest

from lsa_lab.lab import pages
from lsa_lab.lab.catalogue import UsageError


def row(**more):
    fields = {"id": "gain", "claim": "gain", "cell": "", "source": "A1, Theorem 1"}
    fields |= {"statement": "It gains", "criterion": "mean of x: at least 1", "null": "none: 1"}
    fields |= {"value": 1.25, "low": 1.2, "high": 1.3, "runs": 9}
    return fields | {"verdict": "holds", "status": "registered"} | more


def record(*rows):
    facts = {"theme": "flow", "question": "Does it gain?", "caption": "It does.", "tier": "full"}
    return facts | {
        "sha256": "0" * 64,
        "date": "2026-11-29",
        "claims": list(rows),
        "families": {"gain": "It gains", "loss": "It loses"},
    }


def write_record(folder, *rows):
    path = folder / "figures/amplify/claims.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record(*rows)))
    return folder / "figures"


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        ("It gains {value}.", "It gains 1.25 [1.2, 1.3]."),
        ("It gains {gain} %.", "It gains 25 % [20, 30]."),
        ("It leaves {loss} %.", "It leaves -25 % [-30, -20]."),
        ("It is {percent} %.", "It is 125 % [120, 130]."),
        ("It is so.", "It is so."),
    ],
)
def test_a_finding_has_its_number_and_interval(finding, expected):
    assert pages.fill_finding(finding, row()) == expected


def statement(**more):
    fields = {"key": "A1, Theorem 1", "says": "Depth amplifies.", "experiment": "amplify"}
    fields |= {"claim": "gain", "finding": "It gains {value}.", "null": "1", "proof": ""}
    return SimpleNamespace(**fields | {"counterexample": "", "data": ""} | more)


def papers(*statements):
    paper = SimpleNamespace(key="A1", title="A title", arxiv="2508.00385", text="the abstract")
    return SimpleNamespace(PAPERS=(paper,), STATEMENTS=statements)


def test_claims_open_with_the_statements_of_the_papers(tmp_path):
    theorem = statement(
        key="A1, Eq. 2", experiment="", claim="", finding="It is s P.", proof="t.py"
    )
    waiting = statement(key="A1, order", experiment="later")
    figures = write_record(tmp_path, row(status="exploratory"))
    (figures / "amplify/README.md").touch()
    written = pages.write_report(figures, papers(theorem, statement(), waiting))
    contents = [path.read_bytes() for path in written]
    pages.write_report(figures, papers(theorem, statement(), waiting))
    assert contents == [path.read_bytes() for path in written]
    text = (figures / "CLAIMS.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("| A1")]
    assert "It is s P. |  | proved" in lines[0]
    found = "It gains 1.25 [1.2, 1.3]. ([amplify](amplify/README.md))"
    assert f"{found} | mean of x: at least 1 | holds, exploratory" in lines[1]
    assert "not computed for 1.0 yet |  |  |" in lines[2]
    assert text.index("A title") < text.index("### [amplify]")
    page = (tmp_path / "docs/papers/a1.md").read_text()
    links = re.findall(r"\]\((?!https)(.*?)\)", page)
    assert links == ["../../t.py", "../../figures/amplify/README.md"]
    assert all((tmp_path / "docs/papers" / link).exists() for link in links[1:])
    assert [line.count("|") for line in page.splitlines() if line.startswith("|")] == [6] * 5


def test_a_finding_of_several_cells_is_refused():
    rows = [row(id="gain[1]", cell="1"), row(id="gain[2]", cell="2")]
    with pytest.raises(UsageError, match="names 2 rows; name the id of one"):
        pages.answer_statements({"amplify": record(*rows)}, [statement()])


def test_the_index_opens_and_its_filter_works(tmp_path):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs Chromium")
    from playwright.sync_api import sync_playwright

    loss = row(id="loss", claim="loss", statement="It loses", verdict="fails")
    figures = write_record(tmp_path, row(), loss)
    pages.write_report(figures, papers(statement()))
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto((figures / "index.html").as_uri())
        assert page.locator("#count").inner_text() == "2 of 2 claims"
        page.select_option("#verdict", "fails")
        assert page.locator("#claims tbody tr:visible").all_inner_texts()[0].startswith("It loses")
        assert page.locator("#count").inner_text() == "1 of 2 claims"
        page.fill("#text", "gains")
        assert page.locator("#count").inner_text() == "0 of 2 claims"
        browser.close()
