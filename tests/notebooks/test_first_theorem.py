"""The exercise of notebooks/first_theorem.py has an answer, and wrong ones are refused."""

import pytest

from cells import answered
from lsa_lab import estimators

ANSWER = """
def step_limit(prompt):
    curvatures = jnp.linalg.eigvalsh(prompt.x.T @ prompt.x / prompt.x.shape[0])
    return 2 / curvatures[-1]
"""


def test_the_exercise_has_an_answer_which_the_library_knows():
    names = answered("first_theorem", ANSWER)
    assert names["solved"]
    limit = 2 * estimators.largest_step(names["prompt"].x)
    assert names["answer"] == pytest.approx(float(limit), rel=1e-10)


@pytest.mark.parametrize(
    ("right", "wrong"), [("2 /", "1 /"), ("[-1]", "[0]"), (" / prompt.x.shape[0]", "")]
)
def test_control_a_wrong_factor_eigenvalue_or_moment_is_refused(right, wrong):
    assert right in ANSWER
    assert not answered("first_theorem", ANSWER.replace(right, wrong))["solved"]
