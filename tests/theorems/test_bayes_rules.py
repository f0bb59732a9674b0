"""The Bayes rules of linear regression: ridge for one Gaussian task, the Kalman filter for one that
drifts, and a softmax of squared residuals where w is one of k equally likely tasks.

w ~ N(w0, τ²W), y = Xw + N(0, σ²I): the posterior mean conditions the Gaussian of all labels. The
filter is recursive ridge at ρ = 1 (Kalman 1960). These are classical. A mesa layer with penalty
dσ², open gates and steps of 1 is ridge after every demonstration. docs/theory, "The Gaussian Bayes
rule", "The Kalman filter of a drifting task", "The discrete Bayes rule", "Learning curve of ridge
regression".
"""

import functools

import jax
import numpy as np
import pytest
from scipy.stats import norm

from draws import draw_prompt, draw_regressions, jit_numpy, lags, seed_and, seeds, sizes, z_score
from lsa_lab import estimators
from lsa_lab.models import recurrent
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.theory import depth, drift, learning_curves
from population import mesa_layer

fit_ridge, recursive_ridge = map(jit_numpy, (estimators.ridge, estimators.recursive_ridge))
kalman, discrete = map(jit_numpy, (estimators.kalman_filter, estimators.discrete_posterior_means))


@jit_numpy
def predict(prompt, signal_var, noise_var, mean, covariance):
    priors = dict(prior_mean=mean, prior_covariance=covariance)
    means = estimators.gaussian_posterior_mean(prompt, signal_var, noise_var, **priors)
    return means @ prompt.x_query


def condition(prompt, signal_var, noise_var, mean, covariance):
    """The query's label given the others: of a Gaussian with precision P, it has the mean

    m_q - Σ_i P_qi (y_i - m_i)/P_qq.
    """
    points = np.vstack([prompt.x, prompt.x_query])
    joint = signal_var * points @ covariance @ points.T + noise_var * np.eye(len(points))
    precision, expected = np.linalg.inv(joint), points @ mean
    return expected[-1] - precision[-1, :-1] @ (prompt.y - expected[:-1]) / precision[-1, -1]


def draw_prior(seed, n, d):  # a prompt, and a prior's mean [d] and covariance [d, d]
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d)) / d**0.5
    return draw_prompt(rng, n, d), rng.normal(size=d), root @ root.T + 0.1 * np.eye(d)


@sizes
@seed_and(signal_var=(0.1, 3.0), noise_var=(0.05, 2.0))
def test_the_posterior_predicts_what_the_labels_condition(n, d, seed, signal_var, noise_var):
    (prompt, *prior), variances = draw_prior(seed, n, d), (signal_var, noise_var)
    stated = condition(prompt, *variances, *prior)
    np.testing.assert_allclose(predict(prompt, *variances, *prior), stated, rtol=1e-10, atol=1e-10)
    centre = condition(prompt, *variances, np.zeros(d), np.eye(d))
    weights = fit_ridge(prompt, noise_var / (signal_var * n))
    np.testing.assert_allclose(weights @ prompt.x_query, centre, rtol=1e-10, atol=1e-10)


def test_control_another_noise_prior_or_drift_is_another_rule():
    prompt, mean, covariance = draw_prior(0, 2, 4)
    stated = condition(prompt, 1.0, 0.5, mean, covariance)
    assert abs(predict(prompt, 1.0, 0.6, mean, covariance) - stated) > 1e-3
    assert abs(predict(prompt, 1.0, 0.5, 0 * mean, np.eye(4)) - stated) > 1e-3
    prompt = draw_prompt(np.random.default_rng(0), 5, 3)
    assert np.abs(kalman(prompt, 0.4, 0.9) - recursive_ridge(prompt, 3 * 0.4)).max() > 1e-2


@sizes
@seed_and(rho=(0, 1))
def test_the_kalman_filter_is_the_conditional_mean_and_at_one_recursive_ridge(n, d, seed, rho):
    """E[w_{t+1} | y_1, ..., y_t] from the covariances of labels and tasks, by dense solves."""
    prompt, noise_var = draw_prompt(np.random.default_rng(seed), n, d), 0.4
    x, correlations, means = prompt.x, rho ** lags(n + 1) / d, [np.zeros(d)]
    labels = correlations[:n, :n] * (x @ x.T) + noise_var * np.eye(n)
    for t in range(1, n + 1):
        towards = correlations[t, :t, None] * x[:t]  # E y_i w_{t+1}
        means.append(towards.T @ np.linalg.solve(labels[:t, :t], prompt.y[:t]))
    np.testing.assert_allclose(kalman(prompt, noise_var, rho), np.stack(means), atol=1e-10)
    still = recursive_ridge(prompt, d * noise_var)
    np.testing.assert_allclose(kalman(prompt, noise_var, 1.0), still, atol=1e-11)


