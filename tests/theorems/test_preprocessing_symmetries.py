"""Preprocessing knows coordinates up to order and sign: it notices a rotation, and nothing less.

Derived here; docs/theory, "Preprocess then optimise". Sides: the predictions of
preprocess-then-optimise, and of its mixture with plain descent, for a prompt whose coordinates are
permuted, turned over, copied or rotated; for the prompt as it was. Only the raw part of the mixture
misses a rotation.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import draws
from draws import jit_numpy, relative_error, seed_and, seeds
from lsa_lab import estimators

shapes = pytest.mark.parametrize(("n", "d"), [(12, 4), (5, 8)])


def draw(seed, n, d):
    """A prompt, an order of its demonstrations, a signed permutation and a rotation [d, d]."""
    rng = np.random.default_rng(seed)
    signed = rng.permutation(np.eye(d)) * rng.choice([-1.0, 1.0], d)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return draws.draw_prompt(rng, n, d), rng.permutation(n), signed, rotation


@jit_numpy
def preprocessed(prompt):
    step_size = 0.5 * estimators.preprocessed_step_limit(prompt, normalise=True)
    return estimators.preprocessed_gradient_descent(prompt, step_size, 40, normalise=True)


@jit_numpy
def mixed(prompt, share=1.0):
    """Five steps of the mixture; the preprocessed ones are a share of the raw ones."""
    steps = jnp.full(5, 0.2)
    return estimators.mixed_gradient_descent(prompt, steps, share * steps) @ prompt.x_query


def turn(prompt, matrix):
    return prompt.replace(x=prompt.x @ matrix.T, x_query=matrix @ prompt.x_query)


@shapes
@seeds
def test_order_copies_signs_and_names_of_coordinates_do_not_matter(n, d, seed):
    prompt, order, signed, _ = draw(seed, n, d)
    copies = prompt.replace(x=np.tile(prompt.x, (3, 1)), y=np.tile(prompt.y, 3))
    reordered = prompt.replace(x=prompt.x[order], y=prompt.y[order])
    for same in (copies, reordered, turn(prompt, signed)):
        assert relative_error(preprocessed(same), preprocessed(prompt)) < 1e-10
        assert relative_error(mixed(same), mixed(prompt)) < 1e-10


@shapes
@seeds
def test_the_raw_part_alone_misses_a_rotation(n, d, seed):
    prompt, _, _, rotation = draw(seed, n, d)
    assert relative_error(mixed(turn(prompt, rotation), 0.0), mixed(prompt, 0.0)) < 1e-10


def test_control_preprocessing_notices_a_rotation():
    prompt, _, _, rotation = draw(0, 12, 4)
    assert relative_error(preprocessed(turn(prompt, rotation)), preprocessed(prompt)) > 1e-2
    assert relative_error(mixed(turn(prompt, rotation)), mixed(prompt)) > 1e-3


@shapes
@seed_and(scale=(0.3, 3.0))
def test_the_scale_of_the_labels_is_a_scale_of_the_preprocessed_steps(n, d, seed, scale):
    prompt, *_ = draw(seed, n, d)
    louder = prompt.replace(y=scale * prompt.y)
    assert relative_error(mixed(louder, 1 / scale**2) / scale, mixed(prompt)) < 1e-10
