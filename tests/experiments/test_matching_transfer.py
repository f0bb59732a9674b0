"""`matching_transfer`: ranks of subsets, and the errors of its targets, beside loops."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.matching.matching_transfer import compute, learners
from experiments.matching.matching_transfer.config import GRADIENTS, RULES, TIERS
from experiments.models.model import Model
from experiments.models.regression import dense
from lsa_lab.models import constructions
from lsa_lab.selection import gradient_matching
from lsa_lab.tasks import pools

TINY = TIERS["smoke"]
STEP = 1 / (1 + (1 + 2 + 0.25) / 4)
SPEC = dense("linear", 2, 4, 2, training=dict(steps=1, batch=1, learning_rate=0.1, seeds=2))


@pytest.fixture(scope="module")
def taught():
    """Two runs of one pool, three subsets of four demonstrations, two queries."""
    rng = np.random.default_rng(0)
    shapes = (2, 1, 3, 4, 2), (2, 1, 3, 4), (2, 1, 2, 2), (2, 1, 2)
    return [rng.normal(size=shape) for shape in shapes]


def mean_errors(taught, learn):  # [R, P, S]
    x, y, queries, answers = taught
    errors = np.empty(x.shape[:3])
    for place in np.ndindex(errors.shape):
        missed = queries[place[:2]] @ learn(x[place], y[place]) - answers[place[:2]]
        errors[place] = (missed**2).mean()
    return errors


def descend(steps):
    def learn(x, y):
        w = np.zeros(2)
        for size in steps:
            w = w + size * x.T @ (y - x @ w) / 4
        return w

    return learn


def test_constructed_targets_err_as_one_step_and_as_descent_do(taught):
    x, y, *queries = map(jnp.asarray, taught)
    ours = learners.constructed_errors(TINY, x, y, queries)
    best = 1 / (1 + 1 / 4 + (2 + 0.25) / 4)  # Γ⁻¹ of Λ = I
    np.testing.assert_allclose(ours[0], mean_errors(taught, descend([best])), rtol=1e-10)
    np.testing.assert_allclose(ours[1], mean_errors(taught, descend([STEP, STEP])), rtol=1e-10)
    assert ours.shape[0] == 2


def test_the_bayes_rule_errs_as_ridge_regression_does(taught):
    ours = learners.bayes_errors(TINY, *map(jnp.asarray, taught))

    def ridge(x, y):
        return np.linalg.solve(x.T @ x + 0.25 * np.eye(2), x.T @ y)

    np.testing.assert_allclose(ours, mean_errors(taught, ridge), rtol=1e-10)


def test_trained_targets_err_with_the_weights_of_their_own_run(taught):
    sizes = np.array([[0.3, 0.7], [0.9, 0.1]])  # steps of each run
    params = jax.vmap(lambda steps: constructions.gradient_descent(steps, 2))(jnp.asarray(sizes))
    x, y, *queries = map(jnp.asarray, taught)
    ours = learners.errors(Model(SPEC, params), x, y, queries)
    both = [mean_errors(taught, descend(steps))[run] for run, steps in enumerate(sizes)]
    np.testing.assert_allclose(ours, both, rtol=1e-10)


def test_rank_correlations_are_spearmans_with_ties_and_0_of_equal_errors():
    error = np.array([[1.0, 2, 3, 4], [1, 2, 4, 3], [9, 7, 5, 2], [1, 1, 2, 2], [5, 5, 5, 5]])
    both = error[:, None, None]
    ours = compute.rank_correlation(both, both)[..., 0]
    expected = np.eye(5)
    expected[4, 4] = 0
    by_pair = {(0, 1): 0.8, (0, 2): -1, (1, 2): -0.8}  # 1 - 6 Σ d² / (n (n² - 1))
    by_pair |= {(0, 3): 0.8**0.5, (1, 3): 0.8**0.5, (2, 3): -(0.8**0.5)}
    for (i, j), value in by_pair.items():
        expected[i, j] = expected[j, i] = value
    np.testing.assert_allclose(ours, expected, atol=1e-12)
    left, right = error[None, None, [0, 1]], error[None, None, [0, 0]]  # two pools of one run
    np.testing.assert_allclose(compute.rank_correlation(left, right), [[[0.9]]])


def test_a_linear_model_tuned_on_a_subset_descends_by_adam_from_0(taught):
    x, y, *queries = map(jnp.asarray, taught)
    config = dataclasses.replace(TINY, tuned_steps=3, prefix_rate=0.1)
    frozen = learners.one_layer_model(config, 2)
    start = jnp.zeros((2, 2))
    ours = learners.tune(config, learners.linear_answers, frozen, start, x, y, *queries)

    def learn(x, y):
        w, first, second = np.zeros(2), 0.0, 0.0
        for step in range(1, 4):
            gradient = x.T @ (x @ w - y) / 4
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            size = np.sqrt(second / (1 - 0.999**step)) + 1e-8
            w = w - 0.1 * first / (1 - 0.9**step) / size
        return w

    np.testing.assert_allclose(ours, mean_errors(taught, learn), rtol=1e-6)


def test_a_prefix_answers_as_the_demonstrations_of_one_step_do():
    z, x = jax.random.normal(jax.random.key(1), (4, 3)), jnp.eye(2)
    frozen = jax.tree.map(lambda leaf: leaf[0], learners.one_layer_model(TINY, 1))
    best = 1 / (1 + 1 / 4 + (2 + 0.25) / 4)  # Γ⁻¹ of Λ = I, for prompts of 4
    expected = best * np.asarray(z[:, :2].T @ z[:, 2]) / 4
    np.testing.assert_allclose(learners.prefix_answers(frozen, z, x), expected, rtol=1e-10)


def test_every_subset_comes_from_the_pool_of_its_own_queries(monkeypatch):
    config = dataclasses.replace(TINY, pools=2, noise_std=1e-9)
    rng = np.random.default_rng(1)
    chosen, gaps = rng.integers(0, 12, (4, 3, 4)), rng.normal(size=(4, 5, 2))
    monkeypatch.setattr(learners, "prefix_path", lambda *_: np.zeros(()))
    monkeypatch.setattr(compute, "choose", lambda *_: (chosen, gaps))
    keys = [jax.random.fold_in(jax.random.key(0), tag) for tag in range(3)]
    stack = learners.one_layer_model(config, 2)
    x, y, queries, clean, of_subsets = map(np.asarray, compute.teach(config, stack, keys, None))
    assert x.shape == (2, 2, 3, 4, 2)
    for run, pool in itertools.product(range(2), range(2)):
        w = np.linalg.solve(queries[run, pool], clean[run, pool])  # two queries, two covariates
        np.testing.assert_allclose(x[run, pool] @ w, y[run, pool], atol=1e-6)
        np.testing.assert_array_equal(of_subsets[:, run, pool], gaps[2 * run + pool])
        members = chosen[2 * run + pool].ravel()
        rows = x[run, pool].reshape(-1, 2)
        same = (rows[:, None] == rows[None]).all(2)
        np.testing.assert_array_equal(same, members[:, None] == members[None])


def test_gaps_of_random_subsets_are_those_that_certify_gives():
    task = pools.PoolTask(TINY.m, TINY.d, noise_std=TINY.noise_std)
    keys = jax.random.split(jax.random.key(3), 3)
    pool = jax.vmap(lambda key: pools.sample(key, task))(keys[:1]).replace(population=None)
    path = jax.random.normal(keys[1], (1, TINY.checkpoints, TINY.prefix_length, 3))
    paths = dict.fromkeys(GRADIENTS[1:], (learners.one_layer_model(TINY, 1), path))
    indices, gaps = compute.choose(TINY, pool, paths, keys[2:])
    rows = compute.features(TINY, *jax.tree.map(lambda leaf: leaf[0], (pool, paths)))
    assert gaps.shape == (1, len(GRADIENTS), TINY.random_subsets)
    for subset, gap in zip(indices[0, len(RULES) :], gaps[0].T, strict=True):
        certified = [gradient_matching.certify(row, subset).objective for row in rows]
        np.testing.assert_allclose(gap, certified, rtol=1e-10)
