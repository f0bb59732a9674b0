"""Preprocess then optimise is gradient descent with preconditioner diag(r²), r = Xᵀy/n.

Modelled on Chen et al. 2408.04532 (derived here; docs/theory, "Preprocess then optimise"): its
first step is η r³, and scales of labels and covariates are scales of the step. Sides: the
estimator; that descent in NumPy, and the estimator on a scaled prompt with the step that undoes the
scale.
"""

import numpy as np
import pytest

from draws import draw_prompt, jit_numpy, seed_and
from lsa_lab.estimators import preprocessed_gradient_descent, preprocessed_step_limit

STEPS = 40
shapes = pytest.mark.parametrize(("n", "d"), [(12, 4), (5, 8)])
run = jit_numpy(preprocessed_gradient_descent, static_argnums=2, static_argnames="normalise")
limit = jit_numpy(preprocessed_step_limit, static_argnames="normalise")


def departures(seed, n, d, share, normalise, power=2):
    """The path against descent with preconditioner diag(|r|^power), and its first step."""
    prompt = draw_prompt(np.random.default_rng(seed), n, d)
    step_size = share * limit(prompt, normalise=normalise)
    path = run(prompt, step_size, STEPS, normalise=normalise)
    x, y, query = prompt.x, prompt.y, prompt.x_query
    r = x.T @ y / n
    preconditioner = np.abs(r / np.linalg.norm(r) if normalise else r) ** power
    weights, stated = np.zeros(d), [0.0]
    for _ in range(STEPS):
        weights = weights + step_size * preconditioner * (x.T @ (y - x @ weights)) / n
        stated.append(weights @ query)
    cubic = step_size * np.sum(preconditioner * r * query)
    errors = np.abs(path - stated).max() / (1 + np.abs(stated).max()), abs(path[1] - cubic)
    return errors[0], errors[1] / (1 + abs(cubic))


@pytest.mark.parametrize("normalise", [False, True])
@shapes
@seed_and(share=(0.1, 0.9))
def test_it_is_descent_preconditioned_by_squared_correlations(n, d, normalise, seed, share):
    assert max(departures(seed, n, d, share, normalise)) < 1e-10


@pytest.mark.parametrize("power", [0, 1])
def test_control_descent_preconditioned_by_another_power_is_another_path(power):
    assert min(departures(0, 12, 4, 0.5, False, power)) > 1e-2


def scaled(seed, n, d, scale, powers):
    """The paths on scaled labels and on scaled covariates, with steps over scale^power."""
    prompt = draw_prompt(np.random.default_rng(seed), n, d)
    step_size = 0.5 * limit(prompt)
    path = run(prompt, step_size, STEPS)
    labels = run(prompt.replace(y=scale * prompt.y), step_size / scale ** powers[0], STEPS) / scale
    larger = prompt.replace(x=scale * prompt.x, x_query=scale * prompt.x_query)
    covariates = run(larger, step_size / scale ** powers[1], STEPS)
    size = 1 + np.abs(path).max()
    return [np.abs(other - path).max() / size for other in (labels, covariates)]


@shapes
@seed_and(scale=(0.3, 3.0))
def test_scales_of_labels_and_covariates_are_scales_of_the_step(n, d, seed, scale):
    assert max(scaled(seed, n, d, scale, (2, 4))) < 1e-10


def test_control_other_powers_of_the_scale_are_other_paths():
    assert min(scaled(0, 12, 4, 0.5, (1, 2))) > 1e-2
