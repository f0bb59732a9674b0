"""Matching and coverage: choices, twins, errors and ranks, beside loops over tiny pools."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from draws import descend
from experiments.matching import (
    coverage,
    fixed_and_per_query,
    gradient_matching,
    matching_is_exact,
    matching_transfer,
    measures,
)
from experiments.models.model import Model
from experiments.models.specs import Task, dense_spec
from lsa_lab.models import constructions
from lsa_lab.tasks.pools import Pool

CHOICE = gradient_matching.Config(d=2, m=8, depth=2, step=0.3, saves=2, random_draws=3, queries=2)
BALANCED = ([0, 1, 2, 3], [4, 5, 6, 7], [0, 2, 4, 6])  # where each kind of gradients cancels
PATH = np.array([[0.2, 0.3], [0.4, -0.2], [0.3, 0.5]])
POOL = Pool(*map(np.random.default_rng(0).standard_normal, ((8, 2), 8)))
QUERIES = Pool(*map(np.random.default_rng(5).standard_normal, ((8, 2), 8)))


def test_every_rule_chooses_by_its_gradients_and_strata():
    gradients = np.zeros((3, 8, 4))
    for kind, balanced in enumerate(BALANCED):
        gradients[kind, np.setdiff1d(np.arange(8), balanced), 0] = [1, 10, -100, 89]
    ranked = np.array([[np.roll(np.arange(8), i) for i in range(12)]])
    runs = jax.tree.map(lambda leaf: leaf[None], POOL)
    keys = jax.random.split(jax.random.key(1), 1)
    chosen = np.asarray(gradient_matching.choose(CHOICE, 4, runs, gradients[None], ranked, keys)[0])
    for row, balanced in enumerate(BALANCED):
        assert sorted(chosen[row]) == balanced
    assert sorted(chosen[3]) == [0, 1, 2, 6]  # -100, and what takes nothing from it
    ranks = np.argsort(np.argsort(POOL.y))[chosen[6]]
    np.testing.assert_array_equal(np.sort(ranks // 2), [0, 1, 2, 3])
    np.testing.assert_array_equal(chosen[7:], ranked[0, :, :4])


def test_the_concept_is_scored_by_its_posterior_given_one_demonstration():
    weights, noise_var = np.array([0.5, -1.0]), 0.3
    scores = gradient_matching.score_by_concept(POOL, weights, noise_var)
    prior = stats.multivariate_normal(np.zeros(2), np.eye(2)).logpdf(weights)
    for x, y, score in zip(POOL.x, POOL.y, scores, strict=True):
        covariance = np.linalg.inv(np.eye(2) + np.outer(x, x) / noise_var)
        posterior = stats.multivariate_normal(covariance @ x * y / noise_var, covariance)
        np.testing.assert_allclose(score, posterior.logpdf(weights) - prior, rtol=1e-9)


def test_errors_after_a_subset_are_those_of_descent_on_it():
    subsets = [[0, 2, 3], [*range(8)]]
    chosen = jnp.concatenate([measures.mark_members(np.array([rows]), 8) for rows in subsets])
    (squares,) = measures.squared_errors(CHOICE, POOL, chosen, QUERIES)
    for rows, errors in zip(subsets, squares, strict=True):
        w = descend(POOL.x[rows], POOL.y[rows], [0.3, 0.3])
        np.testing.assert_allclose(errors, (QUERIES.x @ w - QUERIES.y) ** 2)


@pytest.fixture(scope="module")
def twins():
    """A pool [12, 3], others [6, 3], and twins with the pool's gradients at 0 to 3 checkpoints."""
    rng = np.random.default_rng(0)
    pool, others = rng.normal(size=(12, 3)), rng.normal(size=(6, 3))
    build = jax.jit(matching_is_exact.build_twins, static_argnums=0)
    return pool, others, np.asarray(build(6, pool, others, PATH, jax.random.key(0)))


def test_twins_have_the_pools_mean_gradients_at_the_first_checkpoints_alone(twins):
    pool, others, sets = twins
    assert sets.shape == (4, 6, 3)

    def miss(count, w):
        means = [(rows[:, :2] @ w - rows[:, 2]) @ rows[:, :2] / len(rows)
                 for rows in (sets[count], pool)]  # fmt: skip
        return np.linalg.norm(means[0] - means[1])

    for count in range(1, 4):
        assert max(miss(count, w) for w in PATH[:count]) < 1e-12
    assert miss(2, PATH[2]) > 1e-2
    np.testing.assert_allclose(sets[0].T @ sets[0], others.T @ others)
    np.testing.assert_allclose((sets[3, :, 2] ** 2).mean(), (pool[:, 2] ** 2).mean())


