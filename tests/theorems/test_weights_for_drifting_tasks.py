"""Where tasks drift, the best weights of linear attention solve one linear system.

Gaussian covariates, tasks with E w_i·w_j = C_ij, isotropic. docs/theory, "Gates as weights".
"""

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.theory.drift import best_weights
from population import drifting_tasks, gauss_hermite, linear_risk

N, D, NOISE = 3, 2, 0.3
DRIFT = 0.7 ** np.abs(np.subtract.outer(np.arange(N + 1), np.arange(N + 1)))


@jax.jit
def risk(weights, drift):  # []
    points, masses = gauss_hermite([3] * (N * D))
    x, noise_vars = points.reshape(-1, N, D), jnp.full(N, NOISE)
    tasks = drifting_tasks(drift, D)
    return linear_risk(lambda x, y: (weights * y) @ x, x, masses, noise_vars, tasks)


def test_the_closed_form_is_the_risk_of_its_weights_and_no_others_have_less():
    weights, stated = best_weights(DRIFT, D, NOISE)
    np.testing.assert_allclose(risk(weights, DRIFT), stated, rtol=1e-10)
    np.testing.assert_allclose(jax.grad(risk)(weights, DRIFT), np.zeros(N), atol=1e-10)
    assert weights[0] < weights[1] < weights[2]  # the nearer in time, the more


def test_control_with_another_drift_they_are_not_stationary():
    weights, _ = best_weights(DRIFT**2, D, NOISE)
    assert jnp.abs(jax.grad(risk)(weights, DRIFT)).max() > 1e-2
