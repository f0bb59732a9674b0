"""`many_shots` and `fixed_and_per_query`: prompts, answers and choices beside loops and by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from experiments.matching import fixed_and_per_query, many_shots, measures
from experiments.models.specs import Task
from lsa_lab.prompts import Prompt

TASK = Task(3, (4,), noise_std=0.5)


def test_rules_answer_as_loops_do():
    rng = np.random.default_rng(0)
    shapes = (2, 1, 5, 3), (2, 1, 5), (2, 1, 3), (2, 1)
    x, y, query, target = (rng.normal(size=shape) for shape in shapes)
    batch = Prompt(*map(jnp.asarray, (x, y, query, target)))
    found = measures.answer_by_rules(jnp.array([0.3, 0.2]), 0.5, batch)
    for run in range(2):
        a, b = x[run, 0], y[run, 0]
        ridge = np.linalg.solve(a.T @ a + 0.25 * np.eye(3), a.T @ b)
        descent = np.zeros(3)
        for step in (0.3, 0.2):
            descent = descent - step * a.T @ (a @ descent - b) / 5
        expected = [descent @ query[run, 0], ridge @ query[run, 0]]
        np.testing.assert_allclose(found[:, run, 0], expected)


def test_classes_are_the_signs_of_the_labels_in_regression():
    config = many_shots.Config(shots=(4, 8), prompts=3, runs=2)
    real, signs = (many_shots.draw_prompts(config, TASK, labels) for labels in many_shots.LABELS)
    assert real.x.shape == (2, 3, 8, 3)
    np.testing.assert_array_equal(real.x, signs.x)
    np.testing.assert_array_equal(np.sign(real.y), signs.y)
    np.testing.assert_array_equal(np.sign(real.y_query), signs.y_query)


def test_a_model_far_from_the_bayes_rule_is_left_out():
    rules, shots = [*many_shots.RULES], [4, many_shots.FEW, 256]
    error = np.ones((3, 4, 2)) * [[[1.0], [3.0], [1.5], [1.0]]]
    wrong = np.arange(24.0).reshape(3, 4, 2)
    axes = ("shots", "rule", "run")
    result = xr.Dataset(
        {"error": (axes, error), "wrong": (axes, wrong)}, {"rule": rules, "shots": shots}
    )
    assert many_shots.longer(result, "linear attention") is None
    np.testing.assert_array_equal(many_shots.longer(result, "softmax attention"), [1, 1])
    np.testing.assert_array_equal(many_shots.over_bayes(result, "softmax attention"), [1.5, 1.5])
    np.testing.assert_array_equal(many_shots.classes(result, "softmax attention"), [8, 8])


FIXED = fixed_and_per_query.Config(
    m=24, clusters=2, separation=1.0, queries=4, flips=0.5, draws=1, pools=1, runs=2
)
KEYS = jax.random.split(jax.random.key(1), 2)


def test_pools_have_one_task_or_one_for_each_cluster_and_mislead_in_labels_alone():
    kinds = (fixed_and_per_query.ONE, fixed_and_per_query.EACH, "flipped labels", "heavy noise")
    one, each, flipped, heavy = (
        fixed_and_per_query.draw_pools(FIXED, TASK, kind, KEYS) for kind in kinds
    )
    for pool, queries in (one, flipped, heavy):
        np.testing.assert_array_equal(pool.x, one[0].x)
        weights = np.linalg.lstsq(pool.x[0], pool.clean[0], rcond=None)[0]
        np.testing.assert_allclose(pool.x[0] @ weights, pool.clean[0], atol=1e-12)
        np.testing.assert_allclose(queries.x[0] @ weights, queries.y[0], atol=1e-12)
    assert np.linalg.lstsq(each[0].x[0], each[0].clean[0], rcond=None)[1] > 1e-3
    signs = np.asarray(flipped[0].y / one[0].y)
    np.testing.assert_allclose(np.abs(signs), 1)
    assert 0 < (signs < 0).mean() < 1
    assert np.abs(heavy[0].y - one[0].y).max() > 1e-3


@pytest.mark.parametrize("size", [0, 2, 4])
def test_a_prompt_is_a_fixed_part_and_then_what_is_most_similar_to_the_query(size):
    pool, queries = fixed_and_per_query.draw_pools(FIXED, TASK, fixed_and_per_query.EACH, KEYS)
    chosen = np.stack([np.arange(size), np.arange(9, 9 + size)])[None].repeat(2, 0)
    batch = fixed_and_per_query.write_prompts(4, pool, queries, chosen.astype(int))
    assert batch.x.shape == (2, 2, 4, 4, 3)
    x, query = np.asarray(pool.x[1]), np.asarray(queries.x[1, 2])
    fixed = chosen[1, 1]
    cosines = x @ query / np.linalg.norm(x, axis=1)
    others = [i for i in np.argsort(-cosines) if i not in fixed][: 4 - size]
    np.testing.assert_array_equal(batch.x[1, 1, 2], x[[*fixed.astype(int), *others]])
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
    np.testing.assert_allclose(fixed_and_per_query.gain(result, "ridge"), matched[:, -1] / 8)
