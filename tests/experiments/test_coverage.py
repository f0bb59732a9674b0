"""What the rules of `coverage` choose from a pool whose answers can be worked out by hand, and the
gradients of its proxies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.matching.coverage import compute, proxies
from experiments.matching.coverage.config import CLASSES, KINDS, Config
from lsa_lab.tasks.pools import Pool

TINY = Config(d=2, m=8, sizes=(4,), epochs=2, batch=4, saves=2, queries=2, random_draws=6, runs=2)
BALANCED = ([0, 1, 2, 3], [4, 5, 6, 7], [0, 2, 4, 6])  # of each kind of features
CLUSTERS = np.array([0, 1, 0, 0, 0, 1, 0, 0])  # two of the eight in the minority


def test_features_are_matched_where_they_cancel_and_strata_have_the_pools_shares():
    features = np.zeros((1, 3, 8, 1))
    for kind, balanced in enumerate(BALANCED):
        others = np.setdiff1d(np.arange(8), balanced)
        features[0, kind, others, 0] = [1, 10, -100, 89]
    random = np.stack([np.roll(np.arange(8), i) for i in range(6)])
    pool = Pool(x=np.zeros((1, 8, 2)), y=np.zeros((1, 8)), cluster=CLUSTERS[None])
    arrays = jax.tree.map(jnp.asarray, (pool, features, random[None]))
    keys = jax.random.split(jax.random.key(0), 1)
    chosen = np.asarray(compute.choose(TINY, 4, *arrays, keys)[0])
    assert chosen.shape == (3 + 6 + 6, 4)
    for row, balanced in enumerate(BALANCED):
        assert sorted(chosen[row]) == balanced
    np.testing.assert_array_equal(chosen[3:9], random[:, :4])
    np.testing.assert_array_equal(CLUSTERS[chosen[9:]].sum(1), np.ones(6))  # of 2 in the pool


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [False, True])
def test_gradients_are_those_of_the_loss(kind, intercept):
    pool = compute.sample(TINY, jax.random.key(0))[0]
    place = (intercept * len(KINDS) + list(KINDS).index(kind)) * TINY.runs
    x, targets, classes = (leaf[place] for leaf in proxies.labelled_examples(TINY, pool))
    weights = np.random.default_rng(1).normal(size=(3, TINY.d + 1))

    def loss(weights, x, target):
        score = x @ weights
        logistic = -target * jax.nn.log_sigmoid(score) - (1 - target) * jax.nn.log_sigmoid(-score)
        return logistic if kind == CLASSES else (score - target) ** 2 / 2

    by_weights = jax.vmap(jax.grad(loss), (0, None, None))
    by_autodiff = jax.jit(jax.vmap(by_weights, (None, 0, 0)))(weights, x, targets)
    ours = jax.jit(proxies.gradients)(weights, x, targets, classes)
    np.testing.assert_allclose(ours, np.reshape(by_autodiff, (len(x), -1)), atol=1e-12)
    np.testing.assert_array_equal(x[:, -1], np.full(len(x), float(intercept)))
