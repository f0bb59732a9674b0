"""The posterior mean under Gaussian weights is ridge, and conditions the Gaussian of all labels.

w ~ N(w0, τ²W), y = Xw + N(0, σ²I); classical. docs/theory, "The Gaussian Bayes rule".
"""

import numpy as np

from draws import draw_prompt, jit_numpy, seed_and, sizes
from lsa_lab.estimators import gaussian_posterior_mean, ridge

fit_ridge = jit_numpy(ridge)


@jit_numpy
def predict(prompt, signal_var, noise_var, mean, covariance):
    priors = dict(prior_mean=mean, prior_covariance=covariance)
    return gaussian_posterior_mean(prompt, signal_var, noise_var, **priors) @ prompt.x_query


def condition(prompt, signal_var, noise_var, mean, covariance):
    """The query's label given the others: of a Gaussian with precision P, it has the mean

    m_q - Σ_i P_qi (y_i - m_i)/P_qq.
    """
    points = np.vstack([prompt.x, prompt.x_query])
    joint = signal_var * points @ covariance @ points.T + noise_var * np.eye(len(points))
    precision, expected = np.linalg.inv(joint), points @ mean
    return expected[-1] - precision[-1, :-1] @ (prompt.y - expected[:-1]) / precision[-1, -1]


def draw(seed, n, d):  # a prompt, and a prior's mean [d] and covariance [d, d]
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d)) / d**0.5
    return draw_prompt(rng, n, d), rng.normal(size=d), root @ root.T + 0.1 * np.eye(d)


@sizes
@seed_and(signal_var=(0.1, 3.0), noise_var=(0.05, 2.0))
def test_the_posterior_predicts_what_the_labels_condition(n, d, seed, signal_var, noise_var):
    (prompt, *prior), variances = draw(seed, n, d), (signal_var, noise_var)
    stated = condition(prompt, *variances, *prior)
    np.testing.assert_allclose(predict(prompt, *variances, *prior), stated, rtol=1e-10, atol=1e-10)
    centre = condition(prompt, *variances, np.zeros(d), np.eye(d))
    weights = fit_ridge(prompt, noise_var / (signal_var * n))
    np.testing.assert_allclose(weights @ prompt.x_query, centre, rtol=1e-10, atol=1e-10)


def test_control_labels_of_another_noise_or_prior_condition_something_else():
    prompt, mean, covariance = draw(0, 2, 4)
    stated = condition(prompt, 1.0, 0.5, mean, covariance)
    assert abs(predict(prompt, 1.0, 0.6, mean, covariance) - stated) > 1e-3
    assert abs(predict(prompt, 1.0, 0.5, 0 * mean, np.eye(4)) - stated) > 1e-3
