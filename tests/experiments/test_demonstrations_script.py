"""Fitted demonstrations and patches: their measures beside loops and cases known by hand."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from draws import descend
from experiments.descent import virtual_demonstrations as script
from experiments.models import model
from experiments.models.specs import dense_spec
from lsa_lab.models import constructions

SPEC = dense_spec("linear", 2, 4, 2, training=dict(steps=1, batch=1, learning_rate=1.0, seeds=1))
STEPS = (0.2, 0.1)


@pytest.mark.parametrize(("steps", "near"), [(300, True), (1, False)])
def test_one_demonstration_is_fitted_to_the_answers_of_descent(steps, near):
    x, y, queries = map(np.random.default_rng(0).standard_normal, ((4, 2), 4, (5, 2)))
    descent = model.Model(SPEC, constructions.gradient_descent(jnp.array(STEPS), 2))
    targets = queries @ descend(x, y, STEPS)
    np.testing.assert_allclose(script.answers(descent, x, y, queries), targets)
    fit = jax.jit(partial(script.fit, config=script.Config(steps=steps, batch=5)))
    arrays = map(jnp.asarray, (queries, targets))
    fitted = fit(descent, (jnp.asarray(x[:1]), jnp.asarray(y[:1])), *arrays, jax.random.key(0))
    error = script.relative_error(descent, fitted, queries, targets)
    squares = (queries @ descend(*map(np.asarray, fitted), STEPS) - targets) ** 2
    np.testing.assert_allclose(error, squares.sum() / (targets**2).sum(), rtol=1e-6, atol=1e-12)
    assert (error < 1e-3) == near


def test_shares_are_compared_with_the_prediction_and_with_a_projection():
    share = np.array([[[0.3, 0.9], [0.25, 0.95]]])[:, None]  # one model, one run
    names = {"model": ["transformer"], "kind": ["patch", "projection"], "queries": [1, 12]}
    result = xr.Dataset({"share": (("model", "run", "kind", "queries"), share), "d": 4}, names)
    for queries, excess, difference in ((1, 0.05, 0.05), (12, -0.1, -0.05)):
        cell = dict(model="transformer", queries=queries)
        np.testing.assert_allclose(script.excess_share(result, **cell), [excess])
        np.testing.assert_allclose(script.over_projection(result, **cell), [difference])
