"""Preprocess then optimise is gradient descent with preconditioner diag(r²), r = Xᵀy/n: its first
step is η r³, and scales of labels and covariates are scales of the step.

It sees coordinates up to order and sign: it notices a rotation, and nothing less. Papers: modelled
on A4. Derived here; docs/theory, "Preprocess then optimise".
"""

import numpy as np
import pytest

from draws import draw_prompt, draw_rotation, jit_numpy, relative_error, seed_and, seeds, two_sizes
from lsa_lab import estimators

STEPS = 40
run = jit_numpy(
    estimators.preprocessed_gradient_descent, static_argnums=2, static_argnames="normalise"
)
limit = jit_numpy(estimators.preprocessed_step_limit, static_argnames="normalise")
mix = jit_numpy(estimators.mixed_gradient_descent)


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
        run(other, step_size / scale**power, STEPS, normalise=False)
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
    paths = [run(p, 0.5 * limit(p, normalise=True), STEPS, normalise=True) for p in (prompt, other)]
    steps = np.full(5, 0.2)
    mixed = [mix(p, steps, share * steps) @ p.x_query for p in (prompt, other)]
    return relative_error(*paths), relative_error(*mixed)


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
