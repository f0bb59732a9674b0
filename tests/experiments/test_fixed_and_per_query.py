"""What `fixed_and_per_query` puts before a query, and the tasks of its clusters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.matching.fixed_and_per_query import compute as fixed
from experiments.matching.fixed_and_per_query import config

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
    gradients = jnp.asarray(prompts_gradients(pool))
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


def prompts_gradients(pool):
    return -pool.y[:, None] * pool.x
