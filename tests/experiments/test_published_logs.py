"""`clipping_search`: Algorithm 1 is the library's, and its rival has the best factor."""

from functools import partial

import jax
import numpy as np
import pytest

from experiments.clipping.clipped_models import spec_of
from experiments.clipping.clipping_search import compute
from experiments.clipping.clipping_search.config import TIERS
from experiments.models.model import Model, clip_predictions, init
from lsa_lab.analyses import clipping

CONFIG = TIERS["smoke"]  # d = 2, n = 4, short 2, sparsity 1, noise 0.5 and 1
SPEC = spec_of(CONFIG)
HALVES = slice(8), slice(8, None)  # to search with, and to test on


@pytest.fixture(scope="module")
def models():
    params = jax.jit(jax.vmap(partial(init, SPEC)))(jax.random.split(jax.random.key(1), 2))
    task = compute.tasks_of(CONFIG)["as trained"]
    return params, compute.draw(jax.random.split(jax.random.key(2), 2), task, 16, CONFIG.n)


def test_algorithm_1_is_that_of_the_library(models):
    params, prompts = models
    layers = compute.algorithm_layers(params, CONFIG.top_k)
    values = compute.search_task(SPEC, params, layers, prompts, CONFIG)
    risk = jax.jit(lambda params, batch: Model(SPEC, params).clipped_errors(batch))
    own, batch = jax.tree.map(lambda leaf: np.asarray(leaf)[1], models)
    validation, test = (jax.tree.map(lambda leaf, at=at: leaf[at], batch) for at in HALVES)
    for place, module in enumerate(compute.MODULES):
        grid = dict(modules=module, rates=CONFIG.rates, top_k=CONFIG.top_k)
        search = clipping.search(risk, own, validation, test, **grid)
        gain = values["test_gain"][place][1] * search.test_risk
        np.testing.assert_allclose(gain, search.test_gain, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(values["risk"][1], np.mean(risk(own, test)), rtol=1e-5)


def test_the_rival_scales_answers_by_the_best_factor_on_validation(models):
    params, prompts = models
    values = compute.search_task(SPEC, params, np.zeros((2, 2), int), prompts, CONFIG)
    batch = jax.tree.map(lambda leaf: leaf[1], prompts)
    own = jax.tree.map(lambda leaf: leaf[1], params)
    answers = np.asarray(clip_predictions(jax.jit(Model(SPEC, own).predict)(batch), batch), float)
    target = np.asarray(batch.y_query, float)
    factors = np.linspace(-10, 10, 4001)
    risks = [np.mean((factor * answers[:8] - target[:8]) ** 2) for factor in factors]
    best, at = factors[np.argmin(risks)], slice(8, None)
    assert abs(best) < 10
    before, after = (np.mean((factor * answers[at] - target[at]) ** 2) for factor in (1, best))
    np.testing.assert_allclose(values["scaled_gain"][1], 1 - after / before, atol=5e-3)
