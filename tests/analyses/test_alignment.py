"""Distances between layers and algorithms vanish where the layers are the algorithm."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import estimators, prompts
from lsa_lab.analyses import alignment, implicit_gd
from lsa_lab.models import constructions, linear_attention, trace
from lsa_lab.prompts import Prompt

N, D, B = 10, 3, 5
STEPS, GAMMAS = np.array([0.3, 0.5, 0.2]), np.array([0.1, 0.0, 0.2])
MATRICES = 0.3 * np.random.default_rng(2).normal(size=(3, D, D))
descent, descent_plus_plus = (
    jax.jit(construct, static_argnames="d")
    for construct in (constructions.gradient_descent, constructions.gradient_descent_plus_plus)
)
MODELS = {
    "descent": (descent(STEPS, d=D), estimators.gradient_descent, STEPS),
    "descent++": (
        descent_plus_plus(STEPS, GAMMAS, d=D),
        alignment.descent_plus_plus,
        (STEPS, GAMMAS),
    ),
    "preconditioned": (
        jax.jit(constructions.preconditioned)(MATRICES.swapaxes(1, 2)),
        alignment.preconditioned_descent,
        MATRICES,
    ),
}


@functools.cache
def batch():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s) for s in ((B, N, D), (B, N), (B, D), (B,))]
    return Prompt(*arrays)


@functools.partial(jax.jit, static_argnums=1)
@functools.partial(jax.vmap, in_axes=(None, None, None, 0))
def compare(params, path, settings, prompt):
    forward = linear_attention.forward
    predictions = trace.layer_predictions(forward(params, prompts.tokens(prompt)))
    weights = implicit_gd.implied_weights(forward, params, prompt)
    return alignment.distances(predictions, weights, path(prompt, settings), prompt.x_query)


@pytest.mark.parametrize("name", MODELS)
def test_a_construction_is_at_no_distance_from_its_algorithm(name):
    params, path, settings = MODELS[name]
    found = jax.device_get(compare(params, path, settings, batch()))
    diagonal = np.arange(len(STEPS) + 1)
    assert found.prediction.shape == found.cosine.shape == (B, 4, 4)
    assert found.prediction[:, diagonal, diagonal].max() < 1e-10
    assert found.sensitivity[:, diagonal, diagonal].max() < 1e-10
    np.testing.assert_allclose(found.cosine[:, diagonal, diagonal][:, 1:], 1, atol=1e-10)
    assert (found.cosine[:, 0] == 0).all()
    longer = jax.tree.map(lambda leaf: 1.05 * leaf, settings)  # Control
    other = jax.device_get(compare(params, path, longer, batch()))
    assert other.sensitivity[:, 3, 3].min() > 1e-4


@pytest.mark.parametrize("name", MODELS)
def test_fitting_a_model_to_its_algorithm_ends_at_its_settings(name):
    params, path, settings = MODELS[name]
    run = jax.vmap(lambda prompt: linear_attention.forward(params, prompts.tokens(prompt)))
    targets = jax.jit(lambda many: jax.vmap(trace.predict)(run(many)))(batch())
    objective = jax.jit(jax.value_and_grad(functools.partial(alignment.mismatch, path)))
    value, slope = objective(settings, batch(), targets)
    assert value < 1e-20
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(slope)) < 1e-10
    assert objective(settings, batch(), targets + 1)[0] > 0.5


def test_newton_squares_what_is_left_of_every_eigenvalue():
    prompt = jax.tree.map(lambda leaf: leaf[0], batch())
    path = jax.jit(alignment.newton, static_argnums=1)(prompt, 12, 1.5)
    values, vectors = np.linalg.eigh(prompt.x.T @ prompt.x / N)
    left = 1 - 1.5 * values**2 / (values**2).sum()
    moment = vectors.T @ (prompt.x.T @ prompt.y / N)
    for t in range(1, 13):
        expected = vectors @ ((1 - left**2 ** (t - 1)) / values * moment)
        np.testing.assert_allclose(path[t], expected, atol=1e-10)
    np.testing.assert_allclose(path[-1], estimators.ols(prompt), atol=1e-8)
    assert not path[0].any()
    assert not alignment.newton(prompt.replace(x=0 * prompt.x), 3).any()
    with pytest.raises(ValueError, match="num_steps = 0"):
        alignment.newton(prompt, 0)


def test_the_ridge_path_goes_from_nothing_to_least_squares():
    prompt = jax.tree.map(lambda leaf: leaf[0], batch())
    path = jax.jit(alignment.ridge_path)(prompt, jnp.log(jnp.array([1e12, 0.1, 1e-12])))
    np.testing.assert_allclose(path[0], 0, atol=1e-10)
    np.testing.assert_allclose(path[1], estimators.ridge(prompt, 0.1), atol=1e-10)
    np.testing.assert_allclose(path[2], estimators.ols(prompt), atol=1e-10)
