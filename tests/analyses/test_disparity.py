"""Shares, entropies and Gini by hand, and summaries that count what they leave out."""

import jax
import numpy as np
import pytest

from lsa_lab.analyses import disparity

SIZES = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 8.0, 0.0], [1.0, 4.0, 1.0, 2.0]])
MEASURES = [disparity.top_share, disparity.entropy, disparity.effective_number, disparity.gini]
summary = jax.jit(disparity.summary)


@pytest.fixture
def logs():
    with np.errstate(divide="ignore"):
        return np.log(SIZES)


def test_shares_sum_to_one(logs):
    np.testing.assert_allclose(disparity.shares(logs), SIZES / SIZES.sum(1, keepdims=True))


def test_the_measures_of_equal_and_lone_and_mixed_demonstrations_are_those_by_hand(logs):
    mixed = -(4 / 8 * np.log(4 / 8) + 2 / 8 * np.log(2 / 8) + 2 / 8 * np.log(1 / 8))
    np.testing.assert_allclose(disparity.top_share(logs), [0.25, 1.0, 0.5])
    np.testing.assert_allclose(disparity.entropy(logs), [np.log(4), 0, mixed], atol=1e-12)
    np.testing.assert_allclose(disparity.effective_number(logs), [4, 1, np.exp(mixed)])
    # The mixed case: Σ_ij |s_i - s_j| = 2 (3 + 0 + 1 + 3 + 2 + 1) = 20, over 2 n Σ s = 64.
    np.testing.assert_allclose(disparity.gini(logs), [0, 0.75, 20 / 64], atol=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_measures_know_no_scale_and_do_not_overflow(measure, logs):
    measure = jax.jit(measure)
    for shift in (1e4, -1e4):
        np.testing.assert_allclose(measure(logs + shift), measure(logs), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("measure", MEASURES)
def test_what_has_no_shares_has_no_measure(measure):
    inf = np.inf
    nothing = np.array([[-inf, -inf, -inf], [0.0, inf, 0.0], [0.0, np.nan, 0.0]])
    assert np.isnan(jax.jit(measure)(nothing)).all()


ROWS = np.array(
    [
        [1.0, 2.0, 3.0],  # grows
        [1.0, 0.5, 2.0],  # ends larger, having fallen
        [-1.0, -0.5, 0.5],  # shrinks, and its order flips
        [1.0, 1.0, 1.0 + 1e-12],  # flat, up to rounding
        [1.0, 1e3, np.inf],  # overflows
        [np.nan, 1.0, 1.0],
    ]
)


def test_fractions_and_medians_are_of_the_prompts_that_stay_finite():
    for summarise in (disparity.summary, jax.jit(disparity.summary)):
        found = summarise(ROWS)
        assert found.dropped == 2
        assert [found.growth, found.larger, found.smaller, found.flips] == [0.25, 0.5, 0.25, 0.25]
        np.testing.assert_allclose(found.median, [1.0, 0.75, 1.5])


def test_a_change_of_rounding_is_none_and_a_larger_one_counts():
    margin = np.finfo(float).eps ** 0.5
    for sign in (1, -1):
        at, beyond = (summary(np.array([[1.0, 1 + sign * c]])) for c in (margin, 1e-7))
        assert at.larger == at.smaller == 0
        assert (beyond.larger, beyond.smaller) == ((1, 0) if sign > 0 else (0, 1))


def test_where_no_prompt_is_left_nothing_is_said():
    found = summary(ROWS[4:])
    assert found.dropped == 2
    assert np.isnan([found.growth, found.larger, found.smaller, found.flips, *found.median]).all()


def test_the_median_counts_the_prompts_it_leaves_out():
    values = np.arange(12.0).reshape(3, 2, 2)
    values[1, 0, 1] = np.nan
    median, dropped = disparity.median_of_finite(values)
    assert dropped == 1
    np.testing.assert_allclose(median, [[4, 5], [6, 7]])


def test_what_cannot_grow_is_refused():
    with pytest.raises(AssertionError, match="one prompt a row"):
        disparity.summary(ROWS[0])


def test_growth_and_flips_do_not_see_rounding_either():
    margin = np.finfo(float).eps ** 0.5
    for share, counted in ((0.5, 0), (2.0, 1)):
        dip = summary(np.array([[1.0, 1 - share * margin, 2.0]]))
        assert dip.growth == 1 - counted
        assert summary(np.array([[share * margin, -1.0]])).flips == counted
        assert summary(np.array([[1.0, -share * margin]])).flips == counted
