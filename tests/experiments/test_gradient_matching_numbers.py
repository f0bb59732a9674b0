"""What `gradient_matching` chooses and learns, beside loops over tiny pools."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.matching.gradient_matching import compute, learners, rules
from experiments.matching.gradient_matching.config import Config
from lsa_lab.tasks.pools import Pool

TINY = Config(
    d=2,
    m=8,
    sizes=(4,),
    ablation_size=4,
    depth=2,
    step=0.3,
    saves=2,
    used=(1, 2),
    budgets=(0, 1000),
    random_draws=3,
    tries=2,
    validation=2,
    queries=2,
    runs=2,
)
BALANCED = ([0, 1, 2, 3], [4, 5, 6, 7], [0, 2, 4, 6])  # where each kind of gradients cancels


@pytest.fixture(scope="module")
def pool():
    rng = np.random.default_rng(0)
    return Pool(x=jnp.asarray(rng.normal(size=(8, 2))), y=jnp.asarray(rng.normal(size=8)))


def cancelling():  # [3, 8, 4]
    gradients = np.zeros((3, 8, 4))
    for kind, balanced in enumerate(BALANCED):
        gradients[kind, np.setdiff1d(np.arange(8), balanced), 0] = [1, 10, -100, 89]
    return gradients


def test_subsets_are_ranked_by_leverage_and_by_the_cosine_to_each_query(pool):
    queries = np.array([[1.0, -0.5], [-2.0, 0.1]])
    ranked = rules.rank_all(TINY, pool, jnp.asarray(queries), jax.random.key(0))
    assert ranked.shape == (1 + 2 + 3 + 2, 8)
    x, rows = np.asarray(pool.x), np.column_stack([pool.x, pool.y])
    hat = np.diag(rows @ np.linalg.inv(rows.T @ rows) @ rows.T)
    np.testing.assert_array_equal(ranked[0], sorted(range(8), key=lambda i: -hat[i]))
    for order, query in zip(ranked[-2:], queries, strict=True):
        cosine = [x[i] @ query / np.linalg.norm(x[i]) for i in range(8)]
        np.testing.assert_array_equal(order, sorted(range(8), key=lambda i: -cosine[i]))


def test_every_rule_chooses_by_its_own_gradients_and_strata(pool):
    runs = jax.tree.map(lambda leaf: leaf[None], pool)
    ranked = np.array([[np.roll(np.arange(8), i) for i in range(8)]])
    arrays = (
        jnp.asarray(cancelling()[None]),
        jnp.asarray(ranked),
        jax.random.split(jax.random.key(1), 1),
    )
    chosen = np.asarray(rules.choose(TINY, 4, runs, *arrays)[0])
    assert chosen.shape == (6 + 4 + 7, 4)
    for row, balanced in zip((0, 1, 2, 3, 4), (*BALANCED, BALANCED[0], BALANCED[0]), strict=True):
        assert sorted(chosen[row]) == balanced
    assert sorted(chosen[5]) == [0, 1, 2, 6]  # -100, and what takes nothing from it
    np.testing.assert_array_equal(chosen[8], [0, 1, 2, 3])
    np.testing.assert_array_equal(chosen[10:], ranked[0, 1:, :4])
    ranks = np.argsort(np.argsort(pool.y))[chosen[9]]
    np.testing.assert_array_equal(np.sort(ranks // 2), [0, 1, 2, 3])


def test_ablations_see_the_first_checkpoints_alone():
    linear = 1e-3 * cancelling()[0]
    linear[:, 2] = cancelling()[1][:, 0]  # of the second checkpoint, which weighs more
    other = cancelling()[2][None]
    chosen = np.asarray(rules.ablate(TINY, jnp.asarray(linear), jnp.asarray(other)))
    expected = [BALANCED[0], BALANCED[1], BALANCED[2], BALANCED[1], BALANCED[1]]
    np.testing.assert_array_equal(np.sort(chosen), expected)


def test_gradients_of_a_short_prefix_are_those_of_its_own_mean(pool):
    lengths, prefixes = (1, 3), np.random.default_rng(2).normal(size=(2, 2, 3, 3))
    prefixes[0, :, 1:] = 0
    ours = learners.prefix_gradients(jnp.asarray(prefixes), lengths, pool)
    ours = np.asarray(ours).reshape(2, 8, 2, 3, 3)
    for k, c, i in itertools.product(range(2), range(2), range(8)):
        tokens, x, y = prefixes[k, c, : lengths[k]], np.asarray(pool.x[i]), float(pool.y[i])
        taught = sum(row[:2] * row[2] for row in tokens) / lengths[k]  # one step of size 1
        missed = taught @ x - y
        expected = [[*(missed * x * row[2]), missed * (x @ row[:2])] for row in tokens]
        np.testing.assert_allclose(ours[k, i, c, : lengths[k]], np.array(expected) / lengths[k])
        np.testing.assert_allclose(ours[k, i, c, lengths[k] :], 0, atol=1e-14)


def test_errors_after_a_subset_are_those_of_descent_on_it(pool):
    rng = np.random.default_rng(3)
    queries, validation = (
        Pool(x=jnp.asarray(rng.normal(size=(2, 2))), y=jnp.asarray(rng.normal(size=2)))
        for _ in range(2)
    )
    gradients = rng.normal(size=(8, 3))
    chosen = np.array([[1.0, 0, 1, 1, 0, 0, 0, 0], [1] * 8])
    arrays = pool, queries, validation, jnp.asarray(gradients), jnp.asarray(chosen)
    squares, validated, gap = compute.errors(TINY, *arrays)
    for s, members in enumerate(([0, 2, 3], list(range(8)))):
        x, y, w = np.asarray(pool.x)[members], np.asarray(pool.y)[members], np.zeros(2)
        for _ in range(2):
            w = w + 0.3 * x.T @ (y - x @ w) / len(x)
        np.testing.assert_allclose(squares[s], (queries.x @ w - queries.y) ** 2)
        np.testing.assert_allclose(validated[s], ((validation.x @ w - validation.y) ** 2).mean())
        apart = gradients[members].mean(0) - gradients.mean(0)
        np.testing.assert_allclose(gap[s], np.linalg.norm(apart), atol=1e-14)
