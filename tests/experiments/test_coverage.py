"""What the rules of `coverage` choose from a pool whose answers can be worked out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.matching.coverage import rules
from experiments.matching.coverage.config import Config
from lsa_lab.tasks.pools import Pool

TINY = Config(d=2, m=8, sizes=(4,), epochs=2, batch=4, saves=2, queries=2, random_draws=6, runs=2)
BALANCED = ([0, 1, 2, 3], [4, 5, 6, 7], [0, 2, 4, 6], [1, 3, 5, 7])  # of each kind of features
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
    features = np.zeros((1, 4, 8, 1))
    for kind, balanced in enumerate(BALANCED):
        others = np.setdiff1d(np.arange(8), balanced)
        features[0, kind, others, 0] = [1, 10, -100, 89]
    arrays = Pool(x=pool[None, :, :2], y=pool[None, :, 2], cluster=CLUSTERS[None])
    random = random_subsets()[None]
    arrays, features, random = jax.tree.map(jnp.asarray, (arrays, features, random))
    keys = jax.random.split(jax.random.key(0), 1)
    indices = rules.choose(TINY, 4, arrays, features, random, keys)
    return np.asarray(indices[0])


def random_subsets():
    return np.stack([np.roll(np.arange(8), i) for i in range(6)])


def test_each_kind_of_features_is_matched_where_its_own_gradients_cancel(chosen):
    assert chosen.shape == (7 + 6 + 6, 4)
    for row, balanced in zip((0, 1, 2, 3, 6), (*BALANCED, BALANCED[0]), strict=True):
        assert sorted(chosen[row]) == balanced
    np.testing.assert_array_equal(chosen[7:13], random_subsets()[:, :4])


def test_medoids_take_one_of_every_pair_and_determinants_grow_most(chosen, pool):
    assert sorted(chosen[4] // 2) == [0, 1, 2, 3]
    greedy = []
    for _ in range(4):
        rest = [i for i in range(8) if i not in greedy]
        parts = [pool[[*greedy, i]] for i in rest]
        volumes = [np.linalg.det(np.eye(3) + part.T @ part) for part in parts]
        greedy.append(rest[int(np.argmax(volumes))])
    np.testing.assert_array_equal(chosen[5], greedy)


def test_random_subsets_within_the_clusters_have_the_pools_shares(chosen):
    np.testing.assert_array_equal(CLUSTERS[chosen[13:]].sum(1), np.ones(6))  # of 2 in the pool
