"""The page of figures: by theme, with what each rests on; a family reads as one row."""

import dataclasses
from types import SimpleNamespace

import pytest

from lsa_lab.harness.report import gallery
from lsa_lab.harness.report.tables import families
from lsa_lab.harness.run.laboratory import Experiment
from lsa_lab.judging.claims import judge
from lsa_lab.judging.statements import Statement, grid

STATEMENT = Statement(
    id="row", source="A2 (2406.03768), figure 1", says="it is small", measured="it", at_most=1.0
)


def test_a_claim_belongs_to_the_paper_that_its_source_names_first():
    claim, other = judge(
        [STATEMENT, dataclasses.replace(STATEMENT, id="other", source="derived here")],
        {"row": [0.0, 0.1, 0.2], "other": [0.0, 0.1, 0.2]},
    )
    assert gallery.paper(claim) == "A2"
    assert gallery.paper(other) == ""


def test_results_are_grouped_by_theme_in_the_order_of_the_package():
    modules = (
        "experiments.flow.grads",
        "experiments.heads.layer_probes",
        "experiments.flow.flow_factors",
    )
    whole = [SimpleNamespace(experiment=Experiment(module)) for module in modules]
    themes = gallery.themes(whole)
    assert [theme.name for theme in themes] == ["flow", "heads"]
    assert themes[0].results == [whole[0], whole[2]]
    assert themes[0].title.startswith("Flow")


def test_an_experiment_rests_on_the_statements_that_say_they_are_judged_by_it(tmp_path):
    page = tmp_path / "flow.md"
    page.write_text(
        "# Flow\n\n### 4.1 The one-shot flow\n\n- **Test.** `tests/theorems/test_a.py`\n"
        "- **Judged by experiments.** `grads`, `order`\n\n### 4.2 Nobody asks\n\n"
        "- **Test.** `tests/theorems/test_b.py`\n",
        encoding="utf-8",
    )
    rests = gallery.theorems([page])
    assert set(rests) == {"grads", "order"}
    (theorem,) = rests["grads"]
    assert theorem.title == "The one-shot flow"
    assert theorem.page.endswith("flow.md#41-the-one-shot-flow")
    assert theorem.test == "tests/theorems/test_a.py"


def test_the_size_of_a_picture_is_read_from_its_header(tmp_path):
    from lsa_lab.harness.draw import pictures, style

    picture, _ = style.figure(3.25, 2.0)
    pictures.save(picture, tmp_path)
    assert gallery.pixels(tmp_path / "figure.png") == (650, 400)


def family(note):
    cells = grid("a_few a_many b_few b_many", part=("a_part", "b"), shots=("few", "many"))
    statement = Statement(
        "small",
        "ours",
        "{part} at {shots} shots is small",
        "a number",
        at_most=1.0,
        note="{note}",
        cells=cells,
        words=lambda part, shots: {"note": note(part, shots)},
        message="Every part is small",
    )
    claims = judge([statement], {id: [0.1, 0.2, 0.3] for id in cells})
    (read,) = families(claims)
    return read


@pytest.mark.parametrize(
    ("note", "words"),
    [
        (lambda part, shots: "read twice", "read twice"),
        (lambda part, shots: "lens" * (part == "b"), "b: lens"),
        (lambda part, shots: "lens" * (shots == "few" and part == "a_part"), "a part, few: lens"),
        (
            lambda part, shots: "odd" * ((part == "b") == (shots == "few")),
            "a part, many; b, few: odd",
        ),
        (lambda part, shots: "", ""),
    ],
)
def test_a_remark_names_the_cells_that_it_concerns_by_what_sets_them_apart(note, words):
    read = family(note)
    assert read.remarks("note") == words
    assert read.says == "Every part is small"
    assert read.criterion.endswith(f"a number <= 1 ({words})" if words else "a number <= 1")


def test_a_statement_without_cells_is_a_row_of_its_own():
    (read,) = families(judge([Statement("x", "ours", "It is", "x", at_least=0)], {"x": [1.0, 2.0]}))
    assert not read.is_family
    assert read.says == "It is"


def test_a_control_folds_into_the_row_that_stands_before_it():
    sources = {"first": "derived here, a control", "trunk": "ours", "guard": "ours, a control"}
    statements = [Statement(id, source, "It is", "x", at_least=0) for id, source in sources.items()]
    first, trunk = families(judge(statements, {id: [1.0, 2.0] for id in sources}))
    assert [claim.id for claim in first.cells] == ["first"]  # before it stands none
    assert [claim.id for each in trunk.controls for claim in each.cells] == ["guard"]
