"""The Kalman filter is the Bayes rule of a drifting task, and at ρ = 1 recursive ridge.

docs/theory, "The Kalman filter of a drifting task"; classical, Kalman 1960. Sides: the filter; the
conditional mean of all tasks given all labels, by one dense solve in NumPy. Hypotheses: Gaussian
tasks and noise.
"""

import hypothesis.strategies as st
import jax
import numpy as np
from hypothesis import given

from draws import SEEDS, draw_prompt, jit_numpy
from lsa_lab import estimators
from lsa_lab.tasks.linear import LinearTask, sample_batch
from lsa_lab.theory import drift

N, D, NOISE = 7, 3, 0.4
kalman, ridge = jit_numpy(estimators.kalman_filter), jit_numpy(estimators.recursive_ridge)
RHO = st.floats(0, 1)


def conditional_means(prompt, rho):  # [N+1, D]
    """E[w_{t+1} | y_1, ..., y_t] from the covariances of labels and tasks."""
    lags = rho ** np.abs(np.subtract.outer(np.arange(N + 1), np.arange(N + 1))) / D
    x, means = np.asarray(prompt.x), [np.zeros(D)]
    labels = lags[:N, :N] * (x @ x.T) + NOISE * np.eye(N)
    for t in range(1, N + 1):
        towards = lags[t, :t, None] * x[:t]  # E y_i w_{t+1}
        means.append(towards.T @ np.linalg.solve(labels[:t, :t], prompt.y[:t]))
    return np.stack(means)


@given(seed=SEEDS, rho=RHO)
def test_the_filter_is_the_conditional_mean(seed, rho):
    prompt = draw_prompt(np.random.default_rng(seed), N, D)
    np.testing.assert_allclose(
        kalman(prompt, NOISE, rho), conditional_means(prompt, rho), atol=1e-10
    )


def test_at_one_it_is_recursive_ridge_and_control_elsewhere_it_is_not():
    prompt = draw_prompt(np.random.default_rng(0), N, D)
    still = ridge(prompt, D * NOISE)
    np.testing.assert_allclose(kalman(prompt, NOISE, 1.0), still, atol=1e-11)
    assert np.abs(kalman(prompt, NOISE, 0.9) - still).max() > 1e-2


def test_no_layer_has_less_risk_and_a_filter_of_another_rate_has_more():
    d, noise_var, rho, n = 4, 0.25, 0.9, 40
    task = LinearTask(n, d, noise_std=noise_var**0.5, weight_std=d**-0.5, drift=rho)

    @jit_numpy
    def errors(assumed):  # [B]
        batch = sample_batch(jax.random.key(0), task, 20_000)
        rules = jax.vmap(lambda one: estimators.kalman_filter(one, noise_var, assumed)[-1])(batch)
        return ((rules * batch.x_query).sum(1) - batch.y_query) ** 2

    best = errors(rho)
    spread = best.std() / len(best) ** 0.5
    layers = (drift.additive, drift.delta, drift.lms, drift.gated_delta)
    assert best.mean() < min(layer(d, noise_var, rho).risk for layer in layers) - 2 * spread
    others = errors(0.6) - best
    assert others.mean() > 4 * others.std() / len(best) ** 0.5
