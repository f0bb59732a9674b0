"""`order`: predictions of orders of a prompt beside sums that know no order and some that do, where
the relevant demonstration is put, and what sorted demonstrations change, by loops."""

import dataclasses
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from experiments.descent.order import claims, rules
from experiments.descent.order import compute as places
from experiments.descent.order.compute import compute, draw, predictions
from experiments.descent.order.config import ASKED, RULES, TIERS, Rules
from experiments.models.named import named
from experiments.models.trained import resolve
from lsa_lab import prompts
from lsa_lab.judging.statements import cells_of
from lsa_lab.prompts import Prompt

CONFIG = TIERS["smoke"]
TINY = Rules(d=2, n=4, noise_std=0.5, depth=2, heads=1, runs=2, test_prompts=4)
PLAIN = Rules(d=2, n=4, runs=2, test_prompts=4, left_out=0.0)
PARAMS, ORDERED, FRESH = jax.jit(draw, static_argnums=1)(jax.random.key(0), CONFIG)


def test_orders_are_of_one_prompt_and_other_prompts_are_of_one_task_and_query():
    for run, prompt in np.ndindex(CONFIG.runs, CONFIG.prompts):
        first, other = np.asarray(ORDERED[run, prompt])
        assert sorted(map(tuple, first)) == sorted(map(tuple, other))
        np.testing.assert_array_equal(first, FRESH[run, prompt, 0])
        np.testing.assert_array_equal(FRESH[run, prompt, 0, -1], FRESH[run, prompt, 1, -1])
        assert (FRESH[run, prompt, 0, :-1] != FRESH[run, prompt, 1, :-1]).all()


def test_descent_is_that_of_loops():
    """Demonstration i descends on those up to its own, the query on all; step n = 4, d = 2,
    σ = 1/2, η = 1/(1 + 3.25/4)."""
    step, tokens = 16 / 29, np.asarray(ORDERED[0, 0, 0])
    x, labels = tokens[:, :2], tokens[:, 2].copy()
    expected = []
    for _ in range(CONFIG.depth):
        reads = [range(i + 1) for i in range(4)] + [range(4)]
        sums = [sum(labels[j] * x[j] @ x[i] for j in each) for i, each in enumerate(reads)]
        labels = labels - step * np.array(sums) / 4
        expected.append(-labels[-1])
    predicted = predictions(PARAMS, ORDERED[0, 0, 0], CONFIG, "descent")
    np.testing.assert_allclose(predicted, expected)


def test_the_share_of_order_in_descent_is_that_of_two_orders():
    dataset = compute(CONFIG, resolve(CONFIG.models, "test"))
    batch = jax.jit(draw, static_argnums=1)(jax.random.key(CONFIG.seed), CONFIG)
    _, ordered, fresh = batch
    both = jnp.concatenate([ordered, fresh], axis=2)
    of_descent = jax.jit(jax.vmap(lambda tokens: predictions(None, tokens, CONFIG, "descent")))
    y = np.asarray(of_descent(both.reshape(-1, 5, 3))).reshape(2, 2, 4, 2)  # [R, B, 2 + 2, L]
    share = np.zeros((2, 2))
    for r, t in np.ndindex(2, 2):
        apart = [abs(y[r, b, 1, t] - y[r, b, 0, t]) for b in range(2)]
        redrawn = [abs(y[r, b, 3, t] - y[r, b, 2, t]) for b in range(2)]
        share[r, t] = np.median(np.divide(apart, redrawn))  # of two numbers each
    np.testing.assert_allclose(dataset.share.sel(kind="descent"), share)


@pytest.mark.parametrize("place", [0, 2, 4])
def test_the_others_keep_their_order(place):
    prompt = Prompt(
        10 + jnp.arange(5.0)[:, None], jnp.arange(5.0), jnp.full(1, 99.0), jnp.array(7.0)
    )
    moved = places.move_demonstration(prompt, jnp.asarray(place))
    assert moved.x[place, 0] == 99
    assert moved.y[place] == 7
    rest = np.delete(np.asarray(moved.y), place)
    assert rest.tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(np.delete(np.asarray(moved.x[:, 0]), place), 10 + rest)


def test_a_rule_that_weighs_places_has_its_weights_for_influences():
    weights = jnp.array([3.0, -1.0, 2.0])
    batch = Prompt(
        *(jax.random.normal(jax.random.key(i), s) for i, s in enumerate(((4, 3, 2), (4, 3)))),
        jnp.ones((4, 2)),
        jnp.arange(4.0),
    )
    noise = jnp.array([0.5, -1.0, 0.0, 2.0])

    def answer(batch):
        return batch.y @ weights

    exact, noisy, _, influence = places.place_errors(answer, (batch, noise))
    np.testing.assert_allclose(influence, [3, 1, 2])
    rest = [batch.y[:, 1:] @ np.delete(weights, place) for place in range(3)]
    missed = np.array([rest[i] + (weights[i] - 1) * batch.y_query for i in range(3)])
    np.testing.assert_allclose(exact, (missed**2).mean(1))
    np.testing.assert_allclose(noisy, ((missed + np.outer(weights, noise)) ** 2).mean(1))


