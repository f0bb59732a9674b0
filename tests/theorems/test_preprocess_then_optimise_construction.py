"""Many heads, then one a layer, are preprocess-then-optimise: descent from zero with preconditioner
α I + β FᵀF, where row g of F holds r_j = (Xᵀy/n)_j for the coordinates of head g.

With a head for each coordinate FᵀF = diag(r²), and masking a head deletes its coordinate, if no raw
ones are read beside it. Papers: A4. Derived here; docs/theory, "The preprocessing construction".
"""

import dataclasses
from functools import partial

import numpy as np
import pytest

from draws import draw_prompt, jit_numpy, relative_error, seeds
from lsa_lab import estimators
from lsa_lab.models import constructions, trace, transformer
from lsa_lab.prompts import tokens

STEPS = 4
mixed = jit_numpy(estimators.mixed_gradient_descent)


@partial(jit_numpy, static_argnames=("heads", "keys"))
def network(prompt, heads, step_sizes, raw_step_sizes, mask=None, keys="demonstrations"):
    d = prompt.x.shape[1]
    params, config = constructions.preprocess_then_optimise(d, heads, step_sizes, raw_step_sizes)
    config = dataclasses.replace(config, keys=keys)
    return trace.layer_predictions(transformer.forward(params, tokens(prompt), config, mask))


def run(prompt, heads, step_sizes, raw_step_sizes):
    x, y, query, (n, d) = prompt.x, prompt.y, prompt.x_query, prompt.x.shape
    groups = np.array_split(np.arange(d), heads)
    features = np.array([np.isin(np.arange(d), group) for group in groups]) * (x.T @ y / n)
    weights, path = np.zeros(d), [0.0, 0.0]
    for alpha, beta in zip(raw_step_sizes, step_sizes, strict=True):
        matrix = alpha * np.eye(d) + beta * features.T @ features
        weights = weights + matrix @ x.T @ (y - x @ weights) / n
        path.append(weights @ query)
    return np.array(path)


def draw(seed, n, d):  # a prompt, step sizes and raw step sizes
    rng = np.random.default_rng(seed)
    return draw_prompt(rng, n, d), *rng.uniform(0, 0.5, (2, STEPS))


def error(prompt, heads, betas, alphas, masked=0, **choices):
    """With the first head masked, the error from the algorithm with its coordinates deleted."""
    mask, x = np.ones((1 + STEPS, heads)), prompt.x.copy()
    mask[0, :masked] = 0
    x[:, np.array_split(np.arange(x.shape[1]), heads)[0][: masked * x.shape[1]]] = 0
    found = network(prompt, heads, betas, alphas, mask, **choices)
    return relative_error(found, run(prompt.replace(x=x), heads, betas, alphas))


@pytest.mark.parametrize(("n", "d", "heads"), [(5, 4, 4), (5, 8, 3)])
@seeds
def test_layers_are_mixed_steps_and_a_masked_head_deletes_coordinates(n, d, heads, seed):
    prompt, betas, alphas = draw(seed, n, d)
    assert error(prompt, heads, betas, alphas) < 1e-10
    assert error(prompt, heads, betas, 0 * alphas) < 1e-10
    assert error(prompt, heads, betas, 0 * alphas, masked=1) < 1e-10
    if heads == d:  # it is the estimator
        stated = run(prompt, heads, betas, alphas)[1:]
        assert relative_error(mixed(prompt, alphas, betas) @ prompt.x_query, stated) < 1e-10
    if heads == d and seed == 0:  # Control: a query that is a key, raw coordinates, fewer heads
        assert error(prompt, 4, betas, 0 * alphas, keys="all") > 1e-3
        assert error(prompt, 4, betas, alphas, masked=1) > 1e-3
        fewer = network(prompt, 3, betas, None)
        assert relative_error(fewer, run(prompt, 4, betas, 0 * alphas)) > 1e-3
