"""What a prompt is given, by how many shots and to which learner: `many_shots`,
`fixed_and_per_query`, `matching_transfer`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.matching.fixed_and_per_query import compute as fixed
from experiments.matching.fixed_and_per_query import config
from experiments.matching.many_shots import compute
from experiments.matching.matching_transfer import learners
from experiments.matching.matching_transfer.config import TIERS as LEARNERS
from experiments.models.model import Model
from experiments.models.named import choose_pairs
from experiments.models.specs import dense_spec
from lsa_lab import prompts
from lsa_lab.models import constructions, linear_attention
from lsa_lab.tasks import linear


@pytest.mark.parametrize("own_units", [False, True])
def test_predictions_from_moments_are_those_of_the_model(own_units):
    ((_, spec),) = choose_pairs(["linear attention"], small=True)
    assert spec.architecture.normalise_prompt

    @jax.jit
    def both():
        params = linear_attention.init(jax.random.key(0), spec.architecture.depth, 1, 2, scale=0.5)
        task = linear.LinearTask(6, 2, noise_std=0.5)
        batch = linear.sample_batch(jax.random.key(1), task, 5)
        batch = batch.replace(x=3 * batch.x, x_query=3 * batch.x_query)
        moments = prompts.second_moments(batch)
        ours = compute.predictions(params, own_units, moments, batch.x_query.T, 1.0)
        return ours, Model(spec, params).predict(batch)

    np.testing.assert_equal(np.allclose(*both(), rtol=1e-10), own_units)


TINY = config.TIERS["smoke"]


@pytest.fixture(scope="module")
def sampled():
    return fixed.sample(TINY, jax.random.key(0))


def test_one_task_at_share_0_and_tasks_of_their_own_at_share_1_with_the_same_noise(sampled):
    pool, _, common, _ = sampled
    one, own = (fixed.blend(share, pool, common) for share in (0.0, 1.0))
    weights = np.linalg.lstsq(one.x[0], one.clean[0], rcond=None)[0]
    np.testing.assert_allclose(one.x[0] @ weights, one.clean[0], atol=1e-12)
    np.testing.assert_allclose(own.y, pool.y, atol=1e-12)
    np.testing.assert_allclose(one.y - one.clean, pool.y - pool.clean, atol=1e-12)
    rest = np.linalg.lstsq(own.x[0], own.clean[0], rcond=None)[1]
    assert rest > 1e-3  # no weights are those of all clusters


@pytest.mark.parametrize("size", [0, 2, 4])
def test_a_prompt_is_a_fixed_part_and_then_what_is_most_like_the_query(sampled, size):
    pool, queries, *_ = jax.tree.map(lambda leaf: leaf[0], sampled)
    gradients = -pool.y[:, None] * pool.x
    batch = fixed.prompts_of(TINY, size, pool, queries, gradients, jax.random.key(1))
    parts = fixed.ONCE + TINY.random_draws
    x = np.asarray(batch.x).reshape(parts, len(queries.y), TINY.n, TINY.d)
    np.testing.assert_array_equal(x[:, 0, :size], x[:, -1, :size])
    assert all(len(np.unique(rows, axis=0)) == TINY.n for rows in x.reshape(-1, TINY.n, TINY.d))
    units = np.asarray(pool.x / jnp.linalg.norm(pool.x, axis=1, keepdims=True))
    query = np.asarray(queries.x[0])
    left = [
        i for i, row in enumerate(np.asarray(pool.x)) if not (row == x[0, 0, :size]).all(1).any()
    ]
    best = sorted(left, key=lambda i: -units[i] @ query)[: TINY.n - size]
    np.testing.assert_array_equal(x[0, 0, size:], np.asarray(pool.x)[best])


TRANSFER = LEARNERS["smoke"]
STEP = 1 / (1 + (1 + 2 + 0.25) / 4)
SPEC = dense_spec("linear", 2, 4, 2, training=dict(steps=1, batch=1, learning_rate=0.1, seeds=2))


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
    ours = learners.constructed_errors(TRANSFER, x, y, queries)
    best = 1 / (1 + 1 / 4 + (2 + 0.25) / 4)  # Γ⁻¹ of Λ = I
    np.testing.assert_allclose(ours[0], mean_errors(taught, descend([best])), rtol=1e-10)
    np.testing.assert_allclose(ours[1], mean_errors(taught, descend([STEP, STEP])), rtol=1e-10)
    assert ours.shape[0] == 2


def test_trained_targets_err_with_the_weights_of_their_own_run(taught):
    sizes = np.array([[0.3, 0.7], [0.9, 0.1]])  # steps of each run
    params = jax.vmap(lambda steps: constructions.gradient_descent(steps, 2))(jnp.asarray(sizes))
    x, y, *queries = map(jnp.asarray, taught)
    ours = learners.errors(Model(SPEC, params), x, y, queries)
    both = [mean_errors(taught, descend(steps))[run] for run, steps in enumerate(sizes)]
    np.testing.assert_allclose(ours, both, rtol=1e-10)
