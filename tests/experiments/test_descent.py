"""The experiments on layers as algorithms: their measures beside loops and sums over prompts."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy import stats

from experiments.descent import (
    common_map,
    depth,
    implicit_trajectories,
    noisy_descent,
    norms_and_updates,
    order,
)
from experiments.models import model
from experiments.models.specs import dense_spec
from lsa_lab.models import constructions, linear_attention, moments
from lsa_lab.tasks.linear import LinearTask, sample, sample_batch

SMALL = depth.Config(d=2, n=4, runs=1, tuning_prompts=6, test_prompts=500)


def test_coloured_prompts_have_the_moments_of_coloured_covariates():
    rng = np.random.default_rng(0)
    root, x, y = rng.normal(size=(2, 2)), rng.normal(size=(5, 2)), rng.normal(size=5)
    white, coloured = (
        sum(np.outer(row, row) for row in np.column_stack([rows, y])) / 5
        for rows in (x, x @ root.T)
    )
    batch = white[..., None], x[:1].T, y[:1]
    moments, query, target = depth.paint(batch, root)
    np.testing.assert_allclose(moments[..., 0], coloured)
    np.testing.assert_allclose(query[:, 0], root @ x[0])
    assert target == y[0]


def test_one_tuned_step_is_that_of_least_squares():
    """The prediction is ηa with a = x_query·Xᵀy/n: the best η is Σ a y_query / Σ a²."""
    step = depth.tune_plus_plus(SMALL, 1, 0.3)[0, 0]
    key = jax.random.fold_in(jax.random.key(SMALL.seed), 1001)
    moments, queries, targets = depth.draw(key, 0.3, SMALL, SMALL.tuning_prompts)
    a = (moments[:-1, -1] * queries).sum(0)
    np.testing.assert_allclose(step, (a @ targets) / (a @ a), rtol=1e-4)


def test_a_stack_that_diverged_or_explodes_counts_as_the_answer_zero():
    params = constructions.gradient_descent(jnp.array([0.5]), 2)
    stacks = [jax.tree.map(lambda leaf, c=c: np.stack([c * leaf] * 3), params) for c in (1, 30)]
    plus_plus = [depth.build_plus_plus(jnp.array([[0.5], [0.0]]), 2)] * 3
    for stack, diverged, failed in zip(stacks * 2, (0, 0, 1, 1), (0, 1, 1, 1), strict=True):
        kinds = {"free": (stack, np.full(3, bool(diverged)))}
        risks = depth.measure(SMALL, 1, kinds, plus_plus, (0, 0))
        assert risks["plus_plus"] < 1
        assert (risks["free"] == 1) == failed
        if not failed:
            np.testing.assert_allclose(risks["free"], risks["plus_plus"])


def test_the_factor_of_a_run_is_the_best_for_the_others():
    risks = np.array([[1.0, 0.5, 0.9], [1.0, 0.9, 0.8], [2.0, 1.7, 1.4]])  # [R, 1 and two factors]
    axes, shrunk = ("run", "factor"), norms_and_updates.SHRUNK
    data = np.stack([risks, np.ones((3, 3))], axis=1)[None]
    result = xr.Dataset(
        {"shrunk": (("norm", axes[0], "shrunk_part", axes[1]), data)},
        {"norm": ["without norms"], "shrunk_part": list(shrunk)},
    )
    # The others of run 0 do best with the second factor, those of runs 1 and 2 with the first.
    expected = [0.9, 0.9, 0.85]
    np.testing.assert_allclose(norms_and_updates.best_shrunk(result, "writes"), expected)
    np.testing.assert_allclose(norms_and_updates.writes_over_answers(result), expected)


def test_shrinking_the_writes_of_one_layer_shrinks_its_answer():
    training = dict(steps=1, batch=1, learning_rate=1.0, seeds=2)
    spec = dense_spec("softmax", 2, 4, 1, heads=2, key_width=3, training=training)
    params = jax.vmap(partial(model.init, spec))(jax.random.split(jax.random.key(0), 2))
    params = jax.tree.map(lambda leaf: leaf.astype(float), params)
    config = norms_and_updates.Config(pairs=2, test_prompts=5)
    batch = norms_and_updates.draw_prompts(jax.random.key(1), spec.task, 0.3, config)
    factors = jnp.array([1.0, 0.7, 0.0])
    risks = norms_and_updates.measure_shrunk(spec, params, batch, factors)
    np.testing.assert_allclose(risks[:, 0], risks[:, 1])
    np.testing.assert_allclose(risks[:, 0, 2], (batch.y_query**2).mean(1))


def test_descent_with_one_moment_is_the_stack():
    params = linear_attention.init(jax.random.key(0), 3, 1, 2, scale=0.3)
    moment = np.cov(np.random.default_rng(1).normal(size=(3, 9)))
    maps = jax.jit(noisy_descent.descend)(params, np.stack([moment] * 3))
    np.testing.assert_allclose(maps, moments.layer_maps(params, moment), rtol=1e-9, atol=1e-12)


def test_both_kinds_of_moments_have_one_mean_and_one_covariance():
    draw = jax.jit(noisy_descent.draw_moments, static_argnums=(1, 2, 3, 4))
    for gaussian in (False, True):
        rows = np.asarray(draw(jax.random.key(2), 5, 2, 50_000, gaussian)).reshape(-1, 4)
        error = rows.std(0) / np.sqrt(len(rows))
        assert (np.abs(rows.mean(0) - [1, 0, 0, 1]) < 5 * error).all()
        np.testing.assert_allclose(rows.var(0), np.array([2, 1, 1, 2]) / 5, rtol=0.05)


def test_noise_of_one_step_is_measured_as_by_scipy():
    """A stack of one step of descent has the excess kurtosis of one step of descent."""
    config = noisy_descent.Config(d=2, n=4, depth=1, prompts=40)
    params = constructions.gradient_descent(jnp.array([0.7]), 2)
    added, step, share = noisy_descent.measure_noise(config, 4, params, jax.random.key(3))
    np.testing.assert_allclose(added[0], step)
    assert 0 < share[0] < 1
    values = np.random.default_rng(4).normal(size=(30, 2)) ** 3
    expected = stats.kurtosis(values)
    np.testing.assert_allclose(noisy_descent.excess_kurtosis(values), expected)


def test_rules_fitted_to_themselves_have_no_distance():
    """The layers are GD++: its distance is zero, that of others is found by loops over prompts."""
    task = LinearTask(6, 2, noise_std=0.3, dtype=jnp.float32)
    batch = jax.tree.map(lambda leaf: leaf[None], sample_batch(jax.random.key(0), task, 4))
    starts = implicit_trajectories.list_starts(3, 2)
    parameters = jax.tree.map(lambda leaf: leaf[None], starts)
    answers = implicit_trajectories.answer_as_control(batch, parameters["GD++"])
    measured = implicit_trajectories.measure_distances(parameters, answers)
    distance, risk, ridge_risk = (np.asarray(leaf)[0] for leaf in measured)
    rows = dict(zip(implicit_trajectories.PATHS, distance, strict=True))
    np.testing.assert_allclose(rows["GD++"], 0, atol=1e-6)
    prompts = jax.tree.map(lambda leaf: np.asarray(leaf[0], float), batch)
    weights, penalty = np.asarray(answers[2], float)[0, :, -1], np.exp(-2.0)  # of the last layer
    ridge = np.stack(
        [
            np.linalg.solve(x.T @ x / 6 + penalty * np.eye(2), x.T @ y / 6)
            for x, y in zip(prompts.x, prompts.y, strict=True)
        ]
    )
    apart, size = (np.linalg.norm(w, axis=1).mean() for w in (weights - ridge, weights))
    np.testing.assert_allclose(rows["ridge"][-1], apart / size, rtol=1e-4)
    for measured_risk, w in ((risk, weights), (ridge_risk, ridge)):
        errors = (w * prompts.x_query).sum(1) - prompts.y_query
        np.testing.assert_allclose(measured_risk, np.mean(errors**2), rtol=1e-3)


def test_the_nearest_rule_is_chosen_on_the_other_runs():
    distance = np.ones((3, 5))
    distance[:, 0], distance[:, 1] = (0.1, 0.9, 0.9), (0.5, 0.2, 0.4)
    result = xr.Dataset(
        {"distance": (("model", "run", "rule", "layer"), distance[None, :, :, None])},
        {"model": ["model"], "rule": list(implicit_trajectories.PATHS)},
    )
    nearest = implicit_trajectories.distance_to_nearest(result, "model")
    np.testing.assert_allclose(nearest, [0.5, 0.2, 0.4])


def test_a_moved_demonstration_keeps_the_order_of_the_others():
    prompt = sample(jax.random.key(0), LinearTask(4, 2))
    moved = order.move(prompt, jnp.asarray(2), jnp.asarray(0.5))
    np.testing.assert_allclose(moved.x[2], prompt.x_query)
    np.testing.assert_allclose(moved.y[2], prompt.y_query + 0.5)
    np.testing.assert_allclose(moved.x[jnp.array([0, 1, 3])], prompt.x[1:])
    np.testing.assert_allclose(moved.y[jnp.array([0, 1, 3])], prompt.y[1:])


def test_measures_by_place_are_those_of_loops():
    """A rule that reads labels with weights 1, 2, 3: its influence is these weights."""
    weights = jnp.arange(1.0, 4.0)
    batch = sample_batch(jax.random.key(1), LinearTask(3, 2), 4)
    noise = jnp.linspace(-1.0, 1.0, 4)
    measured = order.measure_places(lambda batch: batch.y @ weights, batch, noise)
    y, target = np.asarray(batch.y), np.asarray(batch.y_query)
    for reading, c in enumerate((0.0, 1.0)):
        for place in range(3):
            labels = np.insert(y[:, 1:], place, target + c * np.asarray(noise), axis=1)
            expected = np.mean((labels @ np.asarray(weights) - target) ** 2)
            np.testing.assert_allclose(measured[reading, place], expected)
    np.testing.assert_allclose(measured[2], weights)


def test_worth_is_that_of_the_ends_less_the_middle():
    errors = np.array([[4.0, 1.0, 2.0, 3.0]])  # mean 2.5, the middle half is places 2 and 3
    result = xr.Dataset(
        {"by_place": (("asked", "run", "reading", "place"), errors[None, :, None])},
        {"asked": ["trained"], "reading": ["exact"]},
    )
    for end, expected in (("first", (1.5 - 4) / 2.5), ("last", (1.5 - 3) / 2.5)):
        np.testing.assert_allclose(order.worth_at(result, "exact", end), [expected])


def test_linear_attention_has_a_common_map_and_softmax_has_none():
    training = dict(steps=1, batch=1, learning_rate=1.0, seeds=1)
    for kernel, exact in (("linear", True), ("softmax", False)):
        spec = dense_spec(kernel, 2, 8, 2, key_width=3, training=training)
        params = jax.vmap(partial(model.init, spec))(jax.random.split(jax.random.key(0), 1))
        params = jax.tree.map(lambda leaf: leaf.astype(float), params)
        missed = common_map.measure(spec, params, jax.random.split(jax.random.key(1), 1), 3)
        assert (missed.max() < 1e-12) == exact
