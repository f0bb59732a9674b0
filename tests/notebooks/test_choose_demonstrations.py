"""The exercise of notebooks/choose_demonstrations.py has an answer, and wrong ones are refused."""

import pytest

from cells import answered

NAME = "choose_demonstrations"
HIDDEN = "token = jnp.array([2.0, 1.0, 2.0]) / 3"  # x·w_1 = x·w_2 = y


def test_the_one_plane_through_two_checkpoints_is_hidden_and_a_third_off_their_line_sees_it():
    assert answered(NAME, f"{HIDDEN}; third = jnp.zeros(2)")["solved"]


@pytest.mark.parametrize(
    "answer",
    [
        f"{HIDDEN}; third = jnp.array([0.5, 1.0])",  # on the line through the two
        "token = jnp.array([2.0, 2.0, 2.0]); third = jnp.zeros(2)",  # the second one sees it
        "token = jnp.zeros(3); third = jnp.zeros(2)",
    ],
)
def test_control_a_third_on_the_line_a_token_that_is_seen_and_zero_are_refused(answer):
    assert not answered(NAME, answer)["solved"]
