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


@pytest.fixture(scope="module")
def pool():
    corners = np.array([[5.0, 0, 1], [0, 6, -1], [-7, 0, 2], [0, -8, 3]])
    rows = np.repeat(corners, 2, axis=0)
    rows[1::2] *= 0.99  # pairs, the first the longer one
    return rows


@pytest.fixture(scope="module")
def chosen(pool):
    """The indices of one run."""
    features = np.zeros((1, 3, 8, 1))
    for kind, balanced in enumerate(BALANCED):
        others = np.setdiff1d(np.arange(8), balanced)
        features[0, kind, others, 0] = [1, 10, -100, 89]
    arrays = Pool(x=pool[None, :, :2], y=pool[None, :, 2], cluster=CLUSTERS[None])
    random = random_subsets()[None]
    arrays, features, random = jax.tree.map(jnp.asarray, (arrays, features, random))
    keys = jax.random.split(jax.random.key(0), 1)
    indices = compute.choose(TINY, 4, arrays, features, random, keys)
    return np.asarray(indices[0])


def random_subsets():
    return np.stack([np.roll(np.arange(8), i) for i in range(6)])


def test_each_kind_of_features_is_matched_where_its_own_gradients_cancel(chosen):
    assert chosen.shape == (3 + 6 + 6, 4)
    for row, balanced in enumerate(BALANCED):
        assert sorted(chosen[row]) == balanced
    np.testing.assert_array_equal(chosen[3:9], random_subsets()[:, :4])


def test_random_subsets_within_the_clusters_have_the_pools_shares(chosen):
    np.testing.assert_array_equal(CLUSTERS[chosen[9:]].sum(1), np.ones(6))  # of 2 in the pool


@pytest.fixture(scope="module")
def examples():
    @jax.jit
    def draw(key):
        return proxies.labelled_examples(TINY, compute.sample(TINY, key)[0])

    return jax.tree.map(np.asarray, draw(jax.random.key(0)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [False, True])
def test_gradients_are_those_of_the_loss(examples, kind, intercept):
    place = (intercept * len(KINDS) + list(KINDS).index(kind)) * TINY.runs
    x, targets, classes = (leaf[place] for leaf in examples)
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
