"""`fixed_and_per_query`: pools, prompts and choices beside loops and by hand."""

import functools

import jax
import numpy as np
import pytest
import xarray as xr

from experiments.matching import fixed_and_per_query
from experiments.models.specs import Task

TASK = Task(3, (4,), noise_std=0.5)
FIXED = fixed_and_per_query.Config(
    m=24, clusters=2, separation=1.0, queries=4, flips=0.5, draws=1, pools=1, runs=2
)


@functools.cache
def draw_pools(kind):
    keys = jax.random.split(jax.random.key(1), 2)
    return jax.device_get(fixed_and_per_query.draw_pools(FIXED, TASK, kind, keys))


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


def test_numbers_of_fixed_demonstrations_are_the_best_for_the_other_runs():
    matched = np.array([[2.0, 1.0, 3.0, 5.0], [2.0, 5.0, 1.0, 5.0], [2.0, 4.0, 2.0, 0.5]])
    error = np.stack([matched, np.full((3, 4), 8.0)], axis=-1)
    kinds = [fixed_and_per_query.ONE, fixed_and_per_query.EACH]
    result = xr.Dataset(
        {"error": (("kind", "learner", "run", "fixed", "rule"), np.stack([[error]] * 2))},
        {"kind": kinds, "learner": ["ridge"], "rule": list(fixed_and_per_query.RULES)},
    )
    # Products of the others' errors at the numbers between: 5·4 and 1·2; 1·4 and 3·2; 1·5 and 3·1.
    # At none and all: 2·2 and 5·0.5; 2·2 and 5·0.5; 2·2 and 5·5.
    both, alone = np.array([3.0, 5.0, 2.0]), np.array([5.0, 5.0, 2.0])
    np.testing.assert_allclose(fixed_and_per_query.compare_kinds(result, "ridge"), both / alone)
    np.testing.assert_allclose(fixed_and_per_query.compare_fixed(result, "ridge"), both / 8)
