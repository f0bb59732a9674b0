"""The exercise of notebooks/a_language_model.py has an answer, and wrong ones are refused."""

import pytest

from cells import answered

NAME = "a_language_model"
ANSWER = """
def rise_beyond_bias(before, after, labels):
    best = []
    for scores in (before, after):
        shift = readings.best_threshold_shift(scores, labels)
        best.append(readings.accuracy(readings.shifted(scores, shift), labels))
    return best[1] - best[0]
"""
RAW = """
def rise_beyond_bias(before, after, labels):
    return readings.accuracy(after, labels) - readings.accuracy(before, labels)
"""
OTHER_READING = """
def rise_beyond_bias(before, after, labels):
    return readings.auc(after, labels) - readings.auc(before, labels)
"""


def test_the_exercise_has_an_answer_which_the_library_knows():
    assert answered(NAME, ANSWER)["solved"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("best_threshold_shift(scores", "best_threshold_shift(before"),  # one constant for both
        ("best_threshold_shift", "best_shift"),  # best for the cross-entropy
        ("(before, after):", "(after, before):"),
    ],
)
def test_control_a_shared_constant_that_of_another_reading_and_the_sign_are_refused(right, wrong):
    assert right in ANSWER
    assert not answered(NAME, ANSWER.replace(right, wrong))["solved"]


@pytest.mark.parametrize("answer", [RAW, OTHER_READING])
def test_control_the_rise_itself_and_that_of_the_auc_are_refused(answer):
    assert not answered(NAME, answer)["solved"]
