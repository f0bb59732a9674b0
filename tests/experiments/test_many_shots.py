"""`many_shots`: its descent, and predictions from moments."""

import jax
import numpy as np
import pytest

from experiments.matching.many_shots import compute, long_prompts
from experiments.matching.many_shots.config import TIERS
from experiments.models.model import Model
from experiments.models.named import named
from lsa_lab import prompts
from lsa_lab.models import linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.tasks import linear

TINY = TIERS["smoke"]


def test_descent_takes_the_best_single_step_in_every_layer_of_every_run():
    params = compute.descent(TINY)
    assert params.w_kq.shape[:2] == (TINY.runs, TINY.depth) == (2, 2)
    rng = np.random.default_rng(0)
    x, y, query, w = rng.normal(size=(4, 2)), rng.normal(size=4), rng.normal(size=2), np.zeros(2)
    for _ in range(2):
        w = w + x.T @ (y - x @ w) / 4 / (1 + 3.25 / 4)
    rows = np.column_stack([np.concatenate([x, query[None]]), np.append(y, 0.0)])
    last = jax.tree.map(lambda leaf: leaf[1], params)
    np.testing.assert_allclose(predict(linear_attention.forward(last, rows)), w @ query)


@pytest.mark.parametrize("own_units", [False, True])
def test_predictions_from_moments_are_those_of_the_model(own_units):
    ((_, spec),) = named("smoke", ["linear attention"])
    assert spec.architecture.own_units

    @jax.jit
    def both():
        params = linear_attention.init(jax.random.key(0), spec.architecture.depth, 1, 2, scale=0.5)
        task = linear.LinearTask(6, 2, noise_std=0.5)
        batch = linear.sample_batch(jax.random.key(1), task, 5)
        batch = batch.replace(x=3 * batch.x, x_query=3 * batch.x_query)
        moments = prompts.second_moments(batch)
        ours = long_prompts.predictions(params, own_units, moments, batch.x_query.T, 1.0)
        return ours, Model(spec, params).predict(batch)

    np.testing.assert_equal(np.allclose(*both(), rtol=1e-10), own_units)
