"""What the proxies of `coverage` are matched by, what random subsets keep; a prefix's length."""

import itertools

import jax
import numpy as np
import pytest

from experiments.matching.coverage import compute, learners
from experiments.matching.coverage.config import CLASSES, KINDS, Config
from experiments.matching.gradient_matching.config import Config as Matching

TINY = Config(d=2, m=8, sizes=(4,), epochs=2, batch=4, saves=2, queries=2, random_draws=2, runs=2)


@pytest.fixture(scope="module")
def examples():
    pool, _ = compute.sample(TINY, jax.random.key(0))
    return pool, learners.with_targets(TINY, pool)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [False, True])
def test_gradients_are_those_of_the_loss(examples, kind, intercept):
    place = (intercept * len(KINDS) + list(KINDS).index(kind)) * TINY.runs
    x, targets, classes = (leaf[place] for leaf in examples[1])
    weights = jax.random.normal(jax.random.key(1), (3, TINY.d + 1))

    def loss(weights, x, target):
        score = x @ weights
        logistic = -target * jax.nn.log_sigmoid(score) - (1 - target) * jax.nn.log_sigmoid(-score)
        return logistic if kind == CLASSES else (score - target) ** 2 / 2

    by_weights = jax.vmap(jax.grad(loss), (0, None, None))
    by_autodiff = jax.vmap(by_weights, (None, 0, 0))(weights, x, targets)
    ours = learners.gradients(weights, x, targets, classes)
    np.testing.assert_allclose(ours, by_autodiff.reshape(len(x), -1), atol=1e-12)
    np.testing.assert_array_equal(x[:, -1], np.full(len(x), float(intercept)))


def test_an_intercept_before_training_has_the_classes_shares_as_its_gradient(examples):
    pool, (x, targets, classes) = examples
    start = np.zeros((1, TINY.d + 1))
    gradients = learners.gradients(start, x[-1], targets[-1], classes[-1])
    assert bool(classes[-1])
    np.testing.assert_allclose(gradients[:, -1], 0.5 - np.asarray(pool.cluster[-1]), atol=1e-15)


def test_the_expected_divergence_is_the_mean_over_all_subsets():
    minority = np.arange(TINY.m) < TINY.m * TINY.minority
    subsets = itertools.combinations(range(TINY.m), 4)
    share = np.array([minority[list(indices)].mean() for indices in subsets])
    every = compute.divergence(share, TINY.minority)
    np.testing.assert_allclose(compute.expected_divergence(TINY, 4), every.mean(), rtol=1e-12)


def test_a_prefix_without_the_length_that_is_matched_is_refused_at_once():
    with pytest.raises(ValueError, match="4 is among them"):
        Matching(prefix_lengths=(1, 2))
