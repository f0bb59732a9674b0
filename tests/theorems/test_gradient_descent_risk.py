"""The risk of gradient descent given X is a sum over the spectrum of H.

E wwᵀ is a multiple of I. docs/theory, "The risk of descent".
"""

import jax
import jax.numpy as jnp
import numpy as np

from draws import draw_rotation, jit_numpy, seeds, sizes
from lsa_lab.models import constructions, linear_attention, trace
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.theory import risk

NOISE_VAR = 0.5
stated_risks = jit_numpy(risk.gradient_descent, static_argnums=2)


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
