"""The exercise of notebooks/your_own_experiment.py has an answer, and wrong ones are refused."""

import pytest

from cells import answered

ANSWER = """
nothing_changes = Statement(
    "batch",
    "a colleague",
    "Twice the batch changes nothing",
    "the risk with the larger batch over that with the smaller one",
    "ratio",
    margin=0.05,
)
"""


def test_the_exercise_has_an_answer():
    assert answered("your_own_experiment", ANSWER)["solved"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("margin=0.05", "at_most=1.05"),  # a gain of 20 % would be no change
        ("margin=0.05", "at_least=0.95"),
        ("margin=0.05", "margin=0.2"),  # as would one in three runs that scatter
        ('"ratio"', '"mean"'),  # whose margin lies around 0
    ],
)
def test_control_one_direction_another_margin_or_the_mean_is_refused(right, wrong):
    assert right in ANSWER
    assert not answered("your_own_experiment", ANSWER.replace(right, wrong))["solved"]
