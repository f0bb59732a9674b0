"""The exercise of notebooks/bring_your_own_model.py has an answer, and wrong ones are refused."""

import pytest

from cells import answered

NAME = "bring_your_own_model"


@pytest.mark.parametrize("pattern", ["h.*.proj.weight", "proj/weight"])
def test_heads_are_folded_into_the_second_axis(pattern):
    assert answered(NAME, f"module = '{pattern}:D(2k)'")["solved"]


@pytest.mark.parametrize("axes", [":(2k)D", ":D(3k)", ":D(4k)", ":DH", ":pq", ""])
def test_control_the_other_axis_other_numbers_of_heads_and_no_heads_are_refused(axes):
    assert not answered(NAME, f"module = 'h.*.proj.weight{axes}'")["solved"]
