"""`clipping_search`: the shifted tasks are of the size that is said, and searches get their own."""

from functools import partial

import jax
import numpy as np
import pytest

from experiments.clipping.clipped_models import spec_of
from experiments.clipping.clipping_search import compute
from experiments.clipping.clipping_search.config import TIERS
from experiments.models.model import Model, cut, init
from lsa_lab.analyses import clipping

CONFIG = TIERS["smoke"]  # d = 2, n = 4, short 2, sparsity 1, noise 0.5 and 1
SPEC, SIZE = spec_of(CONFIG), 4000
HALVES = slice(8), slice(8, None)  # to search with, and to test on

# E x², E |w·x_query|² and the noise that least squares of all pairs leaves.
EXPECTED = {
    "as trained": (1, 2, 0.5),
    "no noise": (1, 2, 0),
    "more noise": (1, 2, 1),
    "fewer shots": (1, 2, None),
    "smaller inputs": (0.25, 0.5, 0.5),
    "larger inputs": (4, 8, 0.5),
    "sparse weights": (1, 2, 0.5),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_shifted_task_has_its_moments(name):
    tasks = compute.shifted_tasks(CONFIG)
    assert list(tasks) == list(EXPECTED)
    batch = compute.draw(jax.random.split(jax.random.key(0), 1), tasks[name], SIZE, CONFIG.n)
    x, y, target = (np.asarray(leaf[0], float) for leaf in (batch.x, batch.y, batch.y_query))
    size, answer, noise = EXPECTED[name]
    assert x.shape == (SIZE, 4, 2)
    np.testing.assert_allclose((x**2).mean(), size, rtol=0.08)
    np.testing.assert_allclose((target**2).mean(), answer, rtol=0.15)
    if noise is None:  # each of two demonstrations twice
        np.testing.assert_array_equal(x[:, :2], x[:, 2:])
        np.testing.assert_array_equal(y[:, :2], y[:, 2:])
        assert (x[:, 0] != x[:, 1]).all()
    else:
        left = y - (x @ (np.linalg.pinv(x) @ y[..., None]))[..., 0]
        np.testing.assert_allclose(2 * (left**2).mean(), noise**2, rtol=0.06, atol=1e-6)


def test_an_edit_is_chosen_by_validation_among_those_allowed():
    """Two runs, three layers, two modules, rates of which the first cuts nothing."""
    change = np.zeros((2, 3, 2, 3))
    change[0, 1, 0, 2], change[0, 2, 1, 1], change[0, 0, 0, 1] = -1, -2, -5
    change[1, 2, 1, 2] = 0.5
    chosen = compute.choose(change, np.array([[1, 2], [1, 2]]))
    assert np.array(chosen).tolist() == [
        [[1, 0, 2], [1, 0, 0]],
        [[2, 1, 1], [2, 1, 0]],
        [[0, 0, 1], [0, 0, 0]],
    ]


@pytest.fixture(scope="module")
def models():
    params = jax.jit(jax.vmap(partial(init, SPEC)))(jax.random.split(jax.random.key(1), 2))
    task = compute.shifted_tasks(CONFIG)["as trained"]
    return params, compute.draw(jax.random.split(jax.random.key(2), 2), task, 16, CONFIG.n)


def test_algorithm_1_is_that_of_the_library(models):
    params, prompts = models
    layers = compute.algorithm_layers(params, CONFIG.top_k)
    values = compute.search_task(SPEC, params, layers, prompts, CONFIG)
    risk = jax.jit(lambda params, batch: Model(SPEC, params).cut_errors(batch))
    for run in range(2):
        own, batch = jax.tree.map(lambda leaf, run=run: leaf[run], models)
        halves = (jax.tree.map(lambda leaf, at=at: leaf[at], batch) for at in HALVES)
        validation, test = halves
        for place, module in enumerate(compute.MODULES):
            grid = dict(modules=module, rates=CONFIG.rates, top_k=CONFIG.top_k)
            search = clipping.search(risk, own, validation, test, **grid)
            gain = values["test_gain"][place][run] * search.test_risk
            np.testing.assert_allclose(gain, search.test_gain, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(values["risk"][run], risk(own, test).mean(), rtol=1e-5)


def test_the_rival_scales_answers_by_the_best_factor_on_validation(models):
    params, prompts = models
    values = compute.search_task(SPEC, params, np.zeros((2, 2), int), prompts, CONFIG)
    batch = jax.tree.map(lambda leaf: leaf[1], prompts)
    own = jax.tree.map(lambda leaf: leaf[1], params)
    answers = np.asarray(cut(jax.jit(Model(SPEC, own).predict)(batch), batch), float)
    target = np.asarray(batch.y_query, float)
    factors = np.linspace(-10, 10, 4001)
    risks = [np.mean((factor * answers[:8] - target[:8]) ** 2) for factor in factors]
    best, at = factors[np.argmin(risks)], slice(8, None)
    assert abs(best) < 10
    before, after = (np.mean((factor * answers[at] - target[at]) ** 2) for factor in (1, best))
    np.testing.assert_allclose(values["scaled_gain"][1], 1 - after / before, atol=5e-3)
