"""One layer fitted to N prompts over k tasks has a closed risk in high dimension, on tasks of its
own covariance (2405.11751) and of another (2509.26551).

Tasks are drawn from k fixed ones of covariance C; the layer is tested on T, and q and B hold the
means of C and of T. docs/theory, "Pretraining on finite data", "Tasks of another covariance".
"""

import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.theory import alignment, asymptotics
from pretraining import are_near, extrapolated_risks, stated_risks

SAME = (1.0, 1.0), (1.0, 1.0)
SMALL, LARGE_LAST = (0.6, 0.1), (0.3, 3.0)  # means .35 and 1.65: no mean is 1
CASES = {
    "few prompts, few tasks": (*SAME, (1.0, 0.5, 0.4, 0.1)),
    "few prompts, long ones": (*SAME, (4.0, 1.0, 0.3, 0.1)),
    "many prompts, few tasks, much noise": (*SAME, (1.0, 0.5, 3.0, 1.0)),
    "many prompts, many tasks": (*SAME, (1.0, 1.5, 3.0, 0.1)),
    "aligned, few tasks": (LARGE_LAST, LARGE_LAST, (0.5, 0.5, 3.0, 0.1)),
    "crossed, few tasks": (LARGE_LAST, SMALL, (0.5, 0.5, 3.0, 0.1)),
    "crossed, few demonstrations": (SMALL, LARGE_LAST, (0.5, 1.5, 3.0, 0.1)),
    "crossed, few prompts": (LARGE_LAST, SMALL, (2.0, 1.5, 0.3, 0.1)),
}
WRONG = {  # among them (m + ρ)/α with the wrong mean m
    "q without the noise": ("many prompts, few tasks, much noise", {"q": 1.0}),
    "no loss to the level": ("few prompts, long ones", {"left": 0.0}),
    "the level of the tasks alone": ("few prompts, long ones", {"seen": 0.0}),
    "the mean of T in q": ("crossed, few demonstrations", {"q": 1.75 / 0.5}),
    "a mean of 1 in q": ("crossed, few demonstrations", {"q": 1.1 / 0.5}),
    "the mean of C in B": ("crossed, few demonstrations", {"spread": 0.45 / 0.5}),
    "the mean of T in q, with few tasks": ("crossed, few tasks", {"q": 0.45 / 0.5}),
    "the mean of C in B, with few prompts": ("crossed, few prompts", {"spread": 1.75 / 2.0}),
}
cases = pytest.mark.parametrize("case", CASES)
aligned_risk = jit_numpy(alignment.aligned_risk)


@cases
def test_the_simulated_risks_approach_the_closed_form(case):
    train, test, place = CASES[case]
    closed = np.array(aligned_risk(np.array(train), np.array(test), *place))
    assert are_near(extrapolated_risks(*CASES[case]), closed)
    np.testing.assert_allclose(stated_risks(*CASES[case]), closed, rtol=0.01)
    same = aligned_risk(np.ones(2), np.ones(2), *place)
    np.testing.assert_allclose(same, asymptotics.ridgeless_risk(*place), rtol=1e-12)


@pytest.mark.parametrize("wrong", WRONG)
def test_control_with_a_wrong_term_the_statement_is_not_what_is_simulated(wrong):
    case, terms = WRONG[wrong]
    assert not are_near(extrapolated_risks(*CASES[case]), stated_risks(*CASES[case], **terms))


def test_with_a_penalty_too_where_without_one_the_risk_is_infinite():
    place = (1.0, 0.5, 1.0, 0.1)  # τ = 1
    assert np.isinf(asymptotics.ridgeless_risk(*place)).all()
    closed = np.array(asymptotics.ridge_risk(*place, 0.3))
    assert are_near(extrapolated_risks(*SAME, place, 0.3), closed)
    np.testing.assert_allclose(stated_risks(*SAME, place, 0.3), closed, rtol=0.01)


def test_control_with_a_new_task_in_every_prompt_it_is_another_risk():
    for train, test, (alpha, kappa, tau, noise_var) in list(CASES.values())[:4]:
        closed = np.array(asymptotics.ridgeless_risk(alpha, np.inf, tau, noise_var))
        found = extrapolated_risks(train, test, (alpha, kappa, tau, noise_var))
        assert not are_near(found, closed)


@pytest.mark.parametrize("kappa", [0.3, 0.8, 1.5])
def test_without_lack_of_prompts_tasks_are_memorised_up_to_one_a_dimension(kappa):
    found = asymptotics.ridgeless_risk(1e7, kappa, np.inf, 0.1)
    tasks = np.random.default_rng(0).standard_normal((round(kappa * 200), 200))
    missed = 200 - np.linalg.matrix_rank(tasks)  # dimensions of which no task says anything
    np.testing.assert_allclose(found, [0.1 + missed / 200, 0.1], atol=1e-5)


@pytest.mark.parametrize(("ratio", "noise_var"), [(1.0, 1.0), (0.2, 0.5)])
def test_control_where_demonstrations_grow_as_prompts_do_noise_adds_to_new_tasks(ratio, noise_var):
    new, _ = asymptotics.ridgeless_risk(1e7, 0.5, 1e7 / ratio, noise_var)
    added = noise_var * 0.5 * ratio / (1 + noise_var)
    np.testing.assert_allclose(new, noise_var + 0.5 + added, atol=1e-5)
