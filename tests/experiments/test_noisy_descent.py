"""The experiments on updates: noise of the size that is said, and updates that are the model's."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from experiments.descent.noisy_descent.compute import (
    critical_value,
    measure_softmax,
    measure_stacks,
    measure_task,
    moments_of,
    risks_of,
)
from experiments.descent.noisy_descent.config import PATHS, Config
from experiments.descent.noisy_descent.paths import (
    ends,
    isotropic,
    token_root,
    updates_of,
    weights_of,
    white_moments,
)
from experiments.descent.norms_and_updates.by_shots import sizes_by_name
from experiments.models.model import Model, init
from experiments.models.regression import dense
from lsa_lab.models import constructions, linear_attention, moments
from lsa_lab.tasks.linear import LinearTask, sample, sample_weights
from lsa_lab.theory.implicit_updates import mean_square

D, N = 2, 12
PARAMS = linear_attention.init(jax.random.key(1), 2, 1, D, scale=0.3)
ROOT = token_root(jnp.array([1.0, -0.5]), 0.5)


@pytest.mark.parametrize("gaussian", [False, True])
def test_moments_of_both_kinds_have_the_mean_and_the_covariance_of_wishart(gaussian):
    draw = jax.jit(partial(white_moments, n=N, e=D + 1, size=200_000, gaussian=gaussian))
    rows = np.asarray(draw(jax.random.key(0))).reshape(-1, (D + 1) ** 2)
    i = np.eye(D + 1)
    covariance = np.einsum("ik,jl->ijkl", i, i) + np.einsum("il,jk->ijkl", i, i)
    np.testing.assert_allclose(rows.mean(0), i.ravel(), atol=0.01)
    expected = covariance.reshape(rows.shape[1], -1) / N
    np.testing.assert_allclose(np.cov(rows.T), expected, atol=0.01)


def test_tokens_of_a_task_have_the_second_moment_of_its_root():
    task = LinearTask(400_000, D, noise_std=0.5, prior_mean=jnp.array([1.0, -0.5]), weight_std=0.0)
    prompt = sample(jax.random.key(2), task)
    tokens = jnp.concatenate([prompt.x, prompt.y[:, None]], axis=1)
    np.testing.assert_allclose(tokens.T @ tokens / task.n, ROOT @ ROOT.T, atol=0.02)


def test_noise_of_another_shape_is_as_large_as_that_of_the_update():
    w = jnp.array(np.random.default_rng(0).normal(size=(D + 1, D + 1)))
    spread = isotropic(PARAMS, ROOT @ ROOT.T, N, jnp.ones((2, D + 1, D + 1)))(w, 1)
    white = white_moments(jax.random.key(3), N, D + 1, 200_000, gaussian=False)
    updates = PARAMS.w_pv[1, 0] @ w @ (ROOT @ white @ ROOT.T) @ w.T @ PARAMS.w_kq[1, 0] @ w
    measured = ((updates - updates.mean(0, keepdims=True)) ** 2).sum((1, 2)).mean()
    np.testing.assert_allclose((spread**2).sum(), measured, rtol=0.02)


def test_paths_without_noise_end_where_the_layer_maps_do():
    weights = jax.jit(ends, static_argnums=(3, 4))(jax.random.key(4), PARAMS, ROOT, N, 3)
    by_path = dict(zip(PATHS, weights, strict=True))
    population = weights_of(moments.layer_maps(PARAMS, ROOT @ ROOT.T)[-1])
    np.testing.assert_allclose(by_path["no noise"], jnp.stack([population] * 3), rtol=1e-10)
    assert np.abs(by_path["Eq. 4"] - population[None]).min() > 1e-6


def test_the_mean_square_of_the_first_update_is_the_closed_form():
    updates = updates_of(jax.random.key(5), PARAMS, ROOT, N, 200_000)[:, 0]
    size = mean_square(PARAMS.w_kq[0], PARAMS.w_pv[0], ROOT @ ROOT.T, N)
    measured = (updates**2).sum((1, 2)).mean()
    np.testing.assert_allclose(measured, size.mean + size.noise, rtol=0.02)


def test_what_an_update_writes_is_what_the_heads_of_the_model_write():
    training = dict(steps=1, batch=1, learning_rate=1.0, seeds=1)
    spec = dense("softmax", D, N, 2, heads=2, key_width=3, training=training)
    model = Model(
        spec, jax.tree.map(lambda leaf: leaf.astype(float), init(spec, jax.random.key(6)))
    )
    prompt = sample(jax.random.key(7), LinearTask(N, D))
    sizes = jax.jit(sizes_by_name)(model, jnp.zeros_like(model.params.w_v), prompt)
    written = model.forward(prompt).heads.sum(1)[:, -1]
    np.testing.assert_allclose(sizes["written"], (written**2).sum(1), rtol=1e-10)
    np.testing.assert_allclose(sizes["change"], sizes["written"], rtol=1e-10)


def test_kurtosis_and_the_statistic_are_those_of_scipy():
    values = np.random.default_rng(1).exponential(size=(40, 3))
    measured = moments_of(jnp.asarray(values))
    np.testing.assert_allclose(measured["excess"], stats.kurtosis(values, axis=0))
    expected = [stats.jarque_bera(column).statistic for column in values.T]
    np.testing.assert_allclose(measured["statistic"], expected)


def test_the_critical_value_tends_to_that_of_chi_squared():
    """5.99, approached from below."""
    config = Config(prompts=500, normals=2000)
    value = jax.jit(critical_value, static_argnums=1)(jax.random.key(8), config)
    assert abs(value - stats.chi2.ppf(0.95, 2)) < 0.6


def test_one_covariate_without_noise_gives_the_kurtosis_of_chi_squared():
    """R·G = x_query w (1/n) Σ x_i²: the excess kurtosis is 12/n, the share of noise 2/(n + 2)."""
    params = constructions.gradient_descent(jnp.array([0.5]), 1)
    measure = jax.jit(partial(measure_task, n=N, config=Config(prompts=20_000), noise_std=0.0))
    values = measure(jax.random.key(9), params)
    np.testing.assert_allclose(values["closed"][0], 12 / N, rtol=1e-10)
    np.testing.assert_allclose(values["excess"][0, 0], 12 / N, rtol=0.2)
    np.testing.assert_allclose(values["share"], [2 / (N + 2)], rtol=0.03)


def test_the_kurtosis_of_an_answer_is_that_of_the_angle_between_task_and_query():
    """(w·x_i)(x_i·x_query) is a form with the eigenvalues (w·x_query ± |w||x_query|)/2."""
    params, key = constructions.gradient_descent(jnp.array([0.5]), D), jax.random.key(14)
    measure = jax.jit(partial(measure_task, n=N, config=Config(prompts=2), noise_std=0.0))
    w, query = (np.asarray(jax.random.normal(k, (D,))) for k in jax.random.split(key, 4)[:2])
    values = (w @ query + np.array([1, -1]) * np.linalg.norm(w) * np.linalg.norm(query)) / 2
    expected = 12 / N * (values**4).sum() / (values**2).sum() ** 2
    np.testing.assert_allclose(measure(key, params)["closed"][0], expected, rtol=1e-10)


SPEC = dense(
    "softmax", D, N, 2, key_width=3, training=dict(steps=1, batch=1, learning_rate=1.0, seeds=1)
)
FEW = Config(prompts=6, tasks=2)


def test_trained_and_untrained_stacks_meet_the_same_tasks_and_prompts():
    states = jax.tree.map(lambda leaf: jnp.stack([jnp.stack([leaf, 2 * leaf])] * 2), PARAMS)
    values = jax.jit(lambda key, states: measure_stacks(key, states, N, FEW, SPEC))(
        jax.random.key(10), states
    )
    assert values["excess"].shape == (2, 2, 2, 2, 2)  # states, runs, tasks, readings, layers
    for measured in values.values():
        np.testing.assert_array_equal(measured[0], measured[1])
        assert (np.abs(measured[0, 0] - measured[0, 1]) > 1e-6).all()


@pytest.mark.parametrize("size", [0.0, 1e3])
def test_no_answer_costs_more_than_none(size):
    """Weights of zero answer nothing and cost |w|²; enormous ones are held to as much."""
    params = jax.tree.map(lambda leaf: jnp.full((2, *leaf.shape), size), PARAMS)
    key = jax.random.key(11)
    run = jax.jit(partial(risks_of, n=N, config=FEW, spec=SPEC))
    capped, typical = run(key, params)
    keys = jax.random.split(key, (2, 2))
    weights = [
        [jax.random.normal(jax.random.split(keys[r, t])[0], (D,)) for t in (0, 1)] for r in (0, 1)
    ]
    lengths = (np.array(weights) ** 2).sum(-1)
    np.testing.assert_allclose(capped, np.repeat(lengths.mean(1)[:, None], len(PATHS), axis=1))
    if size:
        assert np.min(typical) > 1e3 * lengths.max()
    else:
        np.testing.assert_allclose(typical[:, 0], np.median(lengths, axis=1))


def test_what_softmax_layers_add_is_the_difference_of_their_answers():
    params = jax.tree.map(
        lambda leaf: leaf.astype(float)[None, None], init(SPEC, jax.random.key(12))
    )
    key = jax.random.key(13)
    softmax = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), params)
    values = jax.jit(partial(measure_softmax, config=FEW, spec=SPEC))(key, softmax)
    key_task, key_query, key_prompts = jax.random.split(jax.random.split(key, (1, 2))[0, 0], 3)
    task = LinearTask(N, D, dtype=jnp.float32)
    same = task.replace(prior_mean=sample_weights(key_task, task), weight_std=0.0)
    batch = jax.vmap(partial(sample, task=same))(jax.random.split(key_prompts, 6))
    query = jax.random.normal(key_query, (D,), jnp.float32)
    batch = jax.tree.map(
        lambda leaf: leaf.astype(float),
        batch.replace(x_query=jnp.stack([query] * 6)),
    )
    model = Model(SPEC, jax.tree.map(lambda leaf: leaf[0, 0], params))
    first, both = (np.asarray(jax.jit(part.predict)(batch)) for part in (model.first(1), model))
    expected = stats.kurtosis(np.stack([first, both - first], axis=1), axis=0)
    np.testing.assert_allclose(values["excess"][0, 0, 0], expected, rtol=1e-3, atol=1e-3)
