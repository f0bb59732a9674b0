"""What a demonstration is worth to the Bayes rule is relevance times novelty: v_q ρ² v/(v + σ²).

w ~ N(0, I), noise N(0, σ²), the learner is the posterior mean; v, v_q and ρ are of the posterior
covariance without the demonstration. Derived here; docs/theory, "What a demonstration is worth to
the Bayes rule".
"""

import jax
import numpy as np
import pytest

from draws import jit_numpy, relative_error, seeds
from lsa_lab import estimators
from lsa_lab.prompts import Prompt
from population import gauss_hermite


@jit_numpy
def answer(x, y, x_query, noise_var):  # of ridge: its prediction, and its derivative by the labels
    def predict(y):
        return estimators.ridge(Prompt(x, y, x_query, y[0]), noise_var / len(x)) @ x_query

    return jax.value_and_grad(predict)(y)


def errors(seed, n, d, penalty=1.0):
    """Of the mean gain, of the move by flow times surprise, and of the gain given the whole prompt;
    ``penalty`` is in units of the right one."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n + 1, d)), rng.normal(size=n + 1)  # the demonstration is the last
    x_query, noise_var = rng.normal(size=d), rng.uniform(0.1, 2)
    (before, *flows), (after, flow), (expected, _) = (
        answer(x[:m], y[:m], query, penalty * noise_var)
        for m, query in ((n, x_query), (n + 1, x_query), (n, x[-1]))
    )
    risks = []
    for weights in (np.append(*flows, 0), flow):  # E (weights·y - w·x_query)² for y = Xw + noise
        bias = x.T @ weights - x_query
        risks.append(bias @ bias + noise_var * weights @ weights)
    covariance = np.linalg.inv(np.eye(d) + x[:-1].T @ x[:-1] / noise_var)
    gain = (x_query @ covariance @ x[-1]) ** 2 / (x[-1] @ covariance @ x[-1] + noise_var)
    # Given the prompt: mean and variance by conditioning w·x_query on the labels.
    weights = np.linalg.solve(x @ x.T + noise_var * np.eye(n + 1), x @ x_query)
    left, (nodes, mass) = x_query @ x_query - weights @ x @ x_query, gauss_hermite((4,))
    target, square = weights @ y + np.sqrt(left) * nodes[:, 0], (after - before) ** 2
    gains = (before - target) ** 2 - (after - target) ** 2
    moments = mass @ gains, mass @ gains**2 - (mass @ gains) ** 2
    return (
        abs(risks[0] - risks[1] - gain) / risks[0],
        relative_error(after - before, flow[-1] * (y[-1] - expected)),
        *map(relative_error, moments, (square, 4 * square * left)),
    )


@pytest.mark.parametrize(("n", "d"), [(3, 5), (9, 4)])
@seeds
def test_the_gain_is_relevance_times_novelty_and_given_the_prompt_the_move_squared(n, d, seed):
    mean_gain, move, *gains = errors(seed, n, d)
    assert max(mean_gain, move) < 1e-10
    assert max(gains) < 1e-8
    mean_gain, _, gain, _ = errors(0, n, d, penalty=3.0)  # Control: another penalty
    assert min(mean_gain, gain) > 1e-2
