"""Orders of demonstrations, causal answers to them, and changes of the error, by loops."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.matching.demonstration_order import causal_stacks, claims, compute, orders
from experiments.matching.demonstration_order.config import RULES, TIERS, Config
from experiments.models.named import named
from experiments.models.trained import resolve
from lsa_lab import prompts
from lsa_lab.judging.statements import cells_of

TINY = Config(d=2, n=4, noise_std=0.5, depth=2, heads=1, runs=2, test_prompts=4)
PLAIN = Config(d=2, n=4, runs=2, test_prompts=4, left_out=0.0)


@pytest.fixture(scope="module")
def prompt():
    x = np.array([[1.0, 0.5], [-2.0, 1.0], [0.3, -0.7], [1.5, 2.0]])
    y = np.array([2.0, 0.4, -1.0, 0.7])
    return prompts.Prompt(*map(jnp.asarray, (x, y, np.array([0.5, -1.0]), np.array(0.9))))


def ridge(prompt):
    x, y = np.asarray(prompt.x), np.asarray(prompt.y)
    return np.linalg.solve(x.T @ x + 0.25 * np.eye(2), x.T @ y)


def test_demonstrations_are_sorted_by_what_the_rule_names(prompt):
    x, y, query = (np.asarray(part) for part in (prompt.x, prompt.y, prompt.x_query))
    w = ridge(prompt)
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
    ours = np.asarray(orders.sorted_orders(prompt, 0.5))
    np.testing.assert_array_equal(ours, [expected[rule] for rule in RULES])


def test_the_bayes_rule_errs_as_ridge_regression_does(prompt):
    batch = jax.tree.map(lambda leaf: leaf[None, None], prompt)
    expected = (ridge(prompt) @ np.array([0.5, -1.0]) - 0.9) ** 2
    np.testing.assert_allclose(orders.bayes_errors(TINY, batch), [[expected]], rtol=1e-12)


def test_constructed_descent_answers_each_order_as_causal_steps_do(prompt):
    forward, params = causal_stacks.descent(TINY)
    step = 1 / (1 + (1 + 2 + 0.25) / 4)  # E b·w / E|b|² of b = Xᵀy/n
    np.testing.assert_allclose(
        params.w_kq[:, :, 0], np.tile(step * np.diag([1.0, 1, 0]), (2, 2, 1, 1))
    )
    every = np.array([[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]])
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf[None]] * 2), prompt)
    given = jnp.asarray(np.tile(every, (2, 1, 1, 1)))
    ours = orders.predictions(forward, params, batch, given)
    expected = [causal_descent(prompt, order, step) for order in every]
    np.testing.assert_allclose(ours, np.tile(expected, (2, 1, 1)), rtol=1e-10)
    assert np.ptp(expected) > 1e-2


def causal_descent(prompt, order, step):
    """The prediction after two steps in which token i learns from the tokens up to itself."""
    x = np.array([*np.asarray(prompt.x)[order], np.asarray(prompt.x_query)])
    residual = np.array([*np.asarray(prompt.y)[order], 0.0])
    for _ in range(2):
        new = residual.copy()
        for i in range(5):
            for j in range(min(i, 3) + 1):
                new[i] -= step / 4 * (x[i] @ x[j]) * residual[j]
        residual = new
    return -residual[-1]


def test_changes_are_shares_of_the_error_in_random_orders():
    error = np.ones((1, 4, 8))
    error[0, :2, 0], error[0, 2:, 0] = 2.0, 0.5  # the first rule, on each half of the prompts
    error[0, :, 6], error[0, :, 7] = 0.5, 1.5  # random orders: their mean is 1, the least 0.5
    half, whole, luck = compute.changes(PLAIN, error)
    np.testing.assert_allclose(half[0, :, 0], [1.0, -0.5])
    np.testing.assert_allclose(whole[0], [0.25, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(luck, [-0.5])


def test_prompts_with_the_largest_error_in_any_order_are_left_out_of_all_rules():
    config = Config(d=2, n=4, runs=2, test_prompts=4, left_out=0.5)
    error = np.ones((1, 4, 8))
    error[0, :, 0] = [3.0, 0.5, 9.0, 0.5]
    error[0, 0, 5] = error[0, 2, 7] = 100.0
    half, whole, luck = compute.changes(config, error)
    np.testing.assert_allclose(half[0, :, 0], [-0.5, -0.5])
    np.testing.assert_allclose(whole[0], [-0.5, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(luck, [0.0])


def test_a_shared_model_stands_in_the_place_of_a_brief_training():
    config = dataclasses.replace(TIERS["paper"], kernels=("softmax",), runs=3)
    models = resolve(config.models, "test")
    stacks, status = causal_stacks.stacks(config, models)
    forward, params = stacks["trained softmax"]
    weights = models["trained softmax"].params
    assert models["trained softmax"].spec == config.shared
    np.testing.assert_array_equal(params.w_q, np.asarray(weights.w_q[0, :3], float))
    assert status == {"trained softmax": ["finished"] * 3}
    assert forward.keywords["config"].keys == "causal"
    says = [cell.says for cell in cells_of(claims.statements(TIERS["paper"]))]
    assert sum("our trained softmax attention" in each for each in says) == 3
    assert sum("our briefly trained linear attention" in each for each in says) == 3


def test_a_shared_model_of_other_prompts_is_refused():
    with pytest.raises(ValueError, match=r"choose a causal model of \(8, \(24,\), 0.5\)"):
        dataclasses.replace(TIERS["paper"], n=24)
    free = dict(named("laptop"))["softmax attention"]
    with pytest.raises(ValueError, match="choose a causal model"):
        dataclasses.replace(TIERS["paper"], shared=free)