def test_no_layer_has_less_risk_than_the_filter_and_one_of_another_rate_has_more():
    d, noise_var, rho = 4, 0.25, 0.9
    x, _, y = draw_regressions(np.random.default_rng(0), 8_000, 40, d, noise_var, rho)
    batch = Prompt(x[:, :-1], y[:, :-1], x[:, -1], y[:, -1])
    many = jit_numpy(jax.vmap(lambda *case: estimators.kalman_filter(*case)[-1], (0, None, None)))

    def errors(assumed):  # [B]
        return ((many(batch, noise_var, assumed) * batch.x_query).sum(1) - batch.y_query) ** 2

    layers = (drift.additive, drift.delta, drift.lms, drift.gated_delta)
    assert z_score(errors(rho) - min(layer(d, noise_var, rho).risk for layer in layers)) < -2
    assert z_score(errors(0.6) - errors(rho)) > 4


N, D, K, NOISE = 5, 3, 4, 0.5
TASKS = np.random.default_rng(0).normal(size=(K, D))


def draw_discrete(seed, *shape):  # prompts and their tasks
    rng = np.random.default_rng(seed)
    w, x = TASKS[rng.integers(K, size=shape)], rng.normal(size=(*shape, N + 1, D))
    y = np.einsum("...nd,...d->...n", x, w) + NOISE**0.5 * rng.normal(size=(*shape, N + 1))
    return Prompt(x[..., :-1, :], y[..., :-1], x[..., -1, :], np.asarray(y[..., -1])), w


@seeds
def test_a_softmax_of_squared_residuals_is_bayes_rule_on_every_prefix(seed):
    prompt, _ = draw_discrete(seed)
    means = discrete(prompt, TASKS, NOISE)
    for t in range(N + 1):
        likelihood = norm.pdf(prompt.y[:t, None], prompt.x[:t] @ TASKS.T, NOISE**0.5).prod(0)
        stated = likelihood @ TASKS / likelihood.sum()
        np.testing.assert_allclose(means[t], stated, rtol=1e-10, atol=1e-12)


def test_control_with_another_noise_it_errs_more():
    batch, w = draw_discrete(3, 4000)
    means = jit_numpy(jax.vmap(estimators.discrete_posterior_means, (0, None, None)))
    least, *others = (
        ((means(batch, TASKS, c * NOISE)[:, -1] - w) ** 2).sum(1) for c in (1.0, 1 / 4, 4.0)
    )
    assert min(z_score(errors - least) for errors in others) > 4


def test_with_many_tasks_it_tends_to_ridge_and_far_labels_leave_one_task_and_no_nan():
    prompt, _ = draw_discrete(4)
    tasks = np.random.default_rng(5).normal(size=(400_000, D)) / D**0.5
    ridge = recursive_ridge(prompt, D * NOISE)
    np.testing.assert_allclose(discrete(prompt, tasks, NOISE), ridge, atol=0.02)
    means = discrete(prompt.replace(y=1e6 + prompt.y), TASKS, 1e-6)
    assert np.isfinite(means).all()
    assert (np.abs(means[1:, None] - TASKS).sum(2).min(1) < 1e-9).all()


@functools.partial(jit_numpy, static_argnames="solve")
def states(prompt, gate=np.inf, solve="cholesky"):  # [n, d]
    d = prompt.x.shape[1]
    params, config = mesa_layer(d, d * NOISE, gate, solve=solve)
    return recurrent.states(params, tokens(prompt), config)[0, 0, :-1, :, 0]


@pytest.mark.parametrize("solve", ["recursive", "cholesky"])
@pytest.mark.parametrize(("n", "d"), [(N, D), (1, 1)])
@seeds
def test_every_state_is_ridge_on_its_prefix(n, d, solve, seed):
    prompt, rows = draw_prompt(np.random.default_rng(seed), n, d), []
    for t in range(1, n + 1):
        x, y = prompt.x[:t], prompt.y[:t]
        rows.append(np.linalg.solve(x.T @ x + d * NOISE * np.eye(d), x.T @ y))
    np.testing.assert_allclose(states(prompt, solve=solve), np.stack(rows), atol=1e-11)
    if seed == 0 and d == D:  # Control: a gate
        assert np.abs(states(prompt, 2.0, solve=solve) - np.stack(rows)).max() > 1e-2


@pytest.mark.parametrize("penalty", [D * NOISE, 0.2])
def test_its_risk_is_the_curve_by_quadrature(penalty):
    x, w, y = draw_regressions(np.random.default_rng(1), 40_000, N, D, NOISE)
    curve = learning_curves.ridge(N, D, NOISE, penalty)
    for t in (1, 2, 3, N):
        moment = x[:, :t].swapaxes(1, 2) @ x[:, :t] + penalty * np.eye(D)
        towards = np.einsum("bnd,bn->bd", x[:, :t], y[:, :t])
        errors = ((np.linalg.solve(moment, towards[..., None])[..., 0] - w[:, 0]) ** 2).sum(1)
        assert abs(z_score(errors - curve[t])) < 4


def test_no_other_penalty_has_less_risk_and_descent_with_many_steps_ends_there():
    best = learning_curves.ridge(N, D, NOISE)
    for factor in (0.3, 0.8, 1.3, 4.0):
        assert (learning_curves.ridge(N, D, NOISE, factor * D * NOISE)[1:] > best[1:]).all()
    np.testing.assert_allclose(best[-1], depth.best_descent_at(N, D, NOISE, 80)[-1], rtol=1e-9)