def test_a_twin_equals_its_pool_for_descent_from_d_plus_1_checkpoints(twins):
    pool, _, sets = twins
    config = matching_is_exact.Config(depths=(1, 3), step=0.2)
    runs = jax.tree.map(lambda leaf: leaf[None], (sets, pool, QUERIES))
    gap, error = (np.asarray(part[0]) for part in matching_is_exact.measure_descents(config, *runs))
    assert gap[3].max() < 1e-12
    assert gap[2].min() > 1e-3
    answers, whole = (
        QUERIES.x @ descend(rows[:, :2], rows[:, 2], [0.2] * 3) for rows in (sets[1], pool)
    )
    apart = np.sqrt(((answers - whole) ** 2).mean() / (whole**2).mean())
    np.testing.assert_allclose(gap[1, 1], apart, rtol=1e-9)
    np.testing.assert_allclose(error[1, 1], ((answers - QUERIES.y) ** 2).mean(), rtol=1e-9)


@pytest.fixture(scope="module")
def subsets():
    """Two runs of one pool, three subsets of four demonstrations, two queries."""
    shapes = (2, 1, 3, 4, 2), (2, 1, 3, 4), (2, 1, 2, 2), (2, 1, 2)
    return [*map(np.random.default_rng(0).standard_normal, shapes)]


def mean_errors(subsets, learn):  # [R, P, S]
    x, y, queries, targets = subsets
    errors = np.empty(x.shape[:3])
    for place in np.ndindex(errors.shape):
        w = learn(place[0], x[place], y[place])
        errors[place] = ((queries[place[:2]] @ w - targets[place[:2]]) ** 2).mean()
    return errors


def test_constructed_and_trained_models_err_as_descent_does(subsets):
    config, task = matching_transfer.Config(depth=2), Task(2, (4,), noise_std=0.5)
    measure = matching_transfer.measure_constructed(config, task)
    found = np.asarray(matching_transfer.map_subsets(measure, has_model=False)(*subsets))
    step, best = 1 / (1 + (1 + 2 + 0.25) / 4), 1 / (1 + 1 / 4 + (2 + 0.25) / 4)
    rules = [
        lambda _, x, y: descend(x, y, [best]),
        lambda _, x, y: descend(x, y, [step] * 2),
        lambda _, x, y: np.linalg.solve(x.T @ x + 0.25 * np.eye(2), x.T @ y),
    ]
    for i, rule in enumerate(rules):
        np.testing.assert_allclose(found[..., i], mean_errors(subsets, rule), rtol=1e-9)
    sizes = np.array([[0.3, 0.7], [0.9, 0.1]])  # steps of each run
    params = jax.vmap(lambda steps: constructions.gradient_descent(steps, 2))(jnp.asarray(sizes))
    training = dict(steps=1, batch=1, learning_rate=0.1, seeds=2)
    model = Model(dense_spec("linear", 2, 4, 2, training=training), params)
    errors = matching_transfer.map_subsets(matching_transfer.measure_error)(model, *subsets)
    expected = mean_errors(subsets, lambda run, x, y: descend(x, y, sizes[run]))
    np.testing.assert_allclose(errors, expected, rtol=1e-9)


def test_a_tuned_linear_model_is_that_of_adam(subsets):
    config = matching_transfer.Config(tuned_steps=5, rate=0.1)

    def learn(_, x, y):
        w, first, second = np.zeros((3, 2))
        for t in range(1, 6):
            slope = x.T @ (x @ w - y) / 4
            first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            w = w - 0.1 * first / (1 - 0.9**t) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
        return w

    measure = matching_transfer.tune(config, lambda _, w, x: x @ w, jnp.zeros(2))
    with jax.numpy_dtype_promotion("standard"):
        ours = matching_transfer.map_subsets(measure)(np.zeros(2), *subsets)
    np.testing.assert_allclose(ours, mean_errors(subsets, learn), rtol=1e-6)


COVERAGE = coverage.Config(
    d=2, m=16, n=8, decline=0.5, depth=3, draws=4, queries=3, runs=2, test_labels=9, seed=5
)
KEYS = jax.random.split(jax.random.key(0), 2)
KINDS = pytest.mark.parametrize("kind", [coverage.TASKS, "3 classes"])


@KINDS
def test_gradients_are_those_of_the_loss_by_example(kind):
    pool, _ = coverage.draw_pools(COVERAGE, kind, KEYS)
    x, targets = coverage.add_constant(pool.x[0], 1.0), coverage.find_targets(COVERAGE, kind, pool)
    shape = (3, targets.shape[-1], COVERAGE.d + 1)
    path = jnp.asarray(np.random.default_rng(1).normal(size=shape))

    def loss(weights, x, target):
        scores = weights @ x
        if kind == coverage.TASKS:
            return (scores[0] - target[0]) ** 2 / 2
        return jax.scipy.special.logsumexp(scores) - scores @ target

    by_weights = jax.vmap(jax.grad(loss), (0, None, None))
    expected = jax.jit(jax.vmap(by_weights, (None, 0, 0)))(path, x, targets[0])
    found = coverage.find_gradients(kind, path, x, targets[0])
    np.testing.assert_allclose(found, np.reshape(expected, (COVERAGE.m, -1)), atol=1e-12)
    mean = jax.grad(lambda w: coverage.learner_loss(kind, w, x, targets[0]))(path[0])
    np.testing.assert_allclose(mean.ravel(), found[:, : mean.size].mean(0), atol=1e-12)


