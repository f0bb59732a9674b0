"""The page on single precision names every analysis, and what it states holds."""

import pytest

from tools.precision import analysed, single

STATED = single.read_bounds()
# Of each floor those that lose most, and some that lose nothing.
SLICE = (
    "analyses.probes.explained",
    "estimators.gradient_descent",
    "estimators.ridge",
    "estimators.spike_and_slab_posterior_mean",
    "selection.scores.grads",
    "theory.asymptotics.ridge_risk",
    "theory.optimum.one_layer",
)


def test_every_public_analysis_is_in_the_table_or_has_no_error_of_its_own():
    assert STATED.keys() == analysed.CASES.keys()
    assert sorted([*STATED, *analysed.EXEMPT]) == sorted(single.public_names())
    page = " ".join(single.PAGE.read_text("utf-8").split())
    assert all(reason in page for reason in analysed.REASONS)
    # Control: an analysis more is missed.
    assert sorted([*STATED, *analysed.EXEMPT]) != sorted(
        [*single.public_names(), "analyses.new.measure"]
    )


@pytest.mark.parametrize("name", SLICE)
def test_single_precision_errs_by_no_more_than_the_page_states(name):
    assert single.error(name, range(3)) <= STATED[name]


def test_half_precision_errs_by_more():
    """The control: inputs of bfloat16 are not within the bounds of single precision."""
    name = "estimators.gradient_descent"
    assert single.error(name, range(3), "bfloat16") > 1000 * STATED[name]
