"""What `fixed_and_per_query` puts before a query, and what it calls an outlier of a noisy pool."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.matching.fixed_and_per_query import claims, config, noisy
from experiments.matching.fixed_and_per_query import compute as fixed
from lsa_lab import prompts
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import predict

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


def test_descent_answers_as_the_constructed_stack_does():
    keys = jax.random.split(jax.random.key(2), 3)
    x, y, query = (
        jax.random.normal(key, shape) for key, shape in zip(keys, ((6, 2), (6,), (2,)), strict=True)
    )
    prompt = prompts.Prompt(x, y, query, jnp.zeros(()))
    batch = jax.tree.map(lambda leaf: leaf[None, None], prompt)
    ours = noisy.squared_errors(TINY, {}, batch)[0, 0, 0]
    stack = constructions.gradient_descent(jnp.full(TINY.depth, TINY.step), TINY.d)
    theirs = predict(linear_attention.forward(stack, prompts.tokens(prompt)))
    np.testing.assert_allclose(ours, theirs**2, rtol=1e-10)


def test_the_share_is_chosen_by_the_other_runs():
    import xarray as xr

    values = np.array([[3.0, 1.0, 1.5, 4.0], [3.0, 2.0, 1.0, 4.0], [3.0, 2.0, 1.0, 4.0]])
    logs = xr.DataArray(values, {"fixed": [0, 1, 2, 4]}, ("run", "fixed"))
    np.testing.assert_array_equal(claims.lowest(logs, [1, 2]), [1.5, 1.0, 1.0])
    np.testing.assert_array_equal(claims.lowest(logs, [0, 4]), [3.0, 3.0, 3.0])
    np.testing.assert_array_equal(claims.best_share(logs, 4), [0.75, 0.5, 0.5])


@pytest.mark.parametrize(("kind", "share"), [("few flipped", 0.1), ("many flipped", 0.3)])
def test_outliers_are_the_labels_with_the_wrong_sign(kind, share):
    keys = jax.random.split(jax.random.key(3), 200)
    pool, outliers, _ = noisy.sample(TINY, kind, keys)
    clean, *_ = noisy.sample(TINY, "clean", keys)
    np.testing.assert_array_equal(pool.y, np.where(outliers, -clean.y, clean.y))
    assert abs(float(outliers.mean()) - share) < 4 * (share * (1 - share) / outliers.size) ** 0.5


def test_heavy_noise_has_the_same_variance_and_its_largest_are_the_outliers():
    sample = partial(noisy.sample, TINY, "heavy noise", jax.random.split(jax.random.key(4), 2000))
    pool, outliers, _ = sample()
    noise = np.asarray(pool.y - pool.clean)
    assert np.abs(noise.std() / TINY.noise_std - 1) < 0.15  # ν = 3: the fourth moment is infinite
    assert (np.abs(noise)[outliers].min() > np.quantile(np.abs(noise), 0.5)).all()
    assert outliers.sum(1).tolist() == [round(TINY.noisy.outliers * TINY.noisy.m)] * len(noise)
