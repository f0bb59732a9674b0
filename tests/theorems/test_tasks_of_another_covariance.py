"""A layer fitted on tasks of one covariance has a closed risk on tasks of another (2509.26551).

docs/theory, "Tasks of another covariance". Sides: prompts drawn, the layer fitted by least squares,
and its exact risks by the moments of its features; the statement on the eigenvalues of many drawn
tasks; the closed form. Hypotheses: it is tested on T, and q and B hold the means of C and of T.
"""

import jax
import numpy as np
import pytest

import pretraining
from lsa_lab.theory import alignment, asymptotics

SMALL, LARGE_LAST = (0.6, 0.1), (0.3, 3.0)  # means .35 and 1.65: no mean is 1
CASES = {
    "aligned, few tasks": (LARGE_LAST, LARGE_LAST, (0.5, 0.5, 3.0, 0.1)),
    "crossed, few tasks": (LARGE_LAST, SMALL, (0.5, 0.5, 3.0, 0.1)),
    "crossed, few demonstrations": (SMALL, LARGE_LAST, (0.5, 1.5, 3.0, 0.1)),
    "crossed, few prompts": (LARGE_LAST, SMALL, (2.0, 1.5, 0.3, 0.1)),
}
WRONG = {  # (m + ρ)/α with the wrong m, by the case and what of the statement has it
    "the mean of T in q": ("crossed, few demonstrations", "q", 1.65),
    "a mean of 1 in q": ("crossed, few demonstrations", "q", 1.0),
    "the mean of C in B": ("crossed, few demonstrations", "spread", 0.35),
    "the mean of T in q, with few tasks": ("crossed, few tasks", "q", 0.35),
    "the mean of C in B, with few prompts": ("crossed, few prompts", "spread", 1.65),
}
cases = pytest.mark.parametrize("case", CASES)
compiled = jax.jit(alignment.aligned_risk)


def closed_form(train, test, place):  # [new, old]
    return np.array(compiled(np.array(train), np.array(test), *place))


@cases
def test_the_risks_on_tasks_of_another_covariance_approach_the_closed_form(case):
    closed = closed_form(*CASES[case])
    assert pretraining.are_near(pretraining.extrapolated_risks(*CASES[case]), closed)
    np.testing.assert_allclose(pretraining.stated_risks(*CASES[case]), closed, rtol=0.01)


@pytest.mark.parametrize("wrong", WRONG)
def test_control_with_another_mean_the_statement_is_not_what_is_simulated(wrong):
    case, place, mean = WRONG[wrong]
    alpha, _, _, noise_var = CASES[case][2]
    risks = pretraining.stated_risks(*CASES[case], **{place: (mean + noise_var) / alpha})
    assert not pretraining.are_near(pretraining.extrapolated_risks(*CASES[case]), risks)


@cases
def test_of_equal_variances_the_risk_is_that_of_pretraining_on_finite_data(case):
    place = CASES[case][2]
    risks = closed_form(np.ones(2), np.ones(2), place)
    np.testing.assert_allclose(risks, asymptotics.ridgeless_risk(*place), rtol=1e-12)
