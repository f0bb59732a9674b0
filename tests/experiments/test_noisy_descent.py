"""The experiments on updates: noise of the size that is said, and updates that are the model's."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from experiments.descent.noisy_descent.compute import measure_softmax, measure_task, moments_of
from experiments.descent.noisy_descent.config import PATHS, Config
from experiments.descent.noisy_descent.paths import (
    ends,
    token_root,
    weights_of,
    white_moments,
)
from experiments.models.model import Model, init
from experiments.models.specs import dense_spec
from lsa_lab.models import constructions, linear_attention, moments
from lsa_lab.tasks.linear import LinearTask, sample, sample_weights

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


def test_paths_without_noise_end_where_the_layer_maps_do():
    weights = jax.jit(ends, static_argnums=(3, 4))(jax.random.key(4), PARAMS, ROOT, N, 3)
    by_path = dict(zip(PATHS, weights, strict=True))
    population = jax.jit(lambda: weights_of(moments.layer_maps(PARAMS, ROOT @ ROOT.T)[-1]))()
    np.testing.assert_allclose(by_path["no noise"], np.stack([population] * 3), rtol=1e-10)
    assert np.abs(by_path["Eq. 4"] - population[None]).min() > 1e-6


def test_kurtosis_and_the_statistic_are_those_of_scipy():
    values = np.random.default_rng(1).exponential(size=(40, 3))
    measured = moments_of(jnp.asarray(values))
    np.testing.assert_allclose(measured["excess"], stats.kurtosis(values, axis=0))
    expected = [stats.jarque_bera(column).statistic for column in values.T]
    np.testing.assert_allclose(measured["statistic"], expected)


def test_one_covariate_without_noise_gives_the_kurtosis_of_chi_squared():
    """R·G = x_query w (1/n) Σ x_i²: the excess kurtosis is 12/n, the share of noise 2/(n + 2)."""
    params = constructions.gradient_descent(jnp.array([0.5]), 1)
    measure = jax.jit(partial(measure_task, n=N, config=Config(prompts=20_000), noise_std=0.0))
    values = measure(jax.random.key(9), params)
    np.testing.assert_allclose(values["closed"][0], 12 / N, rtol=1e-10)
    np.testing.assert_allclose(values["excess"][0, 0], 12 / N, rtol=0.2)
    np.testing.assert_allclose(values["share"], [2 / (N + 2)], rtol=0.03)


SPEC = dense_spec(
    "softmax", D, N, 2, key_width=3, training=dict(steps=1, batch=1, learning_rate=1.0, seeds=1)
)
FEW = Config(prompts=6, tasks=2)


def test_what_softmax_layers_add_is_the_difference_of_their_answers():
    params = jax.jit(init, static_argnums=0)(SPEC, jax.random.key(12))
    params = jax.tree.map(lambda leaf: np.asarray(leaf, float)[None, None], params)
    key = jax.random.key(13)
    softmax = jax.tree.map(lambda leaf: leaf.astype(np.float32), params)
    values = jax.jit(partial(measure_softmax, config=FEW, spec=SPEC))(key, softmax)
    key_task, key_query, key_prompts = jax.random.split(jax.random.split(key, (1, 2))[0, 0], 3)
    task = LinearTask(N, D, dtype=jnp.float32)
    same = task.replace(prior_mean=sample_weights(key_task, task), weight_std=0.0)
    batch = jax.jit(jax.vmap(partial(sample, task=same)))(jax.random.split(key_prompts, 6))
    query = np.asarray(jax.random.normal(key_query, (D,), jnp.float32))
    batch = batch.replace(x_query=np.stack([query] * 6))
    batch = jax.tree.map(lambda leaf: np.asarray(leaf, float), batch)
    model = Model(SPEC, jax.tree.map(lambda leaf: leaf[0, 0], params))
    first, both = (np.asarray(jax.jit(part.predict)(batch)) for part in (model.first(1), model))
    expected = stats.kurtosis(np.stack([first, both - first], axis=1), axis=0)
    np.testing.assert_allclose(values["excess"][0, 0, 0], expected, rtol=1e-3, atol=1e-3)
