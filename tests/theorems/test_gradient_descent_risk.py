"""The risk of gradient descent given X is a sum over the spectrum of H.

docs/theory, "The risk of descent". Sides: the network that runs it, on labels that span signal and
noise; the closed form. Hypothesis: E wwᵀ is a multiple of I.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import seeds
from lsa_lab.models import constructions, linear_attention, trace
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.theory import risk

NOISE_VAR = 0.5
risks_of_descent = jax.jit(risk.gradient_descent, static_argnums=2)


@jax.jit
def network_path_risks(x, step_sizes, weights):  # [L+1]
    """|w|² averaged over the rows of ``weights``, and σ² over all noise, through the network.

    Its predictions are linear in y: the labels Xw of each w and each unit vector of noise give both
    parts of E |ŵ - w|² exactly, coordinate by coordinate through x_query = e_k.
    """
    n, d = x.shape
    params = constructions.gradient_descent(step_sizes, d)

    def estimates(y):  # [L+1, d]
        def path(x_query):
            prompt = Prompt(x, y, x_query, jnp.zeros(()))
            return trace.layer_predictions(linear_attention.forward(params, tokens(prompt)))

        return jax.vmap(path, out_axes=1)(jnp.eye(d))

    signal = jax.vmap(estimates)(weights @ x.T) - weights[:, None]
    noise = jax.vmap(estimates)(jnp.eye(n))
    return (signal**2).sum((0, 2)) / d + NOISE_VAR * (noise**2).sum((0, 2))


def departure(seed, n, d, isotropic=True):
    """The network's risk over the formula's, minus 1; else w is along the steepest direction."""
    rng = np.random.default_rng(seed)
    x, step_sizes = rng.standard_normal((n, d)), rng.uniform(0.0, 0.4, 5)
    values, vectors = np.linalg.eigh(x.T @ x / n)
    rows = np.linalg.qr(rng.standard_normal((d, d)))[0]
    rows = rows if isotropic else np.tile(vectors[:, -1], (d, 1))
    simulated = network_path_risks(x, step_sizes, np.sqrt(2.0) * rows)
    stated = risks_of_descent(values, step_sizes, n, NOISE_VAR, 2.0)
    return np.abs(simulated / stated - 1)


shapes = pytest.mark.parametrize(("n", "d"), [(7, 3), (3, 5)])


@shapes
@seeds
def test_gradient_descent_given_x_costs_its_formula(n, d, seed):
    assert departure(seed, n, d).max() < 1e-10


@shapes
@seeds
def test_control_a_signal_along_the_steepest_direction_alone_costs_something_else(n, d, seed):
    assert departure(seed, n, d, isotropic=False)[1:].max() > 1e-6
