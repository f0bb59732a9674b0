"""The experiments on updates: noise of the size that is said, and updates that are the model's."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.descent.noisy_descent.config import PATHS
from experiments.descent.noisy_descent.paths import (
    ends,
    isotropic,
    token_root,
    updates_of,
    weights_of,
    white_moments,
)
from experiments.descent.update_sizes.compute import sizes_at_query
from experiments.models.model import Model, init
from experiments.models.regression import dense
from lsa_lab.models import linear_attention, moments
from lsa_lab.tasks.linear import LinearTask, sample
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
    sizes = jax.jit(sizes_at_query)(model, jnp.zeros_like(model.params.w_v), prompt)
    written = model.forward(prompt).heads.sum(1)[:, -1]
    np.testing.assert_allclose(sizes["written"], (written**2).sum(1), rtol=1e-10)
    np.testing.assert_allclose(sizes["change"], sizes["written"], rtol=1e-10)
