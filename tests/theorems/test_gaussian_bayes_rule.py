"""The posterior mean under Gaussian weights is ridge, and conditions the Gaussian of all labels.

w ~ N(w0, τ²W), y = Xw + N(0, σ²I) (classical; docs/theory, "The Gaussian Bayes rule"). Sides: ridge
in the coordinates of the prior, in weight space; the Gaussian process of the labels, whose
covariance function is τ² xᵀWx' + σ² [same label], conditioned by inverting the covariance of all
n + 1 of them.
"""

import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_prompt, jit_numpy, seed_and
from lsa_lab.estimators import gaussian_posterior_mean, ridge

shapes = pytest.mark.parametrize(("n", "d"), [(12, 4), (3, 8)])
VARIANCES = {"signal_var": (0.1, 3.0), "noise_var": (0.05, 2.0)}
ridge_of = jit_numpy(ridge)


def draw(seed, n, d):
    """A prompt, and a prior's mean [d] and covariance [d, d]."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d)) / d**0.5
    return draw_prompt(rng, n, d), rng.normal(size=d), root @ root.T + 0.1 * np.eye(d)


@jit_numpy
def predict(prompt, signal_var, noise_var, mean, covariance):  # [2], mean and variance
    weights = gaussian_posterior_mean(
        prompt, signal_var, noise_var, prior_mean=mean, prior_covariance=covariance
    )
    precision = prompt.x.T @ prompt.x / noise_var + jnp.linalg.inv(covariance) / signal_var
    variance = noise_var + prompt.x_query @ jnp.linalg.solve(precision, prompt.x_query)
    return jnp.stack([weights @ prompt.x_query, variance])


def condition(prompt, signal_var, noise_var, mean, covariance):  # [2], mean and variance
    """The query's label given the others: of a Gaussian with precision P it has the mean

    m_q - Σ_i P_qi (y_i - m_i)/P_qq and the variance 1/P_qq.
    """
    points = [*prompt.x, prompt.x_query]
    joint = np.array([[signal_var * a @ covariance @ b for a in points] for b in points])
    precision = np.linalg.inv(joint + noise_var * np.eye(len(points)))
    expected = np.array([mean @ point for point in points])
    pull = precision[-1, :-1] @ (prompt.y - expected[:-1])
    return np.array([expected[-1] - pull / precision[-1, -1], 1 / precision[-1, -1]])


@shapes
@seed_and(**VARIANCES)
def test_the_posterior_predicts_what_the_labels_condition(n, d, seed, signal_var, noise_var):
    prompt, *prior = draw(seed, n, d)
    stated = condition(prompt, signal_var, noise_var, *prior)
    posterior = predict(prompt, signal_var, noise_var, *prior)
    np.testing.assert_allclose(posterior, stated, rtol=1e-10, atol=1e-10)


@shapes
@seed_and(**VARIANCES)
def test_ridge_predicts_what_the_labels_of_plain_weights_condition(
    n, d, seed, signal_var, noise_var
):
    prompt, _, _ = draw(seed, n, d)
    centre, _ = condition(prompt, signal_var, noise_var, np.zeros(d), np.eye(d))
    weights = ridge_of(prompt, noise_var / (signal_var * n))
    np.testing.assert_allclose(weights @ prompt.x_query, centre, rtol=1e-10, atol=1e-10)


def test_control_labels_of_another_noise_or_prior_condition_something_else():
    prompt, mean, covariance = draw(0, 3, 8)
    stated = condition(prompt, 1.0, 0.5, mean, covariance)
    assert np.min(np.abs(predict(prompt, 1.0, 0.6, mean, covariance) - stated)) > 1e-3
    assert np.min(np.abs(predict(prompt, 1.0, 0.5, 0 * mean, np.eye(8)) - stated)) > 1e-3
