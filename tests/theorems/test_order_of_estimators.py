"""On sparse prompts: Bayes, then lasso and preprocessing, then ridge, then least squares.

Ridge with the optimal penalty is the best of all rules g(H) Xᵀy/n (THEORY II.1.9), so what is below
it has used sparsity. All rules see the same prompts; differences are judged at four standard errors
(THEORY II.2.7, last bullet). On dense Gaussian weights ridge is Bayes and the order turns round.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.estimators import (
    gaussian_posterior_mean,
    lasso,
    ols,
    preprocessed_gradient_descent,
    preprocessed_step_limit,
    sparse_posterior_mean,
)
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample_weights

N, D, S, NOISE_VAR, STEPS, PROMPTS = 20, 16, 4, 0.1, 100, 400
PENALTIES = np.geomspace(0.02, 0.3, 8)


@partial(jax.jit, static_argnames="sparsity")
@partial(jax.vmap, in_axes=(0, None))
def draw(key, sparsity):
    key_x, key_weights, key_noise = jax.random.split(key, 3)
    task = LinearTask(N, D, sparsity=sparsity, weight_std=(sparsity or D) ** -0.5)  # E |w|² = 1
    weights = sample_weights(key_weights, task)
    x = jax.random.normal(key_x, (N, D))
    y = x @ weights + NOISE_VAR**0.5 * jax.random.normal(key_noise, (N,))
    return Prompt(x, y, jnp.zeros(D), jnp.zeros(())), weights


def preprocessed_path(prompt):  # [steps+1, d]
    """The weights are the predictions at the unit vectors."""
    step_size = 0.9 * preprocessed_step_limit(prompt, normalise=True)

    def at(query):
        prompt_there = prompt.replace(x_query=query)
        return preprocessed_gradient_descent(prompt_there, step_size, STEPS, normalise=True)

    return jax.vmap(at, out_axes=1)(jnp.eye(D))


def risks(rule, batch):  # [B] or [B, candidates]
    prompts, weights = batch
    estimates = jax.jit(jax.vmap(rule))(prompts)
    truth = weights[:, None] if estimates.ndim == 3 else weights
    return np.sum((np.array(estimates) - np.array(truth)) ** 2, axis=-1)


def tuned(rule, tuning, batch):
    """Risks of the candidate that is best on other prompts."""
    return risks(rule, batch)[:, np.argmin(risks(rule, tuning).mean(0))]


def advantage(better, worse):
    """The mean of the paired difference in standard errors."""
    difference = worse - better
    return difference.mean() / (difference.std(ddof=1) / len(difference) ** 0.5)


def bayes(prompt):
    return sparse_posterior_mean(prompt, S, 1 / S, NOISE_VAR)


def ridge_level(prompt):
    return gaussian_posterior_mean(prompt, 1 / D, NOISE_VAR)


def lassos(prompt):
    return jnp.stack([lasso(prompt, penalty) for penalty in PENALTIES])


def test_rules_that_use_sparsity_are_better_in_this_order():
    keys = jax.random.split(jax.random.key(0), (2, PROMPTS))
    tuning, batch = draw(keys[0], S), draw(keys[1], S)
    best, ridge, least_squares = (risks(rule, batch) for rule in (bayes, ridge_level, ols))
    for rule in (lassos, preprocessed_path):
        middle = tuned(rule, tuning, batch)
        assert advantage(best, middle) > 4
        assert advantage(middle, ridge) > 4
    assert advantage(ridge, least_squares) > 4


def test_on_dense_weights_ridge_is_best():
    batch = draw(jax.random.split(jax.random.key(1), PROMPTS), None)
    assert advantage(risks(ridge_level, batch), risks(bayes, batch)) > 4
