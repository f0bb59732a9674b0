"""The exercise of notebooks/bring_your_own_model.py has an answer, and wrong ones are refused."""

import pytest

from cells import answered, solution

NAME = "bring_your_own_model"


@pytest.mark.parametrize("answer", [solution(NAME), "module = 'proj/weight:D(2k)'"])
def test_heads_are_folded_into_the_second_axis(answer):
    assert answered(NAME, answer)["solved"]


@pytest.mark.parametrize("axes", [":(2k)D", ":D(3k)", ":D(4k)", ":DH", ":pq", ""])
def test_control_the_other_axis_other_numbers_of_heads_and_no_heads_are_refused(axes):
    assert not answered(NAME, f"module = 'h.*.proj.weight{axes}'")["solved"]
