"""A layer fitted on tasks of one covariance has a closed risk on tasks of another (2509.26551).

docs/theory, "Tasks of another covariance". Sides: prompts drawn, the layer fitted by least squares,
and its exact risk by the moments of its features; the closed form. What differs at finite d falls
like 1/d, so twice the risk at 2d minus that at d is compared. Hypothesis: it is tested on T.
"""

import functools

import jax
import numpy as np
import pytest

from lsa_lab.theory import alignment, asymptotics

TRIALS = {12: 96, 24: 32}
LARGE_FIRST, LARGE_LAST = (1.7, 0.3), (0.2, 1.8)
CASES = {
    "aligned, few tasks": (LARGE_FIRST, LARGE_FIRST, 1.0, 0.5, 2.0, 0.1),
    "crossed, few tasks": (LARGE_FIRST, LARGE_LAST, 1.0, 0.5, 2.0, 0.1),
    "crossed, few prompts": (LARGE_FIRST, LARGE_LAST, 2.0, 1.5, 0.5, 0.3),
}
cases = pytest.mark.parametrize("case", CASES)
closed_form = jax.jit(alignment.aligned_risk)


def halves(pair, d):
    return np.repeat(pair, d // 2)


@functools.cache
def simulated(d, train, test, alpha, kappa, tau, noise_var):
    """The mean over trials of a layer's exact risk on new tasks, and its standard error."""
    n, size, risks = round(alpha * d), round(tau * d * d), []
    for trial in range(TRIALS[d]):
        rng = np.random.default_rng(trial)
        tasks = rng.standard_normal((round(kappa * d), d)) * np.sqrt(halves(train, d))
        w = tasks[rng.integers(len(tasks), size=size)]
        x = rng.standard_normal((size, n + 1, d)) / d**0.5
        y = np.einsum("bnd,bd->bn", x, w)
        y += np.sqrt(noise_var) * rng.standard_normal((size, n + 1))
        h = d / n * np.einsum("bn,bnd->bd", y[:, :n], x[:, :n])
        features = (x[:, n, :, None] * h[:, None, :]).reshape(size, -1)
        layer = np.linalg.lstsq(features, y[:, n])[0].reshape(d, d)
        t = halves(test, d)
        read = (1 + 1 / n) * t + d / n * (t.mean() + noise_var)  # the variances of h, exactly
        risk = noise_var + t.mean() - 2 * (np.diag(layer) * t).mean() + (layer**2 @ read).mean()
        risks.append(risk)
    return np.mean(risks), np.std(risks, ddof=1) / np.sqrt(len(risks))


def extrapolated(*case):
    (coarse, coarse_error), (fine, fine_error) = (simulated(d, *case) for d in TRIALS)
    return 2 * fine - coarse, np.hypot(2 * fine_error, coarse_error)


def is_near(risk, error, train, test, *place):
    closed = closed_form(halves(train, 2), halves(test, 2), *place).new_tasks
    return abs(risk - closed) < 3 * error + 0.03 * closed


@cases
def test_the_risk_on_tasks_of_another_covariance_approaches_the_closed_form(case):
    assert is_near(*extrapolated(*CASES[case]), *CASES[case])


def test_control_tested_on_the_tasks_of_training_it_is_another_risk():
    train, _, *place = CASES["crossed, few tasks"]
    assert not is_near(*extrapolated(*CASES["crossed, few tasks"]), train, train, *place)


@cases
def test_of_equal_variances_the_risk_is_that_of_pretraining_on_finite_data(case):
    place = CASES[case][2:]
    risks = closed_form(np.ones(2), np.ones(2), *place)
    np.testing.assert_allclose(risks, asymptotics.ridgeless_risk(*place), rtol=1e-12)


def test_variances_that_cannot_be_are_refused():
    for train, test in (((1.0, -1.0), (1.0, 1.0)), ((1.0, 1.0), (1.0, -1.0)), ((0.0,), (1.0,))):
        with pytest.raises(ValueError, match=r"variance|no task to learn"):
            alignment.aligned_risk(np.array(train), np.array(test), 1.0, 0.5, 2.0, 0.1)
    with pytest.raises(ValueError, match="prompts are finite"):
        alignment.aligned_risk(np.ones(1), np.ones(1), np.inf, 0.5, 2.0, 0.1)
