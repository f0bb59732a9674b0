"""The distribution of pools: shares, copies, tails, noise, labels, and queries."""

import jax
import numpy as np
import pytest
import scipy.stats

from draws import draw_covariance, jit_numpy, mean_is_near
from lsa_lab import prompts
from lsa_lab.tasks import pools
from lsa_lab.tasks.pools import Pool, PoolTask

POOLS = 200
KEY = jax.random.key(0)
KEYS, ROWS = jax.random.split(KEY, POOLS), np.arange(POOLS)[:, None]


@jit_numpy
def draw(task, traced=None):
    """Draw POOLS pools, some fields of the task being traced."""
    task = task if traced is None else task.replace(**traced)
    return jax.vmap(lambda key: pools.sample(key, task))(KEYS)


def take(table, places):  # [B, K, ...], [B, m] -> [B, m, ...]
    return table[ROWS, places]


def test_clusters_have_exactly_their_shares_and_lie_apart():
    rng = np.random.default_rng(0)
    covariances = np.stack([draw_covariance(rng, 2, 0.5, 4) for _ in range(2)])
    options = dict(separation=3.0, covariances=covariances, num_weights="cluster")
    pool = draw(PoolTask(20, 2, (0.9, 0.1), **options))
    assert (pool.cluster.sum(1) == 2).all()
    assert len(np.unique(pool.cluster.argmax(1))) > 10  # in random order
    np.testing.assert_array_equal(pool.weights, pool.cluster)
    np.testing.assert_allclose(np.linalg.norm(pool.population.centres, axis=-1), 3)
    deviations = pool.x - take(pool.population.centres, pool.cluster)
    outer = np.einsum("bmi,bmj->bmij", deviations, deviations)
    for c in range(2):
        assert mean_is_near(outer[pool.cluster == c], covariances[c])
    assert not mean_is_near(outer[pool.cluster == 0], covariances[1])


@pytest.mark.parametrize(
    ("shares", "m", "counts"),
    [((0.9, 0.1), 256, [230, 26]), ((1 / 3,) * 3, 10, [4, 3, 3]), ((0.5, 0.5), 1, [1, 0])],
)
def test_shares_round_to_whole_numbers(shares, m, counts):
    assert pools.counts(shares, m).tolist() == counts


FIELDS = dict(noise_std=0.5, flips=0.3, closeness=0.0)  # of COPIES, by default
COPIES = PoolTask(40, 2, (0.5, 0.5), separation=1.0, num_weights=2, copies=0.25)


@pytest.mark.parametrize("closeness", [1.0, 0.8])
def test_copies_are_as_close_as_they_should_be(closeness):
    pool = draw(COPIES, FIELDS | dict(closeness=closeness))
    is_copy = pool.source != np.arange(40)
    assert (is_copy.sum(1) == 10).all()
    assert not take(is_copy, pool.source)[is_copy].any()
    for same in (pool.cluster, pool.weights):
        np.testing.assert_array_equal(take(same, pool.source), same)
    deviations = pool.x - take(pool.population.centres, pool.cluster)
    assert mean_is_near((deviations * take(deviations, pool.source))[is_copy], closeness)
    assert mean_is_near((deviations**2)[is_copy], 1.0)
    if closeness == 1:
        for same in (pool.x, pool.y):
            np.testing.assert_array_equal(take(same, pool.source), same)


def test_labels_are_linear_in_the_weights_of_their_task():
    pool, flipped, noisy = (
        draw(COPIES, FIELDS | change)
        for change in ({"flips": 0.0}, {"noise_std": 0.0}, {"flips": 1.0})
    )
    weights = take(pool.population.weights, pool.weights)
    np.testing.assert_allclose(pool.clean, (weights * pool.x).sum(-1), rtol=1e-10, atol=1e-12)
    originals = pool.source == np.arange(40)
    assert mean_is_near(((pool.y - pool.clean) ** 2)[originals], 0.25)
    assert mean_is_near(pool.weights[originals].astype(float), 0.5)
    assert mean_is_near((flipped.y == -flipped.clean)[originals].astype(float), 0.3)
    np.testing.assert_array_equal(np.abs(flipped.y), np.abs(flipped.clean))
    # A flip changes the sign of the noise, too.
    assert mean_is_near(((noisy.y + noisy.clean) ** 2)[originals], 0.25)
    assert not mean_is_near(((noisy.y - noisy.clean) ** 2)[originals], 0.25)  # Control


