"""`matching_transfer`: the errors of its targets, beside loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.matching.matching_transfer import targets
from experiments.matching.matching_transfer.config import TIERS
from experiments.models.model import Model
from experiments.models.regression import dense
from lsa_lab.models import constructions

TINY = TIERS["smoke"]
STEP = 1 / (1 + (1 + 2 + 0.25) / 4)
SPEC = dense("linear", 2, 4, 2, training=dict(steps=1, batch=1, learning_rate=0.1, seeds=2))


@pytest.fixture(scope="module")
def taught():
    """Two runs of one pool, three subsets of four demonstrations, two queries."""
    rng = np.random.default_rng(0)
    shapes = (2, 1, 3, 4, 2), (2, 1, 3, 4), (2, 1, 2, 2), (2, 1, 2)
    return [rng.normal(size=shape) for shape in shapes]


def mean_errors(taught, learn):  # [R, P, S]
    x, y, queries, answers = taught
    errors = np.empty(x.shape[:3])
    for place in np.ndindex(errors.shape):
        missed = queries[place[:2]] @ learn(x[place], y[place]) - answers[place[:2]]
        errors[place] = (missed**2).mean()
    return errors


def descend(steps):
    def learn(x, y):
        w = np.zeros(2)
        for size in steps:
            w = w + size * x.T @ (y - x @ w) / 4
        return w

    return learn


def test_constructed_targets_err_as_one_step_and_as_descent_do(taught):
    x, y, *queries = map(jnp.asarray, taught)
    ours = targets.constructed_errors(TINY, x, y, queries)
    best = 1 / (1 + 1 / 4 + (2 + 0.25) / 4)  # Γ⁻¹ of Λ = I
    np.testing.assert_allclose(ours[0], mean_errors(taught, descend([best])), rtol=1e-10)
    np.testing.assert_allclose(ours[1], mean_errors(taught, descend([STEP, STEP])), rtol=1e-10)
    assert ours.shape[0] == 2


def test_trained_targets_err_with_the_weights_of_their_own_run(taught):
    sizes = np.array([[0.3, 0.7], [0.9, 0.1]])  # steps of each run
    params = jax.vmap(lambda steps: constructions.gradient_descent(steps, 2))(jnp.asarray(sizes))
    x, y, *queries = map(jnp.asarray, taught)
    ours = targets.errors(Model(SPEC, params), x, y, queries)
    both = [mean_errors(taught, descend(steps))[run] for run, steps in enumerate(sizes)]
    np.testing.assert_allclose(ours, both, rtol=1e-10)
