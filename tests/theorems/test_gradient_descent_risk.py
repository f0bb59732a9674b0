"""t steps of descent with one step size are a sum over the modes of H, for all t at once, and its
risk given X is a sum over the spectrum of H.

ŷ_t = Σ_k c_k (1 - (1 - ηκ_k)^t)/κ_k, for steps that diverge too; derived here. For the risk E wwᵀ
is a multiple of I. docs/theory, "Descent is a spectral filter", "The risk of descent".
"""

import jax
import jax.numpy as jnp
import numpy as np

from draws import draw_prompt, draw_rotation, jit_numpy, relative_error, seed_and, seeds, sizes
from lsa_lab import estimators
from lsa_lab.models import constructions, linear_attention, trace
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.theory import risk

NOISE_VAR, STEPS = 0.5, 30
largest_step = jit_numpy(estimators.largest_step)
stated_risks = jit_numpy(risk.gradient_descent, static_argnums=2)


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
    step_sizes = np.array([share, 0.5]) * 2 * largest_step(prompt.x)  # 1 is where descent diverges
    for size, stated in zip(step_sizes, closed_form(prompt, step_sizes), strict=True):
        assert relative_error(stated, loop(prompt, np.full(STEPS, size))) < 1e-10


def test_control_a_step_size_that_changes_is_no_such_sum():
    prompt = draw_prompt(np.random.default_rng(0), 5, 3)
    sizes = 0.4 * largest_step(prompt.x) * np.array([1.0, 0.5])
    changing = sizes[0] * np.linspace(0.5, 1.5, STEPS)
    assert relative_error(closed_form(prompt, sizes)[0], loop(prompt, changing)) > 1e-2


@jit_numpy
def network_risks(x, step_sizes, weights):  # [L+1], the mean over w in the rows of ``weights``
    n, d = x.shape
    params = constructions.gradient_descent(step_sizes, d)

    def estimates(y):  # [L+1, d], linear in y, coordinate by coordinate
        def path(x_query):
            prompt = Prompt(x, y, x_query, jnp.zeros(()))
            return trace.layer_predictions(linear_attention.forward(params, tokens(prompt)))

        return jax.vmap(path, out_axes=1)(jnp.eye(d))

    signal = jax.vmap(estimates)(weights @ x.T) - weights[:, None]
    noise = jax.vmap(estimates)(jnp.eye(n))
    return (signal**2).sum((0, 2)) / d + NOISE_VAR * (noise**2).sum((0, 2))


@sizes
@seeds
def test_gradient_descent_given_x_costs_its_formula(n, d, seed):
    rng = np.random.default_rng(seed)
    x, step_sizes = rng.normal(size=(n, d)), rng.uniform(0.0, 0.4, 5)
    values, vectors = np.linalg.eigh(x.T @ x / n)
    stated = stated_risks(values, step_sizes, n, NOISE_VAR, 2.0)
    exact = network_risks(x, step_sizes, np.sqrt(2.0) * draw_rotation(rng, d))
    np.testing.assert_allclose(exact, stated, rtol=1e-10)
    if d > 1:  # Control: all w along the steepest direction
        other = network_risks(x, step_sizes, np.sqrt(2.0) * np.tile(vectors[:, -1], (d, 1)))
        assert np.abs(other / stated - 1)[1:].max() > 1e-6
