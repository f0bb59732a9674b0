"""`order`: orders of a prompt, the steps that see them, and sorted demonstrations, by loops."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.descent.order import rules
from experiments.descent.order.compute import draw, predictions
from experiments.descent.order.config import RULES, TIERS, Rules
from lsa_lab import prompts

CONFIG = TIERS["smoke"]
TINY = Rules(d=2, n=4, noise_std=0.5, depth=2, heads=1, runs=2, test_prompts=4)
PARAMS, ORDERED, FRESH = jax.jit(draw, static_argnums=1)(jax.random.key(0), CONFIG)


def test_orders_are_of_one_prompt_and_other_prompts_are_of_one_task_and_query():
    for run, prompt in np.ndindex(CONFIG.runs, CONFIG.prompts):
        first, other = np.asarray(ORDERED[run, prompt])
        assert sorted(map(tuple, first)) == sorted(map(tuple, other))
        np.testing.assert_array_equal(first, FRESH[run, prompt, 0])
        np.testing.assert_array_equal(FRESH[run, prompt, 0, -1], FRESH[run, prompt, 1, -1])
        assert (FRESH[run, prompt, 0, :-1] != FRESH[run, prompt, 1, :-1]).all()


def causal_descent(x, labels, step, depth):  # [n + 1, d], [n + 1] -> [depth]
    """Predictions after steps in which token i learns from those up to itself, the query from all
    demonstrations."""
    predicted, last = [], len(x) - 2
    for _ in range(depth):
        sums = [
            sum(labels[j] * x[j] @ x[i] for j in range(min(i, last) + 1)) for i in range(len(x))
        ]
        labels = labels - step * np.array(sums) / (len(x) - 1)
        predicted.append(-labels[-1])
    return predicted


def test_descent_is_that_of_loops():
    """n = 4, d = 2, σ = 1/2: η = 1/(1 + 3.25/4)."""
    tokens = np.asarray(ORDERED[0, 0, 0])
    expected = causal_descent(tokens[:, :2], tokens[:, 2], 16 / 29, CONFIG.depth)
    predicted = predictions(PARAMS, ORDERED[0, 0, 0], CONFIG, "descent")
    np.testing.assert_allclose(predicted, expected)


@pytest.fixture(scope="module")
def prompt():
    x = np.array([[1.0, 0.5], [-2.0, 1.0], [0.3, -0.7], [1.5, 2.0]])
    y = np.array([2.0, 0.4, -1.0, 0.7])
    return prompts.Prompt(*map(jnp.asarray, (x, y, np.array([0.5, -1.0]), np.array(0.9))))


def test_demonstrations_are_sorted_by_what_the_rule_names(prompt):
    x, y, query = (np.asarray(part) for part in (prompt.x, prompt.y, prompt.x_query))
    w = np.linalg.solve(x.T @ x + 0.25 * np.eye(2), x.T @ y)
    hard = [abs(y[i] - x[i] @ w) for i in range(4)]
    step = [abs(y[i]) * np.sqrt(x[i] @ x[i]) for i in range(4)]
    far = [np.sqrt((x[i] - query) @ (x[i] - query)) for i in range(4)]
    expected = {
        "easy to hard": sorted(range(4), key=hard.__getitem__),
        "hard to easy": sorted(range(4), key=hard.__getitem__, reverse=True),
        "small to large step": sorted(range(4), key=step.__getitem__),
        "large to small step": sorted(range(4), key=step.__getitem__, reverse=True),
        "nearest last": sorted(range(4), key=far.__getitem__, reverse=True),
        "nearest first": sorted(range(4), key=far.__getitem__),
    }
    ours = np.asarray(rules.sorted_orders(prompt, 0.5))
    np.testing.assert_array_equal(ours, [expected[rule] for rule in RULES])


def test_constructed_descent_answers_each_order_as_causal_steps_do(prompt):
    forward, params = rules.stacks(dataclasses.replace(TINY, kernels=()), {})["descent"]
    step = 1 / (1 + (1 + 2 + 0.25) / 4)  # E b·w / E|b|² of b = Xᵀy/n
    np.testing.assert_allclose(
        params.w_kq[:, :, 0], np.tile(step * np.diag([1.0, 1, 0]), (2, 2, 1, 1))
    )
    every = np.array([[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]])
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf[None]] * 2), prompt)
    given = jnp.asarray(np.tile(every, (2, 1, 1, 1)))
    ours = rules.predictions(forward, params, batch, given)
    expected = []
    for order in every:
        x = np.array([*np.asarray(prompt.x)[order], np.asarray(prompt.x_query)])
        labels = np.array([*np.asarray(prompt.y)[order], 0.0])
        expected.append(causal_descent(x, labels, step, 2)[-1])
    np.testing.assert_allclose(ours, np.tile(expected, (2, 1, 1)), rtol=1e-10)
    assert np.ptp(expected) > 1e-2


def test_prompts_with_the_largest_error_in_any_order_are_left_out_of_all_rules():
    config = Rules(d=2, n=4, runs=2, test_prompts=4, left_out=0.5)
    error = np.ones((1, 4, 8))
    error[0, :, 0] = [3.0, 0.5, 9.0, 0.5]
    error[0, 0, 5] = error[0, 2, 7] = 100.0
    half, whole = rules.changes(config, error)
    np.testing.assert_allclose(half[0, :, 0], [-0.5, -0.5])
    np.testing.assert_allclose(whole[0], [-0.5, 0, 0, 0, 0, 0])
