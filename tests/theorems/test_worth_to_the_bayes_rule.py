"""What a demonstration is worth to the Bayes rule: relevance times novelty, exactly.

Hypothesis: w ~ N(0, I), noise N(0, σ²), and the learner is the posterior mean. Sides: the excess
risk of ridge regression with and without the demonstration, from its weights on the labels and the
covariances of w and of the noise; the posterior covariance Σ of the others, as v_q ρ² v/(v + σ²).
Derived here; docs/theory, "What a demonstration is worth to the Bayes rule".
"""

import jax
import numpy as np
import pytest

from draws import seeds
from lsa_lab import estimators
from lsa_lab.prompts import Prompt
from population import gauss_hermite

shapes = pytest.mark.parametrize("shape", [(3, 5), (9, 4)])  # n, d


@jax.jit
def answer(x, y, x_query, penalty):
    return estimators.ridge(Prompt(x, y, x_query, y[0]), penalty) @ x_query


flow = jax.jit(jax.jacfwd(answer, 1))


def draw(seed, shape):
    """x [n+1, d] with the demonstration last, y, the query, and σ²."""
    rng, (n, d) = np.random.default_rng(seed), shape
    return (
        rng.normal(size=(n + 1, d)),
        rng.normal(size=n + 1),
        rng.normal(size=d),
        rng.uniform(0.1, 2),
    )


def risk(x, x_query, noise_var, penalty):
    """E (weights·y - w·x_query)² for y = Xw + noise, with the rule's own weights on the labels."""
    weights = np.asarray(flow(x, np.zeros(len(x)), x_query, penalty))
    bias = x.T @ weights - x_query
    return bias @ bias + noise_var * weights @ weights


def factors(x, x_query, noise_var):
    """v_q, the correlation ρ and v/(v + σ²), by the posterior covariance of the others."""
    covariance = np.linalg.inv(np.eye(len(x_query)) + x[:-1].T @ x[:-1] / noise_var)
    of_query, of_x = x_query @ covariance @ x_query, x[-1] @ covariance @ x[-1]
    correlation = x_query @ covariance @ x[-1] / np.sqrt(of_query * of_x)
    return of_query, correlation, of_x / (of_x + noise_var)


def disagreement(seed, shape, penalty=1.0):
    """In units of the error without the demonstration; ``penalty`` in units of the right one."""
    x, _, x_query, noise_var = draw(seed, shape)
    without, with_it = (
        risk(rows, x_query, noise_var, penalty * noise_var / len(rows)) for rows in (x[:-1], x)
    )
    of_query, correlation, novelty = factors(x, x_query, noise_var)
    return abs(without - with_it - of_query * correlation**2 * novelty) / without


@shapes
@seeds
def test_the_mean_gain_is_relevance_times_novelty(shape, seed):
    assert disagreement(seed, shape) < 1e-10


def test_control_another_penalty_has_another_gain():
    assert disagreement(0, (3, 5), penalty=3.0) > 1e-2


@shapes
@seeds
def test_given_the_label_the_answer_moves_by_flow_times_surprise(shape, seed):
    x, y, x_query, noise_var = draw(seed, shape)
    before = answer(x[:-1], y[:-1], x_query, noise_var / shape[0])
    after = answer(x, y, x_query, noise_var / len(x))
    surprise = y[-1] - answer(x[:-1], y[:-1], x[-1], noise_var / shape[0])
    of_label = flow(x, y, x_query, noise_var / len(x))[-1]
    assert abs(after - before - of_label * surprise) < 1e-10 * (1 + abs(after))


def gain(seed, shape, penalty=1.0):
    """Mean and variance of what the demonstration takes off the error, given the whole prompt,
    by conditioning w·x_query on the labels; the square of the move, and four times it v_q'."""
    x, y, x_query, noise_var = draw(seed, shape)
    n, level = len(y), penalty * noise_var
    before, after = (np.asarray(answer(x[:m], y[:m], x_query, level / m)) for m in (n - 1, n))
    weights = np.linalg.solve(x @ x.T + noise_var * np.eye(len(x)), x @ x_query)
    left = x_query @ x_query - weights @ x @ x_query
    nodes, mass = gauss_hermite((4,))
    target = weights @ y + np.sqrt(left) * nodes[:, 0]
    gains, move = (before - target) ** 2 - (after - target) ** 2, (after - before) ** 2
    measured = np.array([mass @ gains, mass @ gains**2 - (mass @ gains) ** 2])
    return measured, np.array([move, 4 * move * left])


@shapes
@seeds
def test_given_the_prompt_the_gain_has_the_mean_move_squared_and_the_stated_variance(shape, seed):
    measured, stated = gain(seed, shape)
    np.testing.assert_allclose(measured, stated, rtol=1e-8, atol=1e-8)


def test_control_another_rule_gains_another_mean():
    measured, stated = gain(0, (3, 5), penalty=3.0)
    assert abs(measured[0] / stated[0] - 1) > 1e-2