def test_stratified_subsets_have_the_shares_of_the_pool_and_random_ones_have_not():
    kind, counts = "3 classes", [4, 3, 1]
    pool, _ = coverage.draw_pools(COVERAGE, kind, KEYS)
    path, x = coverage.train_learners(COVERAGE, kind, pool, KEYS)
    chosen = np.asarray(coverage.choose(COVERAGE, kind, path, x, pool, KEYS))
    assert chosen.shape == (2, 2 + 2 * COVERAGE.draws, COVERAGE.n)
    assert all(len({*rows}) == COVERAGE.n for rows in chosen.reshape(-1, COVERAGE.n))
    clusters = np.take_along_axis(np.asarray(pool.cluster)[:, None], chosen, 2)
    found = (clusters[..., None] == np.arange(len(counts))).sum(2)
    assert (found[:, -COVERAGE.draws :] == counts).all()
    assert not (found[:, 2 : -COVERAGE.draws] == counts).all()


@KINDS
def test_errors_are_those_of_descent_by_loops(kind):
    pool, queries = coverage.draw_pools(COVERAGE, kind, KEYS)
    chosen = np.stack([np.arange(8), np.arange(4, 12)])[None].repeat(2, 0)
    found = coverage.measure_errors(COVERAGE, kind, pool, queries, chosen)
    rows, steps = chosen[1, 1], [COVERAGE.step] * COVERAGE.depth
    x, asked = np.asarray(pool.x[1])[rows], np.asarray(queries.x[1])
    if kind == "3 classes":
        x, asked = (np.column_stack([part, np.ones(len(part))]) for part in (x, asked))
        targets = np.eye(3)[np.asarray(pool.cluster[1])[rows]]
        answers = [asked @ descend(x, column, steps) for column in targets.T]
        errors = np.argmax(answers, axis=0) != np.asarray(queries.cluster[1])
    else:
        answers = asked @ descend(x, np.asarray(pool.y[1])[rows], steps)
        errors = (answers - np.asarray(queries.y[1])) ** 2
    np.testing.assert_allclose(found[1, 1], errors.reshape(-1, COVERAGE.queries).mean(1))


TASK = Task(3, (4,), noise_std=0.5)
FIXED = fixed_and_per_query.Config(
    m=24, clusters=2, separation=1.0, queries=4, flips=0.5, draws=1, pools=1, runs=2
)


@functools.cache
def draw_pools(kind):
    return jax.device_get(fixed_and_per_query.draw_pools(FIXED, TASK, kind, KEYS))


def test_pools_have_one_task_or_one_for_each_cluster_and_mislead_in_labels_alone():
    kinds = (fixed_and_per_query.ONE, fixed_and_per_query.EACH, "flipped labels")
    one, each, flipped = map(draw_pools, kinds)
    for pool, queries in (one, flipped):
        np.testing.assert_array_equal(pool.x, one[0].x)
        weights = np.linalg.lstsq(pool.x[0], pool.clean[0], rcond=None)[0]
        np.testing.assert_allclose(pool.x[0] @ weights, pool.clean[0], atol=1e-12)
        np.testing.assert_allclose(queries.x[0] @ weights, queries.y[0], atol=1e-12)
    assert np.linalg.lstsq(each[0].x[0], each[0].clean[0], rcond=None)[1] > 1e-3
    signs = flipped[0].y / one[0].y
    np.testing.assert_allclose(np.abs(signs), 1)
    assert 0 < (signs < 0).mean() < 1


@pytest.mark.parametrize("size", [0, 2])
def test_a_prompt_is_a_fixed_part_and_then_what_is_most_similar_to_the_query(size):
    pool, queries = draw_pools(fixed_and_per_query.EACH)
    chosen = np.stack([np.arange(size), np.arange(9, 9 + size)])[None].repeat(2, 0).astype(int)
    batch = fixed_and_per_query.write_prompts(4, pool, queries, chosen)
    x, query, fixed = pool.x[1], queries.x[1, 2], chosen[1, 1]
    cosines = x @ query / np.linalg.norm(x, axis=1)
    others = [i for i in np.argsort(-cosines) if i not in fixed][: 4 - size]
    np.testing.assert_array_equal(batch.x[1, 1, 2], x[[*fixed, *others]])
    np.testing.assert_array_equal(batch.y_query[1, 1], queries.y[1])
