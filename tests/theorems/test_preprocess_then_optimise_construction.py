"""Many heads, then one a layer, are preprocess-then-optimise: descent from zero with preconditioner
α I + β FᵀF, where row g of F holds r_j = (Xᵀy/n)_j for the coordinates of head g.

With a head for each coordinate FᵀF = diag(r²), and masking a head deletes its coordinate, if no raw
ones are read beside it. The first step is η r³, and scales of labels and covariates are scales of
the step. It sees coordinates up to order and sign: it notices a rotation, and nothing less. Papers:
A4. Derived here; docs/theory, "The preprocessing construction", "Preprocess then optimise".
"""

import dataclasses
from functools import partial

import numpy as np
import pytest

from draws import draw_prompt, draw_rotation, jit_numpy, relative_error, seed_and, seeds, two_sizes
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


COUNT = 40
follow = jit_numpy(
    estimators.preprocessed_gradient_descent, static_argnums=2, static_argnames="normalise"
)
limit = jit_numpy(estimators.preprocessed_step_limit, static_argnames="normalise")


def errors(prompt, share, normalise=False, power=2):
    """The path against descent with preconditioner diag(|r|^power), and its first step."""
    (n, d), x, y, query = prompt.x.shape, prompt.x, prompt.y, prompt.x_query
    step_size, r = share * limit(prompt, normalise=normalise), x.T @ y / n
    path = follow(prompt, step_size, COUNT, normalise=normalise)
    preconditioner = np.abs(r / np.linalg.norm(r) if normalise else r) ** power
    weights, stated = np.zeros(d), [0.0]
    for _ in range(COUNT):
        weights = weights + step_size * preconditioner * (x.T @ (y - x @ weights)) / n
        stated.append(weights @ query)
    cubic = step_size * np.sum(preconditioner * r * query)
    return relative_error(path, stated), relative_error(path[1], cubic)


@pytest.mark.parametrize("normalise", [False, True])
@two_sizes
@seed_and(share=(0.1, 0.9))
def test_it_is_descent_preconditioned_by_squared_correlations(n, d, normalise, seed, share):
    prompt = draw_prompt(np.random.default_rng(seed), n, d)
    assert max(errors(prompt, share, normalise)) < 1e-10
    other = draw_prompt(np.random.default_rng(0), n, d)  # Control: another preconditioner
    assert min(errors(other, 0.5, power=0) + errors(other, 0.5, power=1)) > 1e-2


def errors_under_scales(prompt, scale, powers):
    """The paths on scaled labels and on scaled covariates, with steps over scale^power."""
    step_size, louder = 0.5 * limit(prompt, normalise=False), prompt.replace(y=scale * prompt.y)
    larger = prompt.replace(x=scale * prompt.x, x_query=scale * prompt.x_query)
    path, labels, covariates = (
        follow(other, step_size / scale**power, COUNT, normalise=False)
        for other, power in zip((prompt, louder, larger), (0, *powers), strict=True)
    )
    return relative_error(labels / scale, path), relative_error(covariates, path)


@two_sizes
@seed_and(scale=(0.3, 3.0))
def test_scales_of_labels_and_covariates_are_scales_of_the_step(n, d, seed, scale):
    prompt = draw_prompt(np.random.default_rng(seed), n, d)
    assert max(errors_under_scales(prompt, scale, (2, 4))) < 1e-10
    # Control: other powers.
    assert min(errors_under_scales(draw_prompt(np.random.default_rng(0), n, d), 0.5, (1, 2))) > 1e-2


def change(prompt, other, share=1.0):  # of the predictions of both algorithms
    paths = [
        follow(p, 0.5 * limit(p, normalise=True), COUNT, normalise=True) for p in (prompt, other)
    ]
    steps = np.full(5, 0.2)
    both = [mixed(p, steps, share * steps) @ p.x_query for p in (prompt, other)]
    return relative_error(*paths), relative_error(*both)


def turn(prompt, matrix):
    return prompt.replace(x=prompt.x @ matrix.T, x_query=matrix @ prompt.x_query)


@seeds
def test_order_copies_signs_and_names_of_coordinates_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    prompt, order = draw_prompt(rng, 5, 3), rng.permutation(5)
    signed = rng.permutation(np.eye(3)) * rng.choice([-1.0, 1.0], 3)
    copies = prompt.replace(x=np.tile(prompt.x, (3, 1)), y=np.tile(prompt.y, 3))
    reordered = prompt.replace(x=prompt.x[order], y=prompt.y[order])
    for same in (copies, reordered, turn(prompt, signed)):
        assert max(change(prompt, same)) < 1e-10
    turned = turn(prompt, draw_rotation(rng, 3))
    assert change(prompt, turned, 0.0)[1] < 1e-10  # only the raw part of the mixture misses it
    assert seed != 0 or min(change(prompt, turned)) > 1e-3  # Control
