"""One temperature undoes a shift's effect on the scale of attention, and no more.

docs/theory, "The best temperature". Sides: the first-order softmax, differentiated at scale 0, on
every point of a Gauss-Hermite rule; the closed form. Hypotheses: Gaussian covariates, any A.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.theory import optimum
from population import gauss_hermite

N, D = 3, 2
POINTS, MASSES = gauss_hermite([3] * (N * D))
A = np.array([[0.7, 0.2], [-0.1, 0.4]])  # trained elsewhere
COVARIANCE = np.array([[1.5, 0.3], [0.3, 0.6]])
TASKS = np.array([[0.5, 0.2], [0.2, 1.0]])
NOISE = 0.4


def attention(x, y, x_query, sharpness):  # []
    """Softmax attention whose scores are ``sharpness`` x_iᵀ A x_query, to first order in it."""

    def softmax(scale):
        return jax.nn.softmax(scale * (x @ (A @ x_query))) @ y

    value, slope = jax.jvp(softmax, (jnp.zeros(()),), (jnp.ones(()),))
    return value + sharpness * slope


def risk(sharpness, covariance):  # []
    """E(ŷ - w·x_query)², exactly: linear in w, in the noise and in the query, quartic in x."""
    root, tasks = jnp.linalg.cholesky(covariance), jnp.linalg.cholesky(TASKS)

    def squares(z):
        x = z @ root.T

        def of_query(x_query):
            def of_task(w):
                return attention(x, x @ w, x_query, sharpness) - w @ x_query

            noise = jax.vmap(lambda unit: attention(x, unit, x_query, sharpness))(jnp.eye(N))
            return (jax.vmap(of_task)(tasks.T) ** 2).sum() + NOISE * (noise**2).sum()

        return jax.vmap(of_query)(root.T).sum()

    return MASSES @ jax.vmap(squares)(POINTS.reshape(-1, N, D))


SLOPES = jit_numpy(jax.grad(risk)), jit_numpy(jax.grad(jax.grad(risk)))
best_temperature = jit_numpy(optimum.best_temperature, static_argnums=3)


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_at_the_closed_form_the_risk_is_least(scale):
    covariance = scale * COVARIANCE
    temperature = best_temperature(A, covariance, TASKS, N, NOISE)
    slope, curvature = (f(1 / temperature, covariance) for f in SLOPES)
    assert abs(slope / curvature) < 1e-12
    assert curvature > 0


def test_control_the_temperature_of_training_is_too_sharp_for_a_larger_covariance():
    temperature = best_temperature(A, COVARIANCE, TASKS, N, NOISE)
    shifted = best_temperature(A, 2.5 * COVARIANCE, TASKS, N, NOISE)
    assert shifted > 2 * temperature
    assert SLOPES[0](1 / temperature, 2.5 * COVARIANCE) > 0.1
