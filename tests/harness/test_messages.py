"""A family reads as one row: what differs between its cells is said of those that it concerns."""

import pytest

from lsa_lab.harness.report.tables import messages
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
    (message,) = messages(claims)
    return message


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
    message = family(note)
    assert message.remarks("note") == words
    assert message.says == "Every part is small"
    assert message.criterion.endswith(f"a number <= 1 ({words})" if words else "a number <= 1")


def test_a_statement_without_cells_is_a_message_of_its_own():
    claims = judge([Statement("x", "ours", "It is", "x", at_least=0)], {"x": [1.0, 2.0]})
    (message,) = messages(claims)
    assert not message.is_family
    assert message.says == "It is"