def test_labels_may_be_signs_and_tails_heavy_with_unit_variances():
    tail = 6.0
    pool = draw(PoolTask(30, 2, labels="sign", noise_std=0.5, flips=0.1, tail=tail))
    assert set(np.unique(pool.y)) == {-1.0, 1.0}
    scores = (pool.population.weights * pool.x).sum(-1)
    np.testing.assert_array_equal(pool.clean, np.where(scores < 0, -1, 1))
    sure = np.abs(scores) > 3
    assert mean_is_near((pool.y != pool.clean)[sure].astype(float), 0.1)
    x = pool.x[..., 0].ravel()
    # Of covariance I, a Student t is √((ν-2)/ν) times the one in the tables.
    expected = 2 * scipy.stats.t.sf(3 * np.sqrt(tail / (tail - 2)), tail)
    assert mean_is_near((np.abs(x) > 3).astype(float), expected)
    assert not mean_is_near((np.abs(x) > 3).astype(float), 2 * scipy.stats.norm.sf(3))  # Control
    assert mean_is_near(x**2, 1.0)
    assert not mean_is_near(x**2, tail / (tail - 2))  # Control: of the tables


def test_a_singular_covariance_keeps_a_cluster_in_its_subspace():
    flat = np.array([[[1.0, 2.0], [2.0, 4.0]]])
    x = jit_numpy(lambda key: pools.sample(key, PoolTask(20, 2, covariances=flat)).x)(KEY)
    np.testing.assert_allclose(x[:, 1], 2 * x[:, 0], atol=1e-12)
    assert np.ptp(x[:, 0]) > 1


def test_labels_may_be_clusters():
    pool = draw(PoolTask(10, 2, (0.5, 0.3, 0.2), labels="cluster"))
    np.testing.assert_array_equal(pool.y, pool.cluster - 1.0)


def test_queries_share_the_population_and_have_targets_without_noise():
    task = PoolTask(20, 2, shares=(0.9, 0.1), separation=4.0, noise_std=1.0, flips=0.2, copies=0.5)

    @jit_numpy
    def draw_queries(key):
        pool = pools.sample(key, task)
        return pool.population, pools.queries(
            jax.random.fold_in(key, 1), task, pool.population, 500
        )

    population, queries = draw_queries(KEY)
    np.testing.assert_array_equal(queries.cluster, np.repeat([0, 1], 500))
    targets = queries.x @ population.weights[0]
    np.testing.assert_allclose(queries.y, targets, rtol=1e-10, atol=1e-12)
    for rows, centre in zip(np.split(queries.x, 2), population.centres, strict=True):
        assert mean_is_near(rows, centre)
    assert len(np.unique(queries.x[:, 0])) == 1000


def test_a_pool_becomes_tokens_and_prompts():
    pool = Pool(np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(pools.tokens(pool)[1], [2, 3, 2])
    prompt = pools.prompt(pool, np.array([2, 0]), np.ones(2), np.ones(()))
    np.testing.assert_array_equal(prompts.tokens(prompt), [[4, 5, 3], [0, 1, 1], [1, 1, 0]])
    taken = pools.take(pool, [2, 0])
    np.testing.assert_array_equal(taken.y, [3, 1])
    assert taken.cluster is None


def test_the_dtype_follows_the_task():
    task = PoolTask(4, 2, noise_std=1.0, dtype=np.float32, tail=3.0)
    pool = jax.eval_shape(lambda: pools.sample(KEY, task))
    assert pool.x.dtype == pool.y.dtype == pool.population.weights.dtype == np.float32
