"""What preprocess-then-optimise is, and what it does not notice (derived here; THEORY II.1.6).

Identities of the algorithm that is modelled on Chen et al. 2408.04532: it is gradient descent with
preconditioner diag(r²), its first step is η r³, it scales, and it cannot tell signed permutations
of coordinates apart, but rotations it can.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsa_lab.estimators import (
    mixed_gradient_descent,
    preprocessed_gradient_descent,
    preprocessed_step_limit,
)
from lsa_lab.prompts import Prompt

STEPS = 40
SHAPES = [(12, 4), (5, 8)]
SEEDS = st.integers(0, 2**32 - 1)
run = jax.jit(preprocessed_gradient_descent, static_argnums=2, static_argnames="normalise")
mix = jax.jit(lambda prompt, *steps: mixed_gradient_descent(prompt, *steps) @ prompt.x_query)
limit = jax.jit(preprocessed_step_limit, static_argnames="normalise")


@partial(jax.jit, static_argnames=("n", "d"))
def draw(seed, n, d):
    keys = jax.random.split(jax.random.key(seed), 3)
    x = jax.random.normal(keys[0], (n + 1, d))
    y = x @ jax.random.normal(keys[1], (d,)) + jax.random.normal(keys[2], (n + 1,))
    return Prompt(x[:-1], y[:-1], x[-1], y[-1])


def change(seed, n, d, transform):
    """The largest change of the predictions when the prompt goes through ``transform``."""
    prompt = draw(seed, n, d)
    step_size = 0.5 * limit(prompt, normalise=True)
    before = run(prompt, step_size, STEPS, normalise=True)
    after = run(transform(prompt), step_size, STEPS, normalise=True)
    return np.max(np.abs(after - before)) / (1 + np.max(np.abs(before)))


def turn(prompt, matrix):
    return prompt.replace(x=prompt.x @ matrix.T, x_query=matrix @ prompt.x_query)


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize(("n", "d"), SHAPES)
@given(seed=SEEDS, share=st.floats(0.1, 0.9))
def test_it_is_descent_preconditioned_by_squared_correlations(n, d, normalise, seed, share):
    prompt = draw(seed, n, d)
    step_size = share * limit(prompt, normalise=normalise)
    predictions = run(prompt, step_size, STEPS, normalise=normalise)
    x, y, query = np.array(prompt.x), np.array(prompt.y), np.array(prompt.x_query)
    r = x.T @ y / n
    r = r / np.linalg.norm(r) if normalise else r
    weights, stated = np.zeros(d), [0.0]
    for _ in range(STEPS):
        weights = weights + float(step_size) * r**2 * (x.T @ (y - x @ weights)) / n
        stated.append(weights @ query)
    np.testing.assert_allclose(predictions, stated, atol=1e-10 * (1 + np.max(np.abs(stated))))
    cubic = float(step_size) * np.sum(r**2 * (x.T @ y / n) * query)
    assert abs(predictions[1] - cubic) < 1e-10 * (1 + abs(cubic))


@pytest.mark.parametrize(("n", "d"), SHAPES)
@given(seed=SEEDS)
def test_order_copies_signs_and_names_of_coordinates_do_not_matter(n, d, seed):
    key = jax.random.key(seed)
    order = jax.random.permutation(key, n)
    signed = jnp.eye(d)[jax.random.permutation(key, d)]
    signed = signed * jnp.where(jax.random.bernoulli(key, 0.5, (d,)), -1.0, 1.0)[None]
    assert change(seed, n, d, lambda p: p.replace(x=p.x[order], y=p.y[order])) < 1e-10
    assert change(seed, n, d, lambda p: turn(p, signed)) < 1e-10
    copies = change(seed, n, d, lambda p: p.replace(x=jnp.tile(p.x, (3, 1)), y=jnp.tile(p.y, 3)))
    assert copies < 1e-10


@pytest.mark.parametrize(("n", "d"), SHAPES)
@given(seed=SEEDS, scale=st.floats(0.3, 3.0))
def test_scales_of_labels_and_covariates_are_scales_of_the_step(n, d, seed, scale):
    prompt = draw(seed, n, d)
    step_size = 0.5 * limit(prompt)
    predictions = run(prompt, step_size, STEPS)
    labels = run(prompt.replace(y=scale * prompt.y), step_size / scale**2, STEPS)
    covariates = turn(prompt, scale * jnp.eye(d))
    close = {"atol": 1e-10 * (1 + np.max(np.abs(predictions)))}
    np.testing.assert_allclose(labels / scale, predictions, **close)
    np.testing.assert_allclose(run(covariates, step_size / scale**4, STEPS), predictions, **close)


def test_it_notices_a_rotation():
    rotation = jnp.linalg.qr(jax.random.normal(jax.random.key(1), (4, 4)))[0]
    assert change(0, 12, 4, lambda prompt: turn(prompt, rotation)) > 1e-2


@pytest.mark.parametrize(("n", "d"), SHAPES)
@given(seed=SEEDS, scale=st.floats(0.3, 3.0))
def test_of_the_mixed_rule_the_raw_part_alone_misses_a_rotation(n, d, seed, scale):
    prompt, key = draw(seed, n, d), jax.random.key(seed)
    none, raw = np.zeros(5), np.full(5, 0.2)
    rotation = jnp.linalg.qr(jax.random.normal(key, (d, d)))[0]
    signed = jnp.eye(d)[jax.random.permutation(key, d)] * -1.0
    before = mix(prompt, raw, raw)
    close = {"atol": 1e-10 * (1 + np.max(np.abs(before)))}
    np.testing.assert_allclose(mix(turn(prompt, signed), raw, raw), before, **close)
    turned = turn(prompt, rotation)
    np.testing.assert_allclose(mix(turned, raw, none), mix(prompt, raw, none), **close)
    assert np.max(np.abs(mix(turned, raw, raw) - before)) > 1e-6  # Control
    louder = prompt.replace(y=scale * prompt.y)
    np.testing.assert_allclose(mix(louder, raw, raw / scale**2) / scale, before, **close)