def samples_of_places(worth, ordinary=2.0):
    """Those of three runs with this error and influence over eight places."""
    table = np.tile(np.asarray(worth, float), (len(ASKED), 3, 1))
    arrays = {name: (("kind", "run", "place"), table) for name in ("error", "noisy", "influence")}
    arrays |= {
        "ordinary": (("kind", "run"), np.full((len(ASKED), 3), ordinary)),
        "least_squares": ("run", [2.0] * 3),
    }
    dataset = xr.Dataset(arrays, {"kind": list(ASKED), "place": np.arange(8) + 1})
    result, cells = SimpleNamespace(place=dataset), cells_of(claims.statements(TIERS["laptop"]))
    of_places = [cell for cell in cells if cell.family.startswith("worth")]
    return {cell.id: cell.sample_of(result) for cell in of_places}


def test_an_error_that_is_least_at_the_ends_is_a_u_of_performance():
    values = samples_of_places([0, 1, 2, 2, 2, 2, 1, 0.5])
    mean = 10.5 / 8
    for id, difference in {"beginning": 2, "end": 1.5, "u_shape": 1.25}.items():
        np.testing.assert_allclose(values[id], difference / mean)
        np.testing.assert_allclose(values[f"noisy_{id}"], difference / mean)
        if id != "u_shape":
            np.testing.assert_allclose(values[f"influence_{id}"], -difference / mean)
    np.testing.assert_allclose(values["influence_u_shape"], -1.5 / mean)  # the first quarter
    turned = samples_of_places([2, 2, 1, 1, 1, 1, 2, 2])
    assert turned["u_shape"][0] < 0 < turned["influence_u_shape"][0]  # control


def test_a_model_far_above_least_squares_judges_nobody():
    assert not any(values is not None for values in samples_of_places(np.ones(8), 3.02).values())
    assert all(values is not None for values in samples_of_places(np.ones(8), 2.98).values())


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
    ours = np.asarray(rules.sorted_orders(prompt, 0.5))
    np.testing.assert_array_equal(ours, [expected[rule] for rule in RULES])


def test_the_bayes_rule_errs_as_ridge_regression_does(prompt):
    batch = jax.tree.map(lambda leaf: leaf[None, None], prompt)
    expected = (ridge(prompt) @ np.array([0.5, -1.0]) - 0.9) ** 2
    np.testing.assert_allclose(rules.bayes_errors(TINY, batch), [[expected]], rtol=1e-12)


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
    error[0, :, 6], error[0, :, 7] = 0.5, 1.5  # random orders: their mean is 1
    half, whole = rules.changes(PLAIN, error)
    np.testing.assert_allclose(half[0, :, 0], [1.0, -0.5])
    np.testing.assert_allclose(whole[0], [0.25, 0, 0, 0, 0, 0])


def test_prompts_with_the_largest_error_in_any_order_are_left_out_of_all_rules():
    config = Rules(d=2, n=4, runs=2, test_prompts=4, left_out=0.5)
    error = np.ones((1, 4, 8))
    error[0, :, 0] = [3.0, 0.5, 9.0, 0.5]
    error[0, 0, 5] = error[0, 2, 7] = 100.0
    half, whole = rules.changes(config, error)
    np.testing.assert_allclose(half[0, :, 0], [-0.5, -0.5])
    np.testing.assert_allclose(whole[0], [-0.5, 0, 0, 0, 0, 0])


def test_a_shared_model_stands_in_the_place_of_a_brief_training():
    config = dataclasses.replace(TIERS["paper"].rules, kernels=("softmax",), runs=3)
    models = resolve(config.models, "test")
    forward, params = rules.stacks(config, models)["trained softmax"]
    weights = models["trained softmax"].params
    assert models["trained softmax"].spec == config.shared
    np.testing.assert_array_equal(params.w_q, np.asarray(weights.w_q[0, :3], float))
    assert forward.keywords["config"].keys == "causal"
    says = [cell.says for cell in cells_of(claims.statements(TIERS["paper"]))]
    assert sum("our trained softmax attention" in each for each in says) == 1
    assert sum("our briefly trained linear attention" in each for each in says) == 1


def test_a_shared_model_of_other_prompts_is_refused():
    with pytest.raises(ValueError, match=r"choose a causal model of \(8, \(24,\), 0.5\)"):
        dataclasses.replace(TIERS["paper"].rules, n=24)
    free = dict(named("laptop"))["softmax attention"]
    with pytest.raises(ValueError, match="choose a causal model"):
        dataclasses.replace(TIERS["paper"].rules, shared=free)
