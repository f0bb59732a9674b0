"""Twins, stacks and gaps of `matching_is_exact`, beside descent and solutions by hand."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from experiments.matching.matching_is_exact import claims, compute, twins
from experiments.matching.matching_is_exact.config import MATCHING, TIERS
from lsa_lab.judging.claims import evidence
from lsa_lab.models import constructions, linear_attention
from lsa_lab.selection import gradient_matching
from lsa_lab.store import parts, results
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
    ours = compute.gaps(linear_attention.forward, params, *arrays)
    few, whole = queries @ descend(others), queries @ descend(pool)
    expected = np.sqrt(((few - whole) ** 2).mean() / (whole**2).mean())
    np.testing.assert_allclose(ours, [[expected]], rtol=1e-10)
    clean = np.array([1.0, -1, 0.5, 2])
    arrays = (jnp.asarray(part[None]) for part in (others, queries, clean))
    error = compute.errors(linear_attention.forward, params, *arrays)
    np.testing.assert_allclose(error, [((few - clean) ** 2).mean()], rtol=1e-10)


def test_a_shallow_stack_is_the_first_layers_and_then_nothing(rows):
    stacks = compute.descents(TINY)
    assert list(stacks) == ["descent, 1", "descent, 2"]
    pool, _, queries = map(jnp.asarray, rows)
    for depth in (1, 2):
        second = jax.tree.map(lambda leaf: leaf[1], stacks[f"descent, {depth}"])
        ours = compute.answers(linear_attention.forward, second, pool, queries)
        np.testing.assert_allclose(ours, rows[2] @ descend(rows[0], depth), rtol=1e-10)


def test_the_bayes_rule_errs_as_ridge_regression_does(rows):
    sets, queries = np.stack([rows[1], 2 * rows[1]]), np.stack([rows[2], -rows[2]])
    clean = np.random.default_rng(1).normal(size=(2, 4))
    expected = []
    for part, at, answer in zip(sets, queries, clean, strict=True):
        x, y = part[:, :2], part[:, 2]
        w = np.linalg.solve(x.T @ x + 0.25 * np.eye(2), x.T @ y)
        expected.append(((at @ w - answer) ** 2).mean())
    ours = compute.bayes_errors(TINY, *map(jnp.asarray, (sets, queries, clean)))
    np.testing.assert_allclose(ours, expected, rtol=1e-10)


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


def test_a_whitened_subset_matches_the_whitened_gradients_of_d_plus_one_checkpoints():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(12, 2)) * [1, 10], rng.normal(size=12)
    path = rng.normal(size=(4, 2))
    gradients = [
        [(row @ w - label) * row for w in path[:3]] for row, label in zip(x, y, strict=True)
    ]
    rows = jnp.asarray(np.reshape(gradients, (12, -1)))
    config = dataclasses.replace(TINY, most=4)
    pool = Pool(jnp.asarray(x), jnp.asarray(y))
    chosen = twins.rescaled_subsets(config, pool, jnp.asarray(path))[0]
    plain = gradient_matching.match(rows, 6).indices
    expected = gradient_matching.match(gradient_matching.whitened(rows, 6), 6).indices
    assert sorted(chosen.tolist()) == sorted(expected.tolist()) != sorted(plain.tolist())


def drawn_with_units(units):
    """A pool and a path whose gradients have a second entry of that size: x₂ grows as w₂ falls."""
    rng = np.random.default_rng(6)
    x, y, path = rng.normal(size=(12, 2)), rng.normal(size=12), rng.normal(size=(4, 2))
    return x * [1, units], y, path / [1, units]


def scaled_choice(units) -> list[int]:
    x, y, path = map(jnp.asarray, drawn_with_units(units))
    config = dataclasses.replace(TINY, most=4)
    return sorted(twins.rescaled_subsets(config, Pool(x, y), path)[1].tolist())


def plain_choice(units) -> list[int]:
    x, y, path = map(jnp.asarray, drawn_with_units(units))
    config = dataclasses.replace(TINY, most=4)
    return sorted(twins.subsets(config, Pool(x, y), path, jax.random.key(0))[TINY.d].tolist())


def test_a_scaled_subset_does_not_change_with_the_units_of_a_covariate():
    assert scaled_choice(1) == scaled_choice(16)
    assert plain_choice(1) != plain_choice(16)


def test_a_scaled_subset_is_among_the_nearest_of_all_in_units_of_each_entrys_spread():
    x, y, path = drawn_with_units(16)
    gradients = [
        [(row @ w - label) * row for w in path[:3]] for row, label in zip(x, y, strict=True)
    ]
    entries = np.reshape(gradients, (12, -1))
    subsets = list(itertools.combinations(range(12), 6))
    apart = entries[np.array(subsets)].mean(1) - entries.mean(0)[None]
    at = subsets.index(tuple(scaled_choice(16)))

    def nearer(units):  # subsets of 924
        sizes = np.linalg.norm(apart / units, axis=1)
        return int((sizes < sizes[at] - 1e-12).sum())

    assert nearer(np.sqrt(((entries - entries.mean(0)[None]) ** 2).mean(0))[None]) <= 2
    assert nearer(1.0) > 2  # in units that all entries share it is not


def test_whitened_subsets_are_compared_with_plain_scaled_and_random_ones_of_their_run():
    plain = np.zeros((2, TINY.most + 3))
    plain[:, TINY.d], plain[:, TINY.most :] = [2.0, 4.0], [[1.0, 8.0, 9.0], [1.0, 2.0, 3.0]]
    softmax = np.full((2, 2, TINY.most + 1), 1.0)
    chosen = np.array([[[1.0, 9.0, 9.0]] * 2, [[2.0, 1.0, 4.0], [4.0, 3.0, 2.0]]])
    weights = ["random", "trained"]
    main = xr.Dataset(
        {
            "softmax": (("weights", "pair", "matched"), softmax),
            "softmax_subset": (("weights", "pair", "gradients"), chosen),
        },
        {
            "weights": weights,
            "gradients": list(MATCHING),
            "matched": np.arange(TINY.most + 1),
        },
    )
    subsets = xr.Dataset(
        {
            "subset": (("run", "pick"), plain),
            "whitened": (("run",), np.array([1.0, 1.0])),
            "scaled": (("run",), np.array([2.0, 4.0])),
        }
    )
    dataset = parts.join(main, subsets=subsets)
    dataset.attrs["config"] = results.json.dumps(results.plain(TINY))
    _, ours = evidence(claims, dataset)
    np.testing.assert_allclose(ours["whitened_subset"], [1 / 8, 1 / 2])
    np.testing.assert_allclose(ours["whitened_nearer"], [1 / 2, 1 / 4])
    np.testing.assert_allclose(ours["whitened_softmax"], [1 / 2, 3 / 4])
    np.testing.assert_allclose(ours["whitened_over_scaled"], [1 / 2, 1 / 4])
    np.testing.assert_allclose(ours["whitened_over_scaled_softmax"], [1 / 4, 3 / 2])
