"""t steps of descent with one step size, for all t at once, are a sum over the modes of H.

ŷ_t = Σ_k c_k (1 - (1 - ηκ_k)^t)/κ_k (derived here; docs/theory, "Descent is a spectral filter"),
with step sizes beyond 1/κ_k too, where a direction oscillates, and beyond 2/κ_k, where it diverges.
Sides: the closed form; the loop, on raw covariates and, with x̃ = Rx, on preprocessed ones.
"""

import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_prompt, jit_numpy, relative_error, seed_and
from lsa_lab import estimators

STEPS = 30
shapes = pytest.mark.parametrize(("n", "d"), [(12, 4), (5, 8)])  # the second has κ_k = 0
limit = jit_numpy(
    lambda prompt: 2 * estimators.largest_step(prompt.x)
)  # beyond it descent diverges


@jit_numpy
def closed_form(prompt, step_sizes):  # -> [E, STEPS+1]
    modes = estimators.descent_modes(prompt)
    return estimators.descent_predictions(*modes, step_sizes, jnp.arange(STEPS + 1))


@jit_numpy
def loop(prompt, step_sizes):  # [STEPS] -> [STEPS+1]
    return estimators.gradient_descent(prompt, step_sizes) @ prompt.x_query


@jit_numpy
def preprocessed(prompt, share):  # -> the step size, [STEPS+1]
    size = share * estimators.preprocessed_step_limit(prompt)
    return size, estimators.preprocessed_gradient_descent(prompt, size, STEPS)


@shapes
@seed_and(share=(0.05, 1.2))
def test_the_sum_over_modes_is_the_loop(n, d, seed, share):
    prompt = draw_prompt(np.random.default_rng(seed), n, d)
    sizes = np.array([share, 0.5]) * limit(prompt)
    for size, stated in zip(sizes, closed_form(prompt, sizes), strict=True):
        assert relative_error(stated, loop(prompt, np.full(STEPS, size))) < 1e-10


@shapes
@seed_and(share=(0.05, 0.95))
def test_with_preprocessed_covariates_it_is_preprocessed_descent(n, d, seed, share):
    prompt = draw_prompt(np.random.default_rng(seed), n, d)
    r = prompt.x.T @ prompt.y / n
    weighed = prompt.replace(x=prompt.x * r[None], x_query=prompt.x_query * r)
    size, path = preprocessed(prompt, share)
    assert relative_error(closed_form(weighed, size[None])[0], path) < 1e-10


def test_control_a_step_size_that_changes_is_no_such_sum():
    prompt = draw_prompt(np.random.default_rng(0), 12, 4)
    size = 0.2 * limit(prompt)
    changing = size * np.linspace(0.5, 1.5, STEPS)
    assert relative_error(closed_form(prompt, size[None])[0], loop(prompt, changing)) > 1e-2
