"""What `label_clipping` compares classifiers with, and what it reads from their answers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.integrate import quad
from scipy.stats import norm

from experiments.clipping.label_clipping import readings, rules
from experiments.clipping.label_clipping.claims import chosen_by_others
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


def test_answers_beyond_the_labels_are_sure():
    np.testing.assert_allclose(
        readings.entropy(np.array([0.5, 0.25, 1.2, -0.1])), [1, 0.8113, 0, 0], atol=1e-4
    )


def test_readings_are_of_each_run_and_edit():
    batch = Prompt(None, None, None, np.array([[1.0, -1.0, 1.0, -1.0]] * 2))
    right, wrong = batch.y_query, -batch.y_query
    values = readings.of_runs(np.stack([right, wrong], axis=1), batch)
    assert values["accuracy"].tolist() == values["auc"].tolist() == [[1, 0], [1, 0]]


@pytest.mark.parametrize("best", [0, 1])
def test_no_edit_is_chosen_by_the_run_it_is_judged_on(best):
    table = np.zeros((3, 2))
    table[:, best], table[0, 1 - best] = 1.0, 9.0
    values = xr.DataArray(table, dims=("run", "rate"))
    assert chosen_by_others(values).tolist() == [1.0, 0.0, 0.0]
