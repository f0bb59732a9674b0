"""Twins, stacks and gaps of `matching_is_exact`, beside descent and solutions by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.matching.matching_is_exact import gaps, twins
from experiments.matching.matching_is_exact.config import TIERS
from lsa_lab.models import constructions, linear_attention
from lsa_lab.tasks.pools import Pool

TINY = TIERS["smoke"]  # d = 2, a pool of 12, sets of 6, steps of 0.2, noise of 0.5
PATH = np.array([[0.2, 0.3], [0.4, -0.2], [0.3, 0.5]])


@pytest.fixture(scope="module")
def rows():
    """A pool of 12 and 6 others, queries last: x and y."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, 3)), rng.normal(size=(6, 3)), rng.normal(size=(4, 2))


def descend(rows, steps=2):
    x, y, w = rows[:, :2], rows[:, 2], np.zeros(2)
    for _ in range(steps):
        w = w + 0.2 * x.T @ (y - x @ w) / len(x)
    return w


def mean_gradient(rows, w):
    return sum((row[:2] @ w - row[2]) * row[:2] for row in rows) / len(rows)


@pytest.fixture(scope="module")
def sets(rows):  # [C+1, 2, n, e]
    pool, others, _ = map(jnp.asarray, rows)
    return np.asarray(twins.twins(TINY, pool, others, jnp.asarray(PATH), jax.random.key(0)))


def test_twins_have_the_pools_mean_gradients_at_the_first_checkpoints(sets, rows):
    assert sets.shape == (4, 2, 6, 3)
    for count in range(1, 4):
        for square in range(2):
            for w in PATH[:count]:
                ours, pools = (mean_gradient(part, w) for part in (sets[count, square], rows[0]))
                np.testing.assert_allclose(ours, pools, atol=1e-12)
    later = mean_gradient(sets[2, 0], PATH[2]) - mean_gradient(rows[0], PATH[2])
    assert np.linalg.norm(later) > 1e-2
    moment = rows[1].T @ rows[1] / 6
    for square in range(2):
        np.testing.assert_allclose(sets[0, square].T @ sets[0, square] / 6, moment, atol=1e-12)


def test_twins_have_the_mean_square_of_the_pools_labels_or_others_noise(sets, rows):
    x, y = rows[1][:, :2], rows[1][:, 2]
    left = y - x @ np.linalg.lstsq(x, y)[0]
    for count in range(1, 4):
        free, matched = sets[count]
        rest = free[:, 2] - free[:, :2] @ np.linalg.lstsq(free[:, :2], free[:, 2])[0]
        np.testing.assert_allclose((rest**2).mean(), (left**2).mean(), rtol=1e-9)
        np.testing.assert_allclose((matched[:, 2] ** 2).mean(), (rows[0][:, 2] ** 2).mean())


def test_gaps_and_errors_are_those_of_descent(rows):
    pool, others, queries = rows
    stack = constructions.gradient_descent(jnp.full(2, 0.2), 2)
    params = jax.tree.map(lambda leaf: leaf[None], stack)
    arrays = (jnp.asarray(part[None]) for part in (others[None], pool, queries))
    ours = gaps.gaps(linear_attention.forward, params, *arrays)
    few, whole = queries @ descend(others), queries @ descend(pool)
    expected = np.sqrt(((few - whole) ** 2).mean() / (whole**2).mean())
    np.testing.assert_allclose(ours, [[expected]], rtol=1e-10)
    clean = np.array([1.0, -1, 0.5, 2])
    arrays = (jnp.asarray(part[None]) for part in (others, queries, clean))
    error = gaps.errors(linear_attention.forward, params, *arrays)
    np.testing.assert_allclose(error, [((few - clean) ** 2).mean()], rtol=1e-10)


def test_subsets_are_matched_to_the_first_checkpoints_alone():
    x = np.random.default_rng(2).normal(size=(12, 2))
    y = np.where(np.arange(12) < 6, 0.0, 1.0)
    y[6:] *= np.array([0.1, 0.2, -1, 0.3, 0.25, 0.15])
    x[6:] = [1.0, 0]  # at w = 0 the gradients -y x of the first six are the pool's mean, 0
    path = np.stack([np.zeros(2), *PATH[1:]])
    arrays = jnp.asarray(x), jnp.asarray(y)
    chosen = np.asarray(twins.subsets(TINY, Pool(*arrays), jnp.asarray(path), jax.random.key(0)))
    assert chosen.shape == (3 + TINY.random_draws, 6)
    assert sorted(chosen[0]) == [0, 1, 2, 3, 4, 5]
    assert sorted(chosen[1]) != [0, 1, 2, 3, 4, 5]
    rows = np.column_stack([x, y])

    def gap(indices, count):
        apart = [mean_gradient(rows[indices], w) - mean_gradient(rows, w) for w in path[:count]]
        return np.linalg.norm(apart)

    for count in (2, 3):
        assert gap(chosen[count - 1], count) <= min(gap(part, count) for part in chosen[3:])
