"""t steps of descent with one step size are a sum over the modes of H, for all t at once.

ŷ_t = Σ_k c_k (1 - (1 - ηκ_k)^t)/κ_k, for steps that diverge too; derived here.
docs/theory, "Descent is a spectral filter".
"""

import jax.numpy as jnp
import numpy as np

from draws import draw_prompt, jit_numpy, relative_error, seed_and, sizes
from lsa_lab import estimators

STEPS = 30
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


@sizes
@seed_and(share=(0.05, 1.2))
def test_the_sum_over_modes_is_the_loop(n, d, seed, share):
    prompt = draw_prompt(np.random.default_rng(seed), n, d)
    step_sizes = np.array([share, 0.5]) * limit(prompt)
    for size, stated in zip(step_sizes, closed_form(prompt, step_sizes), strict=True):
        assert relative_error(stated, loop(prompt, np.full(STEPS, size))) < 1e-10


def test_control_a_step_size_that_changes_is_no_such_sum():
    prompt = draw_prompt(np.random.default_rng(0), 5, 3)
    size = 0.2 * limit(prompt)
    changing = size * np.linspace(0.5, 1.5, STEPS)
    assert relative_error(closed_form(prompt, size[None])[0], loop(prompt, changing)) > 1e-2
