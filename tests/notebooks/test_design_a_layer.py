"""The exercise of notebooks/design_a_layer.py has an answer, and wrong ones are refused."""

import pytest

from cells import answered

ANSWER = """
def implicit(state, key, value, step):
    return state + step / (1 + step * (key @ key)) * (value - state @ key) * key
"""


def test_the_exercise_has_an_answer():
    assert answered("design_a_layer", ANSWER)["solved"]


@pytest.mark.parametrize(
    ("right", "wrong"), [("1 + step", "2 + step"), (" / (1 + step * (key @ key))", ""), ("-", "+")]
)
def test_control_another_denominator_or_sign_is_refused(right, wrong):
    assert right in ANSWER
    assert not answered("design_a_layer", ANSWER.replace(right, wrong))["solved"]
