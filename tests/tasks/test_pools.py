"""The distribution of pools: shares, copies, tails, noise, labels, and queries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from draws import mean_is_near
from lsa_lab import prompts
from lsa_lab.tasks import pools
from lsa_lab.tasks.pools import Pool, PoolTask

POOLS = 200


def draw(task, **traced):
    """Draw POOLS pools with some fields traced; one compilation a task."""
    keys = jax.random.split(jax.random.key(0), POOLS)
    return jax.device_get(_draw(task, {name: float(value) for name, value in traced.items()}, keys))


@jax.jit
def _draw(task, traced, keys):
    return jax.vmap(lambda key: pools.sample(key, task.replace(**traced)))(keys)


def test_clusters_have_exactly_their_shares_and_lie_apart():
    roots = np.random.default_rng(0).normal(size=(2, 2, 2))
    covariances = jnp.asarray(roots @ roots.swapaxes(1, 2) + np.eye(2))
    options = dict(separation=3.0, covariances=covariances, num_weights="cluster")
    task = PoolTask(20, 2, (0.9, 0.1), **options)
    pool = draw(task)
    assert (pool.cluster.sum(1) == 2).all()
    assert len(np.unique(pool.cluster.argmax(1))) > 10  # in random order
    np.testing.assert_array_equal(pool.weights, pool.cluster)
    np.testing.assert_allclose(np.linalg.norm(pool.population.centres, axis=-1), 3)
    deviations = pool.x - np.take_along_axis(pool.population.centres, pool.cluster[..., None], 1)
    outer = np.einsum("bmi,bmj->bmij", deviations, deviations)
    for c in range(2):
        assert mean_is_near(outer[pool.cluster == c], covariances[c])
    assert not mean_is_near(outer[pool.cluster == 0], covariances[1])


def test_shares_round_to_whole_numbers():
    np.testing.assert_array_equal(pools.counts((0.9, 0.1), 256), [230, 26])
    np.testing.assert_array_equal(pools.counts((1 / 3, 1 / 3, 1 / 3), 10), [4, 3, 3])
    np.testing.assert_array_equal(pools.counts((0.5, 0.5), 1), [1, 0])


COPIES = PoolTask(
    40, 2, (0.5, 0.5), separation=1.0, num_weights=2, noise_std=0.5, flips=0.3, copies=0.25
)
ROWS = np.arange(POOLS)[:, None]


@pytest.mark.parametrize("closeness", [1.0, 0.8])
def test_copies_are_as_close_as_they_should_be(closeness):
    pool = draw(COPIES, closeness=closeness)
    is_copy = pool.source != np.arange(40)
    assert (is_copy.sum(1) == 10).all()
    assert not is_copy[ROWS, pool.source].any()
    for same in (pool.cluster, pool.weights):
        np.testing.assert_array_equal(same[ROWS, pool.source], same)
    centres = np.take_along_axis(pool.population.centres, pool.cluster[..., None], 1)
    deviations = pool.x - centres
    assert mean_is_near((deviations * deviations[ROWS, pool.source])[is_copy], closeness)
    assert mean_is_near((deviations**2)[is_copy], 1.0)
    if closeness == 1:
        np.testing.assert_array_equal(pool.x[ROWS, pool.source], pool.x)
        np.testing.assert_array_equal(pool.y[ROWS, pool.source], pool.y)


def test_labels_are_linear_in_the_weights_of_their_task():
    pool = draw(COPIES, flips=0.0, closeness=0.0)
    weights = np.take_along_axis(pool.population.weights, pool.weights[..., None], 1)
    np.testing.assert_allclose(pool.clean, (weights * pool.x).sum(-1), rtol=1e-10, atol=1e-12)
    originals = pool.source == np.arange(40)
    assert mean_is_near(((pool.y - pool.clean) ** 2)[originals], 0.25)
    assert mean_is_near(pool.weights[originals].astype(float), 0.5)
    flipped = draw(COPIES, noise_std=0.0, closeness=0.0)
    assert mean_is_near((flipped.y == -flipped.clean)[originals].astype(float), 0.3)
    np.testing.assert_array_equal(np.abs(flipped.y), np.abs(flipped.clean))
    noisy = draw(COPIES, flips=1.0, closeness=0.0)  # a flip changes the sign of the noise, too
    assert mean_is_near(((noisy.y + noisy.clean) ** 2)[originals], 0.25)
    assert not mean_is_near(((noisy.y - noisy.clean) ** 2)[originals], 0.25)  # Control


def test_labels_may_be_signs_and_tails_heavy():
    tail = 5.0
    pool = draw(PoolTask(30, 2, labels="sign", noise_std=0.5, flips=0.1, tail=tail))
    assert set(np.unique(pool.y)) == {-1.0, 1.0}
    scores = (pool.population.weights * pool.x).sum(-1)
    np.testing.assert_array_equal(pool.clean, np.where(scores < 0, -1, 1))
    sure = np.abs(scores) > 3
    assert mean_is_near((pool.y != pool.clean)[sure].astype(float), 0.1)
    far = (np.abs(pool.x[..., 0]) > 3).ravel().astype(float)
    # Of covariance I, a Student t is √((ν-2)/ν) times the one in the tables.
    assert mean_is_near(far, 2 * scipy.stats.t.sf(3 * np.sqrt(tail / (tail - 2)), tail))
    assert not mean_is_near(far, 2 * scipy.stats.norm.sf(3))


def test_heavy_tails_have_unit_variances():
    tail, m = 6.0, 20_000
    rows = np.asarray(pools.sample(jax.random.key(3), PoolTask(m, 2, tail=tail)).x)
    spread = np.sqrt((3 * (tail - 2) / (tail - 4) - 1) / m)  # of a mean square
    np.testing.assert_allclose((rows**2).mean(0), 1, atol=5 * spread)
    assert (abs((rows**2).mean(0) * (tail - 1) / (tail - 2) - 1) > 5 * spread).all()  # Control


def test_a_singular_covariance_keeps_a_cluster_in_its_subspace():
    flat = np.array([[[1.0, 2.0], [2.0, 4.0]]])
    x = np.asarray(pools.sample(jax.random.key(0), PoolTask(20, 2, covariances=flat)).x)
    np.testing.assert_allclose(x[:, 1], 2 * x[:, 0], atol=1e-12)
    assert np.ptp(x[:, 0]) > 1


def test_labels_may_be_clusters():
    pool = draw(PoolTask(10, 2, (0.5, 0.3, 0.2), labels="cluster"))
    np.testing.assert_array_equal(pool.y, pool.cluster - 1.0)


def test_queries_share_the_population_and_have_targets_without_noise():
    task = PoolTask(20, 2, shares=(0.9, 0.1), separation=4.0, noise_std=1.0, flips=0.2, copies=0.5)

    @jax.jit
    def both(key):
        pool = pools.sample(key, task)
        return pool, pools.queries(jax.random.fold_in(key, 1), task, pool.population, 500)

    pool, queries = both(jax.random.key(0))
    np.testing.assert_array_equal(queries.cluster, np.repeat([0, 1], 500))
    np.testing.assert_allclose(
        queries.y, queries.x @ pool.population.weights[0], rtol=1e-10, atol=1e-12
    )
    for c in range(2):
        assert mean_is_near(
            np.asarray(queries.x[500 * c : 500 * (c + 1)]), pool.population.centres[c]
        )
    assert len(np.unique(queries.x[:, 0])) == 1000


def test_a_pool_becomes_tokens_and_prompts():
    pool = Pool(jnp.arange(6.0).reshape(3, 2), jnp.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(pools.tokens(pool)[1], [2, 3, 2])
    prompt = pools.prompt(pool, jnp.array([2, 0]), jnp.ones(2), jnp.ones(()))
    np.testing.assert_array_equal(prompts.tokens(prompt), [[4, 5, 3], [0, 1, 1], [1, 1, 0]])
    np.testing.assert_array_equal(pools.take(pool, jnp.array([1])).y, [2])
    assert pools.take(pool, jnp.array([1])).cluster is None
    np.testing.assert_array_equal(pools.take(jax.tree.map(np.asarray, pool), [2, 0]).y, [3, 1])


def test_task_fields_may_be_traced_and_the_dtype_follows_the_task():
    def one(noise_std, key):
        return pools.sample(key, PoolTask(4, 2, noise_std=noise_std, dtype=jnp.float32, tail=3.0))

    pool = jax.jit(jax.vmap(one, (0, None)))(jnp.array([0.0, 1.0]), jax.random.key(0))
    np.testing.assert_array_equal(pool.y[0], pool.clean[0])
    assert pool.x.dtype == pool.y.dtype == pool.population.weights.dtype == jnp.float32
