"""The exercise of notebooks/train_and_dissect.py has an answer, and wrong ones are refused."""

import jax
import numpy as np
import pytest

from cells import answered
from lsa_lab.analyses import implicit_gd
from lsa_lab.models import linear_attention
from lsa_lab.tasks.linear import LinearTask, sample

ANSWER = """
def implied_weights(stack, prompt):
    maps = moments.layer_maps(stack, prompts.second_moment(prompt))
    return -maps[:, -1, :-1]
"""


def judged(answer=None):
    """The notebook's names after the answer, for a random stack in the place of the trained one."""
    stack = linear_attention.init(jax.random.key(0), 3, 2, 3, scale=0.2)
    prompt = sample(jax.random.key(1), LinearTask(n=12, d=3))
    return answered("train_and_dissect", answer, stack=stack, prompt=prompt)


def test_the_exercise_has_an_answer_which_the_library_knows():
    names = judged(ANSWER)
    assert names["solved"]
    arguments = linear_attention.forward, names["stack"], names["prompt"]
    expected = implicit_gd.implied_weights(*arguments)
    np.testing.assert_allclose(names["weights"], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("right", "wrong"), [("-maps", "maps"), ("-1, :-1]", ":-1, -1]")])
def test_control_a_wrong_sign_and_a_column_for_a_row_are_refused(right, wrong):
    assert right in ANSWER
    assert not judged(ANSWER.replace(right, wrong))["solved"]
