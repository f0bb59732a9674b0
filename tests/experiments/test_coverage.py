"""What the rules of `coverage` choose from a pool whose answers can be worked out by hand, what its
proxies are matched by, and what random subsets keep."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.matching.coverage import compute, proxies, several
from experiments.matching.coverage.config import CLASSES, KINDS, Config, Several, class_shares
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
    pool, _ = compute.sample(TINY, jax.random.key(0))
    return pool, proxies.labelled_examples(TINY, pool)


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
    ours = proxies.gradients(weights, x, targets, classes)
    np.testing.assert_allclose(ours, by_autodiff.reshape(len(x), -1), atol=1e-12)
    np.testing.assert_array_equal(x[:, -1], np.full(len(x), float(intercept)))


def test_an_intercept_before_training_has_the_classes_shares_as_its_gradient(examples):
    pool, (x, targets, classes) = examples
    start = np.zeros((1, TINY.d + 1))
    gradients = proxies.gradients(start, x[-1], targets[-1], classes[-1])
    assert bool(classes[-1])
    np.testing.assert_allclose(gradients[:, -1], 0.5 - np.asarray(pool.cluster[-1]), atol=1e-15)


def test_the_expected_divergence_is_the_mean_over_all_subsets():
    minority = np.arange(TINY.m) < TINY.m * TINY.minority
    subsets = itertools.combinations(range(TINY.m), 4)
    share = np.array([minority[list(indices)].mean() for indices in subsets])
    every = compute.divergence(TINY, share)
    np.testing.assert_allclose(compute.expected_divergence(TINY, 4), every.mean(), rtol=1e-12)


def test_gradients_of_several_classes_are_those_of_the_loss():
    keys = jax.random.split(jax.random.key(2), 2)
    weights, x = jax.random.normal(keys[0], (4, 3, 5)), jax.random.normal(keys[1], (6, 5))
    labels = jnp.array([0, 1, 2, 0, 1, 2])

    def loss(weights, x, label):
        return -jax.nn.log_softmax(weights @ x)[label]

    by_weights = jax.vmap(jax.grad(loss), (0, None, None))
    by_autodiff = jax.vmap(by_weights, (None, 0, 0))(weights, x, labels)
    ours = several.gradients(weights, x, labels)
    np.testing.assert_allclose(ours, by_autodiff.reshape(6, -1), atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_shares_decline_and_chance_misses_them_by_k_less_one_over_2n(classes):
    config = Several(n=400)
    share = np.array(class_shares(config, classes))
    np.testing.assert_allclose(share.sum(), 1, rtol=1e-12)
    assert (np.diff(share) < 0).all()
    counts = np.random.default_rng(0).multinomial(config.n, share, 20_000)
    mean = several.divergence(counts, share).mean()
    np.testing.assert_allclose(mean, (classes - 1) / (2 * config.n), rtol=0.05)


def test_a_test_set_has_the_shares_of_its_population_but_for_chance():
    config, keys = Several(tests=500), jax.random.split(jax.random.key(5), 400)
    shares = np.array(class_shares(config, 3))
    ours = several.sample_shares(config, tuple(shares), keys)
    np.testing.assert_allclose(ours.mean(0), shares, atol=4 * (0.25 / 500 / 400) ** 0.5)
    np.testing.assert_allclose(ours.var(0), shares * (1 - shares) / 500, rtol=0.3)
