"""Many heads, then one a layer, are preprocess-then-optimise (derived here).

docs/theory, "The preprocessing construction". Sides: a transformer with linear attention and a
read-in; the algorithm, descent from zero with preconditioner α I + β FᵀF, where row g of F holds
r_j = (Xᵀy/n)_j for the coordinates of head g. With a head for each coordinate FᵀF = diag(r²), and a
head that is masked is a coordinate lost, if no raw ones are read beside it.
"""

import dataclasses
from functools import partial

import numpy as np
import pytest

import draws
from draws import jit_numpy, relative_error, seeds
from lsa_lab import estimators
from lsa_lab.models import constructions, trace, transformer
from lsa_lab.prompts import tokens

STEPS = 4
SIZES = pytest.mark.parametrize(("n", "d", "heads"), [(12, 4, 4), (5, 8, 3)])


def draw(seed, n, d):
    """A prompt, step sizes and raw step sizes."""
    rng = np.random.default_rng(seed)
    return draws.draw_prompt(rng, n, d), *rng.uniform(0, 0.5, (2, STEPS))


@partial(jit_numpy, static_argnames=("heads", "keys"))
def network(prompt, heads, step_sizes, raw_step_sizes, mask=None, keys="demonstrations"):
    d = prompt.x.shape[1]
    params, config = constructions.preprocess_then_optimise(d, heads, step_sizes, raw_step_sizes)
    config = dataclasses.replace(config, keys=keys)
    return trace.layer_predictions(transformer.forward(params, tokens(prompt), config, mask))


def algorithm(prompt, heads, step_sizes, raw_step_sizes):
    x, y, query = prompt.x, prompt.y, prompt.x_query
    n, d = x.shape
    features = np.zeros((heads, d))
    for g, coordinates in enumerate(np.array_split(np.arange(d), heads)):
        features[g, coordinates] = (x.T @ y / n)[coordinates]
    weights, path = np.zeros(d), [0.0, 0.0]
    for alpha, beta in zip(raw_step_sizes, step_sizes, strict=True):
        matrix = alpha * np.eye(d) + beta * features.T @ features
        weights = weights + matrix @ x.T @ (y - x @ weights) / n
        path.append(weights @ query)
    return np.array(path)


@SIZES
@seeds
def test_every_layer_is_a_step_of_the_mixed_algorithm(n, d, heads, seed):
    prompt, betas, alphas = draw(seed, n, d)
    for raw in (alphas, 0 * alphas):
        stated = algorithm(prompt, heads, betas, raw)
        assert relative_error(network(prompt, heads, betas, raw), stated) < 1e-10


preprocessed = jit_numpy(estimators.preprocessed_gradient_descent, static_argnums=2)
mixed = jit_numpy(estimators.mixed_gradient_descent)


@seeds
def test_with_a_head_for_each_coordinate_it_is_the_estimator(seed):
    prompt, betas, alphas = draw(seed, 12, 4)
    same = np.full(STEPS, betas[0])
    stated = preprocessed(prompt, betas[0], STEPS)
    assert relative_error(network(prompt, 4, same, None)[1:], stated) < 1e-10
    stated = mixed(prompt, alphas, betas) @ prompt.x_query
    assert relative_error(network(prompt, 4, betas, alphas)[1:], stated) < 1e-10


def test_control_a_query_among_the_keys_or_fewer_heads_run_another_algorithm():
    prompt, betas, alphas = draw(0, 12, 4)
    stated = algorithm(prompt, 4, betas, 0 * alphas)
    assert relative_error(network(prompt, 4, betas, None, keys="all"), stated) > 1e-3
    assert relative_error(network(prompt, 3, betas, None), stated) > 1e-3


def without_a_head(prompt, heads, betas, alphas):
    """The first head masked, against the algorithm with its coordinates deleted."""
    mask, x = np.ones((1 + STEPS, heads)), prompt.x.copy()
    mask[0, 0] = 0
    x[:, np.array_split(np.arange(x.shape[1]), heads)[0]] = 0
    rest = prompt.replace(x=x)
    masked = network(prompt, heads, betas, alphas, mask)
    return relative_error(masked, algorithm(rest, heads, betas, alphas))


@SIZES
@seeds
def test_masking_a_head_is_deleting_its_coordinates(n, d, heads, seed):
    prompt, betas, alphas = draw(seed, n, d)
    assert without_a_head(prompt, heads, betas, 0 * alphas) < 1e-10


def test_control_raw_coordinates_survive_a_masked_head():
    prompt, betas, alphas = draw(0, 12, 4)
    assert without_a_head(prompt, 4, betas, alphas) > 1e-3
