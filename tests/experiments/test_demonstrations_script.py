"""Fitted demonstrations and patches: their measures beside loops and cases known by hand."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from experiments.descent import virtual_demonstrations as script
from experiments.models import model
from experiments.models.specs import dense_spec
from lsa_lab.models import constructions
from lsa_lab.prompts import Prompt

SPEC = dense_spec("linear", 2, 4, 2, training=dict(steps=1, batch=1, learning_rate=1.0, seeds=1))
RNG = np.random.default_rng(0)
X, Y, QUERIES = RNG.normal(size=(4, 2)), RNG.normal(size=4), RNG.normal(size=(5, 2))
DESCENT = model.Model(SPEC, constructions.gradient_descent(jnp.array([0.2, 0.1]), 2))


def descend(x, y):
    w = np.zeros(2)
    for step in (0.2, 0.1):
        w = w + step * x.T @ (y - x @ w) / len(y)
    return w


def test_answers_are_those_of_the_weights_that_descent_ends_at():
    answers = script.answers(DESCENT, X, Y, QUERIES)
    np.testing.assert_allclose(answers, QUERIES @ descend(X, Y))
    batch = Prompt(np.stack([X] * 5), np.stack([Y] * 5), QUERIES, np.zeros(5))
    np.testing.assert_allclose(answers, DESCENT.predict(batch))


@pytest.mark.parametrize(("steps", "near"), [(300, True), (1, False)])
def test_one_demonstration_is_fitted_to_the_answers_of_descent(steps, near):
    config = script.Config(steps=steps, batch=5)
    targets = jnp.asarray(QUERIES @ descend(X, Y))
    start = jnp.asarray(X[:1]), jnp.asarray(Y[:1])
    fit = jax.jit(partial(script.fit, config=config))
    fitted = fit(DESCENT, start, jnp.asarray(QUERIES), targets, jax.random.key(0))
    error = script.relative_error(DESCENT, fitted, QUERIES, targets)
    np.testing.assert_allclose(
        error,
        np.sum((QUERIES @ descend(*map(np.asarray, fitted)) - targets) ** 2) / np.sum(targets**2),
        rtol=1e-6,
        atol=1e-12,
    )
    assert (error < 1e-3) == near


def test_shares_are_compared_with_the_prediction_and_with_a_projection():
    share = np.array([[[0.3, 0.9], [0.25, 0.95]]])[:, None]  # one model, one run
    names = {"model": ["transformer"], "kind": ["patch", "projection"], "queries": [1, 12]}
    result = xr.Dataset({"share": (("model", "run", "kind", "queries"), share), "d": 4}, names)
    for queries, excess, difference in ((1, 0.05, 0.05), (12, -0.1, -0.05)):
        cell = dict(model="transformer", queries=queries)
        np.testing.assert_allclose(script.excess_share(result, **cell), [excess])
        np.testing.assert_allclose(script.over_projection(result, **cell), [difference])
    assert script.excess_share(result, "transformer", 3) is None
