"""What `label_clipping` compares classifiers with, and what it reads from their answers."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from experiments.clipping.label_clipping import rules
from experiments.clipping.label_clipping.compute import average_accuracy
from lsa_lab.prompts import Prompt

X, Y, NOISE, SPREAD = np.array([0.4, -1.1, 0.7]), np.array([1.0, 1.0, -1.0]), 0.5, 2.0


def posterior_probability(noise=NOISE):
    """P(w > 0 | three demonstrations) of one covariate, by quadrature."""

    def density(w):
        return norm.pdf(w, scale=SPREAD) * norm.cdf(Y * X * w / noise).prod()

    return quad(density, 0, 12)[0] / quad(density, -12, 12)[0]


def test_the_bayes_rule_is_that_of_quadrature():
    prompt = Prompt(X[:, None], Y, np.ones(1), np.ones(()))
    batch = jax.tree.map(lambda leaf: jnp.repeat(jnp.asarray(leaf)[None], 64, 0), prompt)
    means = np.asarray(rules.bayes(jax.random.key(0), batch, 500, NOISE, SPREAD))
    standard_error = means.std() / 8
    assert abs(means.mean() - posterior_probability()) < 4 * standard_error < 0.02
    assert abs(means.mean() - posterior_probability(3 * NOISE)) > 4 * standard_error  # control


def test_one_linear_layer_is_right_where_the_sign_of_its_sum_is():
    rng = np.random.default_rng(0)
    x, query = rng.normal(size=(2, 9, 3, 2)), rng.normal(size=(2, 9, 2))
    y, target = np.sign(rng.normal(size=(2, 9, 3))), np.sign(rng.normal(size=(2, 9)))
    right = np.zeros(2)
    for run, b in np.ndindex(2, 9):
        answer = sum(y[run, b, i] * (x[run, b, i] @ query[run, b]) for i in range(3))
        right[run] += (answer > 0) == (target[run, b] > 0)
    batch = Prompt(*map(jnp.asarray, (x, y, query, target)))
    np.testing.assert_allclose(average_accuracy(batch), right / 9)
