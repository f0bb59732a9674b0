"""What a demonstration is worth to the Bayes rule is relevance times novelty: v_q ρ² v/(v + σ²).

w ~ N(0, I), noise N(0, σ²), the learner is the posterior mean; v, v_q and ρ are of the posterior
covariance without the demonstration. Derived here; docs/theory, "What a demonstration is worth to
the Bayes rule".
"""

import jax
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab import estimators
from lsa_lab.prompts import Prompt
from population import gauss_hermite

shapes = pytest.mark.parametrize("shape", [(3, 5), (9, 4), (1, 1)])  # n, d


def predict(x, y, x_query, penalty):
    return estimators.ridge(Prompt(x, y, x_query, y[0]), penalty) @ x_query


answer, flow = jit_numpy(predict), jit_numpy(jax.jacrev(predict, 1))


def draw(seed, shape):  # x [n+1, d] with the demonstration last, y, the query, and σ²
    rng, (n, d) = np.random.default_rng(seed), shape
    x, y = rng.normal(size=(n + 1, d)), rng.normal(size=n + 1)
    return x, y, rng.normal(size=d), rng.uniform(0.1, 2)


def mean_gain_error(seed, shape, penalty=1.0):
    """In units of the error without the demonstration; ``penalty`` in units of the right one."""
    x, y, x_query, noise_var = draw(seed, shape)
    risks = []
    for rows in (x[:-1], x):  # E (weights·y - w·x_query)² for y = Xw + noise
        weights = flow(rows, 0 * y[: len(rows)], x_query, penalty * noise_var / len(rows))
        bias = rows.T @ weights - x_query
        risks.append(bias @ bias + noise_var * weights @ weights)
    covariance = np.linalg.inv(np.eye(len(x_query)) + x[:-1].T @ x[:-1] / noise_var)
    gain = (x_query @ covariance @ x[-1]) ** 2 / (x[-1] @ covariance @ x[-1] + noise_var)
    return abs(risks[0] - risks[1] - gain) / risks[0]


@shapes
@seeds
def test_the_mean_gain_is_relevance_times_novelty(shape, seed):
    assert mean_gain_error(seed, shape) < 1e-10


@shapes
@seeds
def test_given_the_label_the_answer_moves_by_flow_times_surprise(shape, seed):
    x, y, x_query, noise_var = draw(seed, shape)
    before, after = (answer(x[:m], y[:m], x_query, noise_var / m) for m in (shape[0], len(x)))
    surprise = y[-1] - answer(x[:-1], y[:-1], x[-1], noise_var / shape[0])
    label_flow = flow(x, y, x_query, noise_var / len(x))[-1]
    assert abs(after - before - label_flow * surprise) < 1e-10 * (1 + abs(after))


def gain_given_the_prompt(seed, shape, penalty=1.0):
    """Mean and variance of what the demonstration takes off the error, given the whole prompt,
    by conditioning w·x_query on the labels; the square of the move, and four times it v_q'."""
    x, y, x_query, noise_var = draw(seed, shape)
    n, level = len(y), penalty * noise_var
    before, after = (answer(x[:m], y[:m], x_query, level / m) for m in (n - 1, n))
    weights = np.linalg.solve(x @ x.T + noise_var * np.eye(n), x @ x_query)
    left, (nodes, mass) = x_query @ x_query - weights @ x @ x_query, gauss_hermite((4,))
    target = weights @ y + np.sqrt(left) * nodes[:, 0]
    gains, move = (before - target) ** 2 - (after - target) ** 2, (after - before) ** 2
    mean = mass @ gains
    return np.array([mean, mass @ gains**2 - mean**2]), np.array([move, 4 * move * left])


@shapes
@seeds
def test_given_the_prompt_the_gain_has_the_mean_move_squared_and_the_stated_variance(shape, seed):
    found, stated = gain_given_the_prompt(seed, shape)
    np.testing.assert_allclose(found, stated, rtol=1e-8, atol=1e-8)


def test_control_another_penalty_gains_another_mean():
    assert mean_gain_error(0, (3, 5), penalty=3.0) > 1e-2
    found, stated = gain_given_the_prompt(0, (3, 5), penalty=3.0)
    assert abs(found[0] / stated[0] - 1) > 1e-2
