"""The Kalman filter is the Bayes rule of a drifting task, and at ρ = 1 recursive ridge.

Gaussian tasks and noise; classical, Kalman 1960. docs/theory, "The Kalman filter of a drifting
task".
"""

import jax
import numpy as np

from draws import draw_prompt, draw_regressions, jit_numpy, lags, seed_and, sizes, z_score
from lsa_lab import estimators
from lsa_lab.prompts import Prompt
from lsa_lab.theory import drift

NOISE = 0.4
kalman, ridge = jit_numpy(estimators.kalman_filter), jit_numpy(estimators.recursive_ridge)


def conditional_means(prompt, rho):  # [n+1, d]
    """E[w_{t+1} | y_1, ..., y_t] from the covariances of labels and tasks, by dense solves."""
    x, (n, d) = prompt.x, prompt.x.shape
    correlations = rho ** lags(n + 1) / d
    labels, means = correlations[:n, :n] * (x @ x.T) + NOISE * np.eye(n), [np.zeros(d)]
    for t in range(1, n + 1):
        towards = correlations[t, :t, None] * x[:t]  # E y_i w_{t+1}
        means.append(towards.T @ np.linalg.solve(labels[:t, :t], prompt.y[:t]))
    return np.stack(means)


@sizes
@seed_and(rho=(0, 1))
def test_the_filter_is_the_conditional_mean(n, d, seed, rho):
    prompt = draw_prompt(np.random.default_rng(seed), n, d)
    stated = conditional_means(prompt, rho)
    np.testing.assert_allclose(kalman(prompt, NOISE, rho), stated, atol=1e-10)


def test_at_one_it_is_recursive_ridge_and_control_elsewhere_it_is_not():
    prompt = draw_prompt(np.random.default_rng(0), 5, 3)
    still = ridge(prompt, 3 * NOISE)
    np.testing.assert_allclose(kalman(prompt, NOISE, 1.0), still, atol=1e-11)
    assert np.abs(kalman(prompt, NOISE, 0.9) - still).max() > 1e-2


def test_no_layer_has_less_risk_and_a_filter_of_another_rate_has_more():
    d, noise_var, rho = 4, 0.25, 0.9
    x, _, y = draw_regressions(np.random.default_rng(0), 8_000, 40, d, noise_var, rho)
    batch = Prompt(x[:, :-1], y[:, :-1], x[:, -1], y[:, -1])
    many = jit_numpy(jax.vmap(lambda *case: estimators.kalman_filter(*case)[-1], (0, None, None)))

    def errors(assumed):  # [B]
        return ((many(batch, noise_var, assumed) * batch.x_query).sum(1) - batch.y_query) ** 2

    layers = (drift.additive, drift.delta, drift.lms, drift.gated_delta)
    assert z_score(errors(rho) - min(layer(d, noise_var, rho).risk for layer in layers)) < -2
    assert z_score(errors(0.6) - errors(rho)) > 4
