"""Distances between layers and algorithms vanish where the layers are the algorithm."""

import functools

import jax
import numpy as np
import pytest

from draws import draw_prompt, jit_numpy, preconditioned
from lsa_lab import estimators, prompts
from lsa_lab.analyses import alignment, implicit_gd
from lsa_lab.models import constructions, linear_attention, trace

N, D, B = 10, 3, 5
STEPS, GAMMAS = np.array([0.3, 0.5, 0.2]), np.array([0.1, 0.0, 0.2])
MATRICES = 0.3 * np.random.default_rng(2).normal(size=(3, D, D))
PROMPTS = [draw_prompt(np.random.default_rng(seed), N, D) for seed in range(B)]
BATCH = jax.tree.map(lambda *leaves: np.stack(leaves), *PROMPTS)
X, Y = PROMPTS[0].x, PROMPTS[0].y
descent, descent_plus_plus = (
    jit_numpy(construct, static_argnames="d")
    for construct in (constructions.gradient_descent, constructions.gradient_descent_plus_plus)
)
MODELS = {  # a path, its parameters, the layers
    "descent": (estimators.gradient_descent, STEPS, descent(STEPS, d=D)),
    "descent++": (
        *(alignment.descent_plus_plus, (STEPS, GAMMAS)),
        descent_plus_plus(STEPS, GAMMAS, d=D),
    ),
    "preconditioned": (
        *(alignment.preconditioned_descent, MATRICES),
        preconditioned(MATRICES.swapaxes(1, 2)),
    ),
}


@functools.partial(jit_numpy, static_argnums=1)
@functools.partial(jax.vmap, in_axes=(None, None, None, 0))
def compare(params, path, settings, prompt):
    run = linear_attention.forward
    predictions = trace.layer_predictions(run(params, prompts.tokens(prompt)))
    weights = implicit_gd.implied_weights(run, params, prompt)
    steps = path(prompt, settings)
    return alignment.distances(predictions, weights, steps, prompt.x_query), predictions[-1]


@pytest.mark.parametrize("name", MODELS)
def test_a_construction_is_at_no_distance_from_its_algorithm_to_which_a_fit_leads(name):
    path, settings, params = MODELS[name]
    found, targets = compare(params, path, settings, BATCH)
    diagonal = np.arange(len(STEPS) + 1)
    assert found.prediction.shape == found.cosine.shape == (B, 4, 4)
    assert found.prediction[:, diagonal, diagonal].max() < 1e-10
    assert found.sensitivity[:, diagonal, diagonal].max() < 1e-10
    np.testing.assert_allclose(found.cosine[:, diagonal, diagonal][:, 1:], 1, atol=1e-10)
    assert (found.cosine[:, 0] == 0).all()
    longer = jax.tree.map(lambda leaf: 1.05 * leaf, settings)  # Control
    assert compare(params, path, longer, BATCH)[0].sensitivity[:, 3, 3].min() > 1e-4
    objective = jit_numpy(jax.value_and_grad(functools.partial(alignment.mismatch, path)))
    value, slope = objective(settings, BATCH, targets)
    assert value < 1e-20
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(slope)) < 1e-10
    assert objective(settings, BATCH, targets + 1)[0] > 0.5


def test_newton_squares_what_is_left_of_every_eigenvalue():
    path = jit_numpy(alignment.newton, static_argnums=1)(PROMPTS[0], 12, 1.5)
    values, vectors = np.linalg.eigh(X.T @ X / N)
    left = 1 - 1.5 * values**2 / (values**2).sum()
    moment = vectors.T @ (X.T @ Y / N)
    expected = [vectors @ ((1 - left**2 ** (t - 1)) / values * moment) for t in range(1, 13)]
    np.testing.assert_allclose(path[1:], expected, atol=1e-10)
    np.testing.assert_allclose(path[-1], np.linalg.lstsq(X, Y)[0], atol=1e-8)
    assert not path[0].any()
    assert not alignment.newton(PROMPTS[0].replace(x=0 * X), 3).any()
    with pytest.raises(ValueError, match="num_steps = 0"):
        alignment.newton(PROMPTS[0], 0)


def test_the_ridge_path_goes_from_nothing_to_least_squares():
    path = jit_numpy(alignment.ridge_path)(PROMPTS[0], np.log([1e12, 0.1, 1e-12]))
    middle = np.linalg.solve(X.T @ X / N + 0.1 * np.eye(D), X.T @ Y / N)
    np.testing.assert_allclose(path, [0 * middle, middle, np.linalg.lstsq(X, Y)[0]], atol=1e-10)
