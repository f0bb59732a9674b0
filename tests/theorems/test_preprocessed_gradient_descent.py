"""Preprocess then optimise is gradient descent with preconditioner diag(r²), r = Xᵀy/n: its first
step is η r³, and scales of labels and covariates are scales of the step.

It sees coordinates up to order and sign: it notices a rotation, and nothing less. Papers: modelled
on A4. Derived here; docs/theory, "Preprocess then optimise".
"""

import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_prompt, draw_rotation, jit_numpy, relative_error, seed_and, seeds, sizes
from lsa_lab import estimators

STEPS = 40
run = jit_numpy(
    estimators.preprocessed_gradient_descent, static_argnums=2, static_argnames="normalise"
)
limit = jit_numpy(estimators.preprocessed_step_limit, static_argnames="normalise")


def errors(prompt, share, normalise=False, power=2):
    """The path against descent with preconditioner diag(|r|^power), and its first step."""
    (n, d), x, y, query = prompt.x.shape, prompt.x, prompt.y, prompt.x_query
    step_size, r = share * limit(prompt, normalise=normalise), x.T @ y / n
    path = run(prompt, step_size, STEPS, normalise=normalise)
    preconditioner = np.abs(r / np.linalg.norm(r) if normalise else r) ** power
    weights, stated = np.zeros(d), [0.0]
    for _ in range(STEPS):
        weights = weights + step_size * preconditioner * (x.T @ (y - x @ weights)) / n
        stated.append(weights @ query)
    cubic = step_size * np.sum(preconditioner * r * query)
    return relative_error(path, stated), relative_error(path[1], cubic)


@pytest.mark.parametrize("normalise", [False, True])
@sizes
@seed_and(share=(0.1, 0.9))
def test_it_is_descent_preconditioned_by_squared_correlations(n, d, normalise, seed, share):
    prompt = draw_prompt(np.random.default_rng(seed), n, d)
    assert max(errors(prompt, share, normalise)) < 1e-10


@pytest.mark.parametrize("power", [0, 1])
def test_control_descent_preconditioned_by_another_power_is_another_path(power):
    prompt = draw_prompt(np.random.default_rng(0), 12, 4)
    assert min(errors(prompt, 0.5, power=power)) > 1e-2


@jit_numpy
def mixed(prompt, share=1.0):
    """Five steps of the mixture; the preprocessed ones are a share of the raw ones."""
    steps = jnp.full(5, 0.2)
    return estimators.mixed_gradient_descent(prompt, steps, share * steps) @ prompt.x_query


def errors_under_scales(prompt, scale, powers):
    """The paths on scaled labels and on scaled covariates, with steps over scale^power."""
    step_size = 0.5 * limit(prompt)
    labels, covariates = (step_size / scale**power for power in powers)
    path, louder = run(prompt, step_size, STEPS), prompt.replace(y=scale * prompt.y)
    larger = prompt.replace(x=scale * prompt.x, x_query=scale * prompt.x_query)
    return [
        relative_error(run(louder, labels, STEPS) / scale, path),
        relative_error(run(larger, covariates, STEPS), path),
        relative_error(mixed(louder, 1 / scale ** powers[0]) / scale, mixed(prompt)),
    ]


@sizes
@seed_and(scale=(0.3, 3.0))
def test_scales_of_labels_and_covariates_are_scales_of_the_step(n, d, seed, scale):
    prompt = draw_prompt(np.random.default_rng(seed), n, d)
    assert max(errors_under_scales(prompt, scale, (2, 4))) < 1e-10


def test_control_other_powers_of_the_scale_are_other_paths():
    prompt = draw_prompt(np.random.default_rng(0), 12, 4)
    assert min(errors_under_scales(prompt, 0.5, (1, 2))[:2]) > 1e-2


def change(prompt, other, share=1.0):  # of the predictions of both algorithms
    paths = [run(p, 0.5 * limit(p, normalise=True), STEPS, normalise=True) for p in (prompt, other)]
    return relative_error(*paths), relative_error(mixed(other, share), mixed(prompt, share))


def turn(prompt, matrix):
    return prompt.replace(x=prompt.x @ matrix.T, x_query=matrix @ prompt.x_query)


@sizes
@seeds
def test_order_copies_signs_and_names_of_coordinates_do_not_matter(n, d, seed):
    rng = np.random.default_rng(seed)
    prompt, order = draw_prompt(rng, n, d), rng.permutation(n)
    signed = rng.permutation(np.eye(d)) * rng.choice([-1.0, 1.0], d)
    copies = prompt.replace(x=np.tile(prompt.x, (3, 1)), y=np.tile(prompt.y, 3))
    reordered = prompt.replace(x=prompt.x[order], y=prompt.y[order])
    for same in (copies, reordered, turn(prompt, signed)):
        assert max(change(prompt, same)) < 1e-10
    # Only the raw part of the mixture misses a rotation.
    assert change(prompt, turn(prompt, draw_rotation(rng, d)), 0.0)[1] < 1e-10


def test_control_preprocessing_notices_a_rotation():
    rng = np.random.default_rng(0)
    prompt = draw_prompt(rng, 12, 4)
    preprocessed_change, mixed_change = change(prompt, turn(prompt, draw_rotation(rng, 4)))
    assert preprocessed_change > 1e-2
    assert mixed_change > 1e-3
