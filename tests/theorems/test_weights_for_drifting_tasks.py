"""Where tasks drift, the best weights of linear attention solve one linear system.

docs/theory, "Gates as weights". Sides: risks of all weights on every point of a Gauss-Hermite rule;
the closed form. Hypotheses: Gaussian covariates, tasks with E w_i·w_j = C_ij, isotropic.
"""

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.theory import learning_curves
from population import gauss_hermite

N, D, NOISE = 3, 2, 0.3
DRIFT = 0.7 ** np.abs(np.subtract.outer(np.arange(N + 1), np.arange(N + 1)))


@jax.jit
def risk(weights, drift):  # []
    points, masses = gauss_hermite([3] * (N * D))
    root = jnp.linalg.cholesky(drift) / D**0.5  # w_i = Σ_m root_im z_m

    def errors(x):
        def of_task(z):  # z [N+1, D]: a unit in one place, for all is linear in it
            tasks = root @ z
            estimate = (weights * (tasks[:-1] * x).sum(1)) @ x
            return ((estimate - tasks[-1]) ** 2).sum()

        units = jnp.eye((N + 1) * D).reshape(-1, N + 1, D)
        noise = ((weights[:, None] * x) ** 2).sum()
        return jax.vmap(of_task)(units).sum() + NOISE * noise

    return masses @ jax.vmap(errors)(points.reshape(-1, N, D))


def test_the_closed_form_is_the_risk_of_its_weights_and_no_others_have_less():
    weights, stated = learning_curves.best_weights(DRIFT, D, NOISE)
    np.testing.assert_allclose(risk(weights, DRIFT), stated, rtol=1e-10)
    slope = jax.grad(risk)(weights, DRIFT)
    np.testing.assert_allclose(slope, np.zeros(N), atol=1e-10)
    assert weights[0] < weights[1] < weights[2]  # the nearer in time, the more


def test_control_with_another_drift_they_are_not_stationary():
    weights, _ = learning_curves.best_weights(DRIFT**2, D, NOISE)
    assert jnp.abs(jax.grad(risk)(weights, DRIFT)).max() > 1e-2
