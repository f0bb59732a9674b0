"""A family reads as one row: what differs between its cells is said of those that it concerns."""

import pytest

from lsa_lab.harness.report.tables import families
from lsa_lab.judging.claims import judge
from lsa_lab.judging.statements import Statement, grid


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
    claims = judge([Statement("x", "ours", "It is", "x", at_least=0)], {"x": [1.0, 2.0]})
    (read,) = families(claims)
    assert not read.is_family
    assert read.says == "It is"


def test_a_control_folds_into_the_row_that_stands_before_it():
    sources = {"first": "derived here, a control", "trunk": "ours", "guard": "ours, a control"}
    statements = [Statement(id, source, "It is", "x", at_least=0) for id, source in sources.items()]
    first, trunk = families(judge(statements, {id: [1.0, 2.0] for id in sources}))
    assert [claim.id for claim in first.cells] == ["first"]  # before it stands none
    assert [claim.id for each in trunk.controls for claim in each.cells] == ["guard"]
