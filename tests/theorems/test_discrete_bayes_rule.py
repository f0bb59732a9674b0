"""Where w is one of k equally likely tasks, a softmax of squared residuals is the Bayes rule.

docs/theory, "The discrete Bayes rule".
"""

import jax
import numpy as np
from scipy.stats import norm

from draws import jit_numpy, seeds, z_score
from lsa_lab import estimators
from lsa_lab.prompts import Prompt

N, D, K, NOISE = 5, 3, 4, 0.5
TASKS = np.random.default_rng(0).normal(size=(K, D))
rule = jit_numpy(estimators.discrete_posterior_means)


def draw(seed, *shape):  # prompts and their tasks
    rng = np.random.default_rng(seed)
    w, x = TASKS[rng.integers(K, size=shape)], rng.normal(size=(*shape, N + 1, D))
    y = np.einsum("...nd,...d->...n", x, w) + NOISE**0.5 * rng.normal(size=(*shape, N + 1))
    return Prompt(x[..., :-1, :], y[..., :-1], x[..., -1, :], np.asarray(y[..., -1])), w


@seeds
def test_it_is_bayes_rule_on_every_prefix(seed):
    prompt, _ = draw(seed)
    means = rule(prompt, TASKS, NOISE)
    for t in range(N + 1):
        likelihood = norm.pdf(prompt.y[:t, None], prompt.x[:t] @ TASKS.T, NOISE**0.5).prod(0)
        np.testing.assert_allclose(
            means[t], likelihood @ TASKS / likelihood.sum(), rtol=1e-10, atol=1e-12
        )


def test_control_with_another_noise_it_errs_more():
    batch, w = draw(3, 4000)
    means = jit_numpy(jax.vmap(estimators.discrete_posterior_means, (0, None, None)))
    least, *others = (
        ((means(batch, TASKS, c * NOISE)[:, -1] - w) ** 2).sum(1) for c in (1.0, 1 / 4, 4.0)
    )
    assert min(z_score(errors - least) for errors in others) > 4


def test_with_many_tasks_it_tends_to_ridge_and_far_labels_leave_one_task_and_no_nan():
    prompt, _ = draw(4)
    tasks = np.random.default_rng(5).normal(size=(400_000, D)) / D**0.5
    ridge = jit_numpy(estimators.recursive_ridge)(prompt, D * NOISE)
    np.testing.assert_allclose(rule(prompt, tasks, NOISE), ridge, atol=0.02)
    means = rule(prompt.replace(y=1e6 + prompt.y), TASKS, 1e-6)
    assert np.isfinite(means).all()
    assert (np.abs(means[1:, None] - TASKS).sum(2).min(1) < 1e-9).all()
