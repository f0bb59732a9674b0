"""One layer fitted to N prompts over k tasks has a closed risk in high dimension (2405.11751).

docs/theory, "Pretraining on finite data". Sides: prompts drawn, the layer fitted by least squares,
and its exact risks by the moments of its features; the statement on the eigenvalues of many drawn
tasks; the closed form. Hypothesis: tasks are drawn from k fixed ones.
"""

import numpy as np
import pytest

import pretraining
from lsa_lab.theory import asymptotics

SAME = (1.0, 1.0), (1.0, 1.0)
CASES = {
    "few prompts, few tasks": (1.0, 0.5, 0.4, 0.1),
    "few prompts, long ones": (4.0, 1.0, 0.3, 0.1),
    "many prompts, few tasks, much noise": (1.0, 0.5, 3.0, 1.0),
    "many prompts, many tasks": (1.0, 1.5, 3.0, 0.1),
}
WRONG = {
    "q without the noise": ("many prompts, few tasks, much noise", {"q": 1.0}),
    "no loss to the level": ("few prompts, long ones", {"left": 0.0}),
    "the level of the tasks alone": ("few prompts, long ones", {"seen": 0.0}),
}
cases = pytest.mark.parametrize("case", CASES)


@cases
def test_the_simulated_risks_approach_the_closed_form(case):
    closed = np.array(asymptotics.ridgeless_risk(*CASES[case]))
    assert pretraining.are_near(pretraining.extrapolated_risks(*SAME, CASES[case]), closed)
    np.testing.assert_allclose(pretraining.stated_risks(*SAME, CASES[case]), closed, rtol=0.01)


def test_with_a_penalty_too_where_without_one_the_risk_is_infinite():
    case = (1.0, 0.5, 1.0, 0.1)  # τ = 1
    assert np.isinf(asymptotics.ridgeless_risk(*case)).all()
    closed = np.array(asymptotics.ridge_risk(*case, 0.3))
    assert pretraining.are_near(pretraining.extrapolated_risks(*SAME, case, 0.3), closed)
    np.testing.assert_allclose(pretraining.stated_risks(*SAME, case, 0.3), closed, rtol=0.01)


@pytest.mark.parametrize("wrong", WRONG)
def test_control_without_one_of_its_terms_the_statement_is_not_what_is_simulated(wrong):
    case, terms = WRONG[wrong]
    risks = pretraining.stated_risks(*SAME, CASES[case], **terms)
    assert not pretraining.are_near(pretraining.extrapolated_risks(*SAME, CASES[case]), risks)


@cases
def test_control_with_a_new_task_in_every_prompt_it_is_another_risk(case):
    alpha, _, tau, noise_var = CASES[case]
    closed = np.array(asymptotics.ridgeless_risk(alpha, np.inf, tau, noise_var))
    assert not pretraining.are_near(pretraining.extrapolated_risks(*SAME, CASES[case]), closed)


@pytest.mark.parametrize("kappa", [0.3, 0.8, 1.5])
def test_without_lack_of_prompts_tasks_are_memorised_up_to_one_a_dimension(kappa):
    new, own = asymptotics.ridgeless_risk(1e7, kappa, np.inf, 0.1)
    tasks = np.random.default_rng(0).standard_normal((round(kappa * 200), 200))
    missed = 200 - np.linalg.matrix_rank(tasks)  # dimensions of which no task says anything
    np.testing.assert_allclose([new, own], [0.1 + missed / 200, 0.1], atol=1e-5)


@pytest.mark.parametrize(("ratio", "noise_var"), [(1.0, 1.0), (0.2, 0.5)])
def test_control_where_demonstrations_grow_as_prompts_do_noise_adds_to_new_tasks(ratio, noise_var):
    new, _ = asymptotics.ridgeless_risk(1e7, 0.5, 1e7 / ratio, noise_var)
    added = noise_var * 0.5 * ratio / (1 + noise_var)
    np.testing.assert_allclose(new, noise_var + 0.5 + added, atol=1e-5)
