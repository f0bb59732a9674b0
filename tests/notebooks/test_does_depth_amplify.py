"""The exercise of notebooks/does_depth_amplify.py has an answer, and wrong ones are refused."""

import pytest

from cells import answered

NAME = "does_depth_amplify"


def test_a_short_multiple_of_the_query_falls_behind_and_overtakes():
    """x_2 = c x_q has the flows c |x_q|² η and, in the end, 1/c: half of 1.75 η, twice 0.7."""
    assert answered(NAME, "x_2 = 0.5 * jnp.array([1.0, 0.5])")["solved"]


@pytest.mark.parametrize("factor", [0.05, 0.9, 2.0])
def test_control_too_short_a_one_is_late_and_too_long_a_one_starts_ahead_or_ends_behind(factor):
    assert not answered(NAME, f"x_2 = {factor} * jnp.array([1.0, 0.5])")["solved"]
