"""Many heads, then one a layer, are preprocess-then-optimise (derived here; THEORY II.1.7, II.4).

The network: a transformer with linear attention and a read-in. The algorithm: descent from zero
with preconditioner α I + β FᵀF, where row g of F holds r_j = (Xᵀy/n)_j for the coordinates of head
g. With a head for each coordinate FᵀF = diag(r²), and a head that is masked is a coordinate lost.
"""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsa_lab import estimators
from lsa_lab.models import constructions, trace, transformer
from lsa_lab.prompts import Prompt, tokens

STEPS = 4
SEEDS = st.integers(0, 2**32 - 1)
SIZES = pytest.mark.parametrize(("n", "d", "heads"), [(12, 4, 4), (5, 8, 3), (9, 6, 1), (7, 5, 2)])


@partial(jax.jit, static_argnames=("n", "d"))
def draw(seed, n, d):
    keys = jax.random.split(jax.random.key(seed), 4)
    x = jax.random.normal(keys[0], (n + 1, d))
    y = x @ jax.random.normal(keys[1], (d,)) + jax.random.normal(keys[2], (n + 1,))
    step_sizes, raw_step_sizes = jax.random.uniform(keys[3], (2, STEPS), maxval=0.5)
    return Prompt(x[:-1], y[:-1], x[-1], y[-1]), step_sizes, raw_step_sizes


@partial(jax.jit, static_argnames=("heads", "keys"))
def network(prompt, heads, step_sizes, raw_step_sizes=None, mask=None, keys="demonstrations"):
    d = prompt.x.shape[1]
    params, config = constructions.preprocess_then_optimise(d, heads, step_sizes, raw_step_sizes)
    config = dataclasses.replace(config, keys=keys)
    return trace.layer_predictions(transformer.forward(params, tokens(prompt), config, mask))


def algorithm(prompt, heads, step_sizes, raw_step_sizes):
    x, y, query = np.array(prompt.x), np.array(prompt.y), np.array(prompt.x_query)
    n, d = x.shape
    features = np.zeros((heads, d))
    ends = np.cumsum([0] + [d // heads + (g < d % heads) for g in range(heads)])
    for g in range(heads):
        features[g, ends[g] : ends[g + 1]] = (x.T @ y / n)[ends[g] : ends[g + 1]]
    weights, path = np.zeros(d), [0.0, 0.0]
    for alpha, beta in zip(np.array(raw_step_sizes), np.array(step_sizes), strict=True):
        matrix = alpha * np.eye(d) + beta * features.T @ features
        weights = weights + matrix @ x.T @ (y - x @ weights) / n
        path.append(weights @ query)
    return np.array(path)


def departure(found, stated):
    return np.max(np.abs(found - stated)) / (1 + np.max(np.abs(stated)))


@SIZES
@given(seed=SEEDS)
def test_every_layer_is_a_step_of_the_mixed_algorithm(n, d, heads, seed):
    prompt, betas, alphas = draw(seed, n, d)
    stated = algorithm(prompt, heads, betas, alphas)
    assert departure(network(prompt, heads, betas, alphas), stated) < 1e-10
    stated = algorithm(prompt, heads, betas, 0 * alphas)
    assert departure(network(prompt, heads, betas), stated) < 1e-10


@pytest.mark.parametrize(("n", "d"), [(12, 4), (5, 8)])
@given(seed=SEEDS)
def test_with_a_head_for_each_coordinate_it_is_the_estimator(n, d, seed):
    prompt, betas, alphas = draw(seed, n, d)
    same = jnp.full(STEPS, betas[0])
    stated = estimators.preprocessed_gradient_descent(prompt, betas[0], STEPS)
    assert departure(network(prompt, d, same)[1:], stated) < 1e-10
    stated = estimators.mixed_gradient_descent(prompt, alphas, betas) @ prompt.x_query
    assert departure(network(prompt, d, betas, alphas)[1:], stated) < 1e-10


@SIZES
@given(seed=SEEDS)
def test_masking_a_head_is_deleting_its_coordinates(n, d, heads, seed):
    prompt, betas, alphas = draw(seed, n, d)
    mask = jnp.ones((1 + STEPS, heads)).at[0, 0].set(0)
    lost = np.arange(d) < d // heads + (d % heads > 0)
    without = prompt.replace(x=jnp.where(lost[None], 0, prompt.x))
    masked = network(prompt, heads, betas, None, mask)
    assert departure(masked, algorithm(without, heads, betas, 0 * alphas)) < 1e-10


def test_the_query_must_be_no_key_and_raw_coordinates_survive_a_masked_head():
    """Controls."""
    prompt, betas, alphas = draw(0, 12, 4)
    stated = algorithm(prompt, 4, betas, 0 * alphas)
    assert departure(network(prompt, 4, betas, keys="all"), stated) > 1e-3
    assert departure(network(prompt, 3, betas), stated) > 1e-3
    mask = jnp.ones((1 + STEPS, 4)).at[0, 0].set(0)
    without = prompt.replace(x=prompt.x.at[:, 0].set(0))
    masked = network(prompt, 4, betas, alphas, mask)
    assert departure(masked, algorithm(without, 4, betas, alphas)) > 1e-3
