"""The experiments on layers as algorithms: their measures beside loops and sums over prompts."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from draws import descend
from experiments.descent import (
    common_map,
    depth,
    implicit_trajectories,
    noisy_descent,
    norms_and_updates,
    order,
    virtual_demonstrations,
)
from experiments.models import model
from experiments.models.specs import dense_spec
from lsa_lab.models import constructions, linear_attention, moments
from lsa_lab.tasks.linear import LinearTask, sample_batch

SMALL = depth.Config(d=2, n=4, runs=1, tuning_prompts=6, test_prompts=500)
TRAINING = dict(steps=1, batch=1, learning_rate=1.0, seeds=2)


def draw_stacks(kernel, n, num_layers, **shape):
    """Return the Spec and the weights of two random stacks on prompts with d = 2."""
    spec = dense_spec(kernel, 2, n, num_layers, key_width=3, training=TRAINING, **shape)
    params = jax.jit(jax.vmap(partial(model.init, spec)))(jax.random.split(jax.random.key(0), 2))
    return spec, jax.tree.map(lambda leaf: np.asarray(leaf, float), params)


def test_one_tuned_step_is_that_of_least_squares():
    """The prediction is ηa with a = x_query·Xᵀy/n: the best η is Σ a y_query / Σ a²."""
    step = depth.tune_plus_plus(SMALL, 1, 0.3)[0, 0]
    key = jax.random.fold_in(jax.random.key(SMALL.seed), 1001)
    moments, queries, targets = depth.draw(key, 0.3, SMALL, SMALL.tuning_prompts)
    a = (moments[:-1, -1] * queries).sum(0)
    np.testing.assert_allclose(step, (a @ targets) / (a @ a), rtol=1e-4)


@pytest.mark.parametrize(("factor", "diverged"), [(1, False), (30, False), (1, True)])
def test_a_stack_that_diverged_or_explodes_counts_as_the_answer_zero(factor, diverged):
    params = constructions.gradient_descent(jnp.array([0.5]), 2)
    stack = jax.tree.map(lambda leaf: np.stack([factor * leaf] * 3), params)
    plus_plus = [depth.build_plus_plus(jnp.array([[0.5], [0.0]]), 2)] * 3
    risks = depth.measure(SMALL, 1, {"free": (stack, [diverged] * 3)}, plus_plus, (0, 0))
    assert risks["plus_plus"] < 1
    assert risks["free"] == (1 if factor > 1 or diverged else risks["plus_plus"])


def test_shrinking_the_writes_of_one_layer_shrinks_its_answer():
    spec, params = draw_stacks("softmax", 4, 1, heads=2)
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


def test_noise_of_one_step_is_measured_as_by_scipy():
    """A stack of one step of descent has the excess kurtosis of one step of descent."""
    config = noisy_descent.Config(d=2, n=4, depth=1, prompts=40)
    params = constructions.gradient_descent(jnp.array([0.7]), 2)
    added, step, share = noisy_descent.measure_noise(config, 4, params, jax.random.key(3))
    np.testing.assert_allclose(added[0], step)
    assert 0 < share[0] < 1
    values = np.random.default_rng(4).normal(size=(30, 2)) ** 3
    np.testing.assert_allclose(noisy_descent.excess_kurtosis(values), stats.kurtosis(values))


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
    ridge = [
        np.linalg.solve(x.T @ x / 6 + penalty * np.eye(2), x.T @ y / 6)
        for x, y in zip(prompts.x, prompts.y, strict=True)
    ]
    apart, size = (np.linalg.norm(w, axis=1).mean() for w in (weights - ridge, weights))
    np.testing.assert_allclose(rows["ridge"][-1], apart / size, rtol=1e-4)
    for measured_risk, w in ((risk, weights), (ridge_risk, ridge)):
        errors = (w * prompts.x_query).sum(1) - prompts.y_query
        np.testing.assert_allclose(measured_risk, np.mean(errors**2), rtol=1e-3)


def test_measures_by_place_are_those_of_loops():
    """A rule that reads labels with weights 1, 2, 3, and inputs: its influence is these weights."""
    weights = jnp.arange(1.0, 4.0)
    batch = sample_batch(jax.random.key(1), LinearTask(3, 2), 4)
    noise = jnp.linspace(-1.0, 1.0, 4)

    def answer(batch):
        return batch.y @ weights + batch.x[..., 0] @ weights**2

    measured = order.measure_places(answer, batch, noise)
    prompts = jax.tree.map(np.asarray, batch)
    for reading, c in enumerate((0.0, 1.0)):
        for place in range(3):
            label, query = prompts.y_query + c * np.asarray(noise), prompts.x_query
            y, x = (np.insert(values[:, 1:], place, own, axis=1)
                    for values, own in ((prompts.y, label), (prompts.x, query)))  # fmt: skip
            expected = np.mean((answer(batch.replace(x=x, y=y)) - prompts.y_query) ** 2)
            np.testing.assert_allclose(measured[reading, place], expected)
    np.testing.assert_allclose(measured[2], weights)


@pytest.mark.parametrize(("kernel", "exact"), [("linear", True), ("softmax", False)])
def test_linear_attention_has_a_common_map_and_softmax_has_none(kernel, exact):
    missed = common_map.measure(
        *draw_stacks(kernel, 8, 2), jax.random.split(jax.random.key(1), 2), 3
    )
    assert (missed.max() < 1e-12) == exact


@pytest.mark.parametrize(("steps", "near"), [(300, True), (1, False)])
def test_one_demonstration_is_fitted_to_the_answers_of_descent(steps, near):
    x, y, queries = map(np.random.default_rng(0).standard_normal, ((4, 2), 4, (5, 2)))
    spec, step_sizes = dense_spec("linear", 2, 4, 2, training=TRAINING), (0.2, 0.1)
    stack = model.Model(spec, constructions.gradient_descent(jnp.array(step_sizes), 2))
    targets = queries @ descend(x, y, step_sizes)
    np.testing.assert_allclose(virtual_demonstrations.answers(stack, x, y, queries), targets)
    config = virtual_demonstrations.Config(steps=steps, batch=5)
    fit = jax.jit(partial(virtual_demonstrations.fit, config=config))
    fitted = jax.device_get(fit(stack, (x[:1], y[:1]), queries, targets, jax.random.key(0)))
    error = virtual_demonstrations.relative_error(stack, fitted, queries, targets)
    squares = (queries @ descend(*fitted, step_sizes) - targets) ** 2
    np.testing.assert_allclose(error, squares.sum() / (targets**2).sum(), rtol=1e-6, atol=1e-12)
    assert (error < 1e-3) == near
