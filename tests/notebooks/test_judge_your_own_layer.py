"""The exercise of notebooks/judge_your_own_layer.py has an answer, and wrong ones are refused."""

import pytest

from cells import answered

ANSWER = """
def running_mean(labels):
    return jnp.cumsum(labels) / jnp.arange(1, len(labels) + 1, dtype=labels.dtype)
"""


def test_the_exercise_has_an_answer():
    assert answered("judge_your_own_layer", ANSWER)["solved"]


@pytest.mark.parametrize(
    ("right", "wrong"), [("cumsum", "asarray"), ("1, len(labels) + 1", "2, len(labels) + 2")]
)
def test_control_no_sum_or_another_count_is_refused(right, wrong):
    assert right in ANSWER
    assert not answered("judge_your_own_layer", ANSWER.replace(right, wrong))["solved"]


def test_control_the_cell_as_it_stands_is_no_answer():
    assert not answered("judge_your_own_layer")["solved"]
