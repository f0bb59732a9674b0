"""Under Gaussian weights the posterior mean is ridge, in weight space and in label space alike.

w ~ N(w0, τ²W), y = Xw + N(0, σ²I): conditioning the joint Gaussian of labels and query label gives
the mean and variance of the prediction (classical; THEORY II.2.7).
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsa_lab.estimators import gaussian_posterior_mean, gaussian_predictive_variance, ridge
from lsa_lab.prompts import Prompt

SHAPES = [(12, 4), (5, 5), (3, 8)]
VARIANCES = {"signal_var": st.floats(0.1, 3.0), "noise_var": st.floats(0.05, 2.0)}


@partial(jax.jit, static_argnames=("n", "d"))
def draw(seed, n, d):
    keys = jax.random.split(jax.random.key(seed), 5)
    x, x_query = jax.random.normal(keys[0], (n, d)), jax.random.normal(keys[1], (d,))
    prompt = Prompt(x, jax.random.normal(keys[2], (n,)), x_query, jnp.zeros(()))
    root = jax.random.normal(keys[3], (d, d)) / d**0.5
    return prompt, jax.random.normal(keys[4], (d,)), root @ root.T + 0.1 * jnp.eye(d)


@jax.jit
def predict(prompt, signal_var, noise_var, mean, covariance):  # [2], mean and variance
    prior = {"prior_mean": mean, "prior_covariance": covariance}
    weights = gaussian_posterior_mean(prompt, signal_var, noise_var, **prior)
    variance = gaussian_predictive_variance(
        prompt, signal_var, noise_var, prior_covariance=covariance
    )
    return jnp.stack([weights @ prompt.x_query, variance])


def condition(prompt, signal_var, noise_var, mean, covariance):
    """The query's label given the others, from the joint law of all n + 1 noisy labels."""
    points = np.vstack([prompt.x, prompt.x_query])
    joint = signal_var * points @ np.array(covariance) @ points.T + noise_var * np.eye(len(points))
    expected = points @ np.array(mean)
    gain = np.linalg.solve(joint[:-1, :-1], joint[:-1, -1])
    centre = expected[-1] + gain @ (np.array(prompt.y) - expected[:-1])
    return np.array([centre, joint[-1, -1] - gain @ joint[:-1, -1]])


@pytest.mark.parametrize(("n", "d"), SHAPES)
@given(seed=st.integers(0, 2**32 - 1), **VARIANCES)
def test_ridge_in_weight_space_is_conditioning_in_label_space(n, d, seed, signal_var, noise_var):
    prompt, mean, covariance = draw(seed, n, d)
    for prior in ((mean, covariance), (jnp.zeros(d), jnp.eye(d))):
        ours = predict(prompt, signal_var, noise_var, *prior)
        np.testing.assert_allclose(
            ours, condition(prompt, signal_var, noise_var, *prior), rtol=1e-10, atol=1e-10
        )


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_without_a_prior_of_its_own_it_is_ridge(n, d):
    prompt, _, _ = draw(1, n, d)
    weights = gaussian_posterior_mean(prompt, 2.0, 0.3)
    np.testing.assert_allclose(weights, ridge(prompt, 0.3 / (2.0 * n)), rtol=1e-10)
    variance = gaussian_predictive_variance(prompt, 2.0, 0.3)
    stated = condition(prompt, 2.0, 0.3, np.zeros(d), np.eye(d))
    np.testing.assert_allclose([weights @ prompt.x_query, variance], stated, atol=1e-10)


def test_another_noise_or_prior_breaks_it():
    prompt, mean, covariance = draw(0, 5, 5)
    stated = condition(prompt, 1.0, 0.5, mean, covariance)
    assert np.min(np.abs(predict(prompt, 1.0, 0.6, mean, covariance) - stated)) > 1e-3
    assert np.min(np.abs(predict(prompt, 1.0, 0.5, 0 * mean, jnp.eye(5)) - stated)) > 1e-3
