"""Where w is one of k known tasks, a softmax of squared residuals is the Bayes rule.

docs/theory, "The discrete Bayes rule". Sides: Bayes' rule by densities, simulation; the estimator.
Hypotheses: equally likely tasks, Gaussian noise of the variance that the rule is told.
"""

import jax
import numpy as np
import pytest
from scipy.stats import norm

from lsa_lab import estimators
from lsa_lab.prompts import Prompt

N, D, K, NOISE = 5, 3, 4, 0.5
TASKS = np.random.default_rng(0).normal(size=(K, D))
rule = jax.jit(estimators.discrete_posterior_means)


def prompts_of(seed, tasks=TASKS, count=None):
    rng = np.random.default_rng(seed)
    shape = () if count is None else (count,)
    w = tasks[rng.integers(len(tasks), size=shape)]
    x = rng.normal(size=(*shape, N + 1, D))
    y = np.einsum("...nd,...d->...n", x, w) + NOISE**0.5 * rng.normal(size=(*shape, N + 1))
    return Prompt(x[..., :-1, :], y[..., :-1], x[..., -1, :], np.asarray(y[..., -1])), w


@pytest.mark.parametrize("seed", [1, 2])
def test_it_is_bayes_rule_on_every_prefix(seed):
    prompt, _ = prompts_of(seed)
    means = np.asarray(rule(prompt, TASKS, NOISE))
    for t in range(N + 1):
        likelihood = norm.pdf(prompt.y[:t, None], prompt.x[:t] @ TASKS.T, NOISE**0.5).prod(0)
        np.testing.assert_allclose(means[t], likelihood @ TASKS / likelihood.sum(), rtol=1e-10)


def errors(noise_var):  # [B] of the last prefix
    batch, w = prompts_of(3, count=4000)
    means = jax.jit(jax.vmap(estimators.discrete_posterior_means, (0, None, None)))
    return ((np.asarray(means(batch, TASKS, noise_var))[:, -1] - w) ** 2).sum(1)


def test_control_with_another_noise_it_errs_more():
    for wrong in (NOISE / 4, 4 * NOISE):
        loss = errors(wrong) - errors(NOISE)
        assert loss.mean() > 4 * loss.std() / len(loss) ** 0.5


def test_with_many_tasks_it_tends_to_ridge():
    prompt, _ = prompts_of(4)
    tasks = np.random.default_rng(5).normal(size=(400_000, D)) / D**0.5
    ridge = jax.jit(estimators.recursive_ridge)(prompt, D * NOISE)
    np.testing.assert_allclose(rule(prompt, tasks, NOISE), ridge, atol=0.02)


def test_far_labels_leave_one_task_and_no_nan():
    prompt, _ = prompts_of(6)
    far = prompt.replace(y=1e6 + prompt.y)
    means = rule(far, TASKS, 1e-6)
    assert np.isfinite(means).all()
    assert (np.abs(np.asarray(means)[1:, None] - TASKS).sum(2).min(1) < 1e-9).all()
    with pytest.raises(ValueError, match=r"noise_var = 0.0.*the nearest task"):
        estimators.discrete_posterior_means(prompt, TASKS, 0.0)
    with pytest.raises(AssertionError, match=r"tasks is \[k, d\]"):
        estimators.discrete_posterior_means(prompt, TASKS[:, :2], 1.0)
