"""The exercise of notebooks/judge_your_own_layer.py has an answer, and wrong ones are refused."""

import pytest

from cells import answered, solution

ANSWER = solution("judge_your_own_layer")


def test_the_exercise_has_an_answer():
    assert answered("judge_your_own_layer", ANSWER)["solved"]


@pytest.mark.parametrize(
    ("right", "wrong"), [("cumsum", "asarray"), ("1, len(labels) + 1", "2, len(labels) + 2")]
)
def test_control_no_sum_or_another_count_is_refused(right, wrong):
    assert right in ANSWER
    assert not answered("judge_your_own_layer", ANSWER.replace(right, wrong))["solved"]
