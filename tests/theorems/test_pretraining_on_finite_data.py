"""One layer fitted to N prompts over k tasks has a closed risk in high dimension (2405.11751).

docs/theory, "Pretraining on finite data". Sides: prompts drawn, the layer fitted by least squares
over its features and tested; the closed form. What differs at finite d falls like 1/d, so twice the
risk at 2d minus that at d is compared. Hypothesis: tasks are drawn from k fixed ones.
"""

import functools

import numpy as np
import pytest

from lsa_lab.theory import asymptotics

TRIALS = {10: 160, 20: 24}
CASES = {
    "few prompts, few tasks": (1.0, 0.5, 0.4, 0.1),
    "many prompts, few tasks": (1.0, 0.5, 3.0, 0.1),
    "many prompts, many tasks": (2.0, 1.5, 4.0, 0.1),
}
cases = pytest.mark.parametrize("case", CASES)


def features(rng, tasks, size, alpha, noise_var):
    """x_query ⊗ (h, mean y²) and y_query of ``size`` prompts, h = (d/n) Σ y_i x_i."""
    d = tasks.shape[1]
    n = round(alpha * d)
    w = tasks[rng.integers(len(tasks), size=size)] if len(tasks) < size else tasks[:size]
    x = rng.standard_normal((size, n + 1, d), np.float32)
    x /= np.float32(d**0.5)
    y = (x @ w[..., None])[..., 0] + np.sqrt(noise_var) * rng.standard_normal((size, n + 1))
    h = d / n * (y[:, None, :n] @ x[:, :n])[:, 0]
    read = np.concatenate([h, (y[:, :n] ** 2).mean(1, keepdims=True)], axis=1)
    return np.einsum("bd,be->bde", x[:, n], read).reshape(size, -1), y[:, n]


def fitted(inputs, outputs, penalty):
    """The ridge estimate; without a penalty, of the layers that err least the smallest. Both by the
    smaller of the two Gram matrices, which is regular."""
    few = len(inputs) < inputs.shape[1]
    gram = inputs @ inputs.T if few else inputs.T @ inputs
    gram = gram + penalty * np.eye(len(gram))
    if few:
        return inputs.T @ np.linalg.solve(gram, outputs)
    return np.linalg.solve(gram, inputs.T @ outputs)


@functools.cache
def simulated(d, alpha, kappa, tau, noise_var, penalty=0.0):
    """The mean risks on new and on pretraining tasks, and their standard errors."""
    risks = []
    for trial in range(TRIALS[d]):
        rng = np.random.default_rng(trial)
        tasks, count = rng.standard_normal((round(kappa * d), d)), round(tau * d * d)
        layer = fitted(*features(rng, tasks, count, alpha, noise_var), penalty * count / d)
        new = features(rng, rng.standard_normal((30 * d, d)), 30 * d, alpha, noise_var)
        old = features(rng, tasks, 30 * d + 1, alpha, noise_var)
        risks.append([((y - inputs @ layer) ** 2).mean() for inputs, y in (new, old)])
    return np.mean(risks, 0), np.std(risks, axis=0, ddof=1) / np.sqrt(len(risks))


def extrapolated(*case):
    (coarse, coarse_error), (fine, fine_error) = (simulated(d, *case) for d in TRIALS)
    return 2 * fine - coarse, np.hypot(2 * fine_error, coarse_error)


@cases
def test_the_simulated_risks_approach_the_closed_form(case):
    risks, errors = extrapolated(*CASES[case])
    closed = np.array(asymptotics.ridgeless_risk(*CASES[case]))
    assert (np.abs(risks - closed) < 3 * errors + 0.03 * closed).all()


def test_with_a_penalty_too_where_without_one_the_risk_is_infinite():
    case = (1.0, 0.5, 1.0, 0.1)  # τ = 1
    assert np.isinf(asymptotics.ridgeless_risk(*case)).all()
    risks, errors = extrapolated(*case, 0.3)
    closed = np.array(asymptotics.ridge_risk(*case, 0.3))
    assert (np.abs(risks - closed) < 3 * errors + 0.03 * closed).all()


@cases
def test_control_with_a_new_task_in_every_prompt_it_is_another_risk(case):
    alpha, _, tau, noise_var = CASES[case]
    risks, errors = extrapolated(*CASES[case])
    closed = np.array(asymptotics.ridgeless_risk(alpha, np.inf, tau, noise_var))
    assert not (np.abs(risks - closed) < 3 * errors + 0.03 * closed).all()


@cases
def test_a_vanishing_penalty_leaves_the_ridgeless_risk(case):
    ridge = asymptotics.ridge_risk(*CASES[case], 1e-9)
    np.testing.assert_allclose(ridge, asymptotics.ridgeless_risk(*CASES[case]), rtol=1e-6)


@pytest.mark.parametrize("kappa", [0.3, 0.8, 1.5])
def test_without_lack_of_prompts_tasks_are_memorised_up_to_one_a_dimension(kappa):
    new, own = asymptotics.ridgeless_risk(1e7, kappa, np.inf, 0.1)
    tasks = np.random.default_rng(0).standard_normal((round(kappa * 200), 200))
    missed = 200 - np.linalg.matrix_rank(tasks)  # dimensions of which no task says anything
    np.testing.assert_allclose([new, own], [0.1 + missed / 200, 0.1], atol=1e-5)
