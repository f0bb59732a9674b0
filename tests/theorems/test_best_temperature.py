"""One temperature undoes a shift's effect on the scale of attention, and no more.

Gaussian covariates, softmax to first order, any A. docs/theory, "The best temperature".
"""

import jax
import jax.numpy as jnp
import numpy as np

from draws import jit_numpy
from lsa_lab.theory import optimum
from population import gauss_hermite, linear_risk

N, D = 3, 2
A = np.array([[0.7, 0.2], [-0.1, 0.4]])  # trained elsewhere
COVARIANCE = np.array([[1.5, 0.3], [0.3, 0.6]])
TASKS = np.array([[0.5, 0.2], [0.2, 1.0]])
NOISE = 0.4


def risk(sharpness, covariance):  # exact: linear in w, in the noise and in the query, quartic in x
    (points, masses), root = gauss_hermite([3] * (N * D)), jnp.linalg.cholesky(covariance)

    def attention(x, y):  # [d], to the queries in the root's columns
        def softmax(scale):
            return jax.nn.softmax(scale * (x @ A @ root), axis=0).T @ y

        value, slope = jax.jvp(softmax, (jnp.zeros(()),), (jnp.ones(()),))
        return value + sharpness * slope

    tasks = jnp.repeat(jnp.linalg.cholesky(TASKS).T[:, None], N + 1, 1)
    x, noises = points.reshape(-1, N, D) @ root.T, jnp.full(N, NOISE)
    return linear_risk(attention, x, masses, noises, tasks, root.T)


SLOPES = jit_numpy(jax.grad(risk)), jit_numpy(jax.grad(jax.grad(risk)))
label_moments = jit_numpy(optimum.label_moments, static_argnums=2)


def best_temperature(covariance):
    """((n - 1)/n) tr(Λ Aᵀ S A)/tr(Λ Aᵀ ΛW), S = E b bᵀ at n - 1 demonstrations."""
    outer, cross = label_moments(covariance, TASKS, N - 1, NOISE)
    shrink = np.trace(covariance @ A.T @ outer @ A) / np.trace(covariance @ A.T @ cross)
    return (N - 1) / N * shrink


def test_at_the_closed_form_the_risk_is_least():
    temperatures = []
    for scale in (1.0, 2.5):
        temperatures.append(best_temperature(scale * COVARIANCE))
        slope, curvature = (f(1 / temperatures[-1], scale * COVARIANCE) for f in SLOPES)
        assert abs(slope / curvature) < 1e-12
        assert curvature > 0
    # Control: the temperature of training is too sharp for the larger covariance.
    assert temperatures[1] > 2 * temperatures[0]
    assert SLOPES[0](1 / temperatures[0], 2.5 * COVARIANCE) > 0.1
