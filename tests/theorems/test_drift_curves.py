"""Where the task drifts, E ŵ·w is multiplied by ρ after every step, and nothing else changes; the
best weights of linear attention solve one linear system.

Gaussian covariates, w_{t+1} = ρ w_t + √((1 - ρ²)/d) z_t, or E w_i·w_j = C_ij. Derived here;
docs/theory, "Layers that follow a drifting task", "Gates as weights".
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import population
from draws import draw_regressions, jit_numpy, lags, z_score
from lsa_lab.models import recurrent
from lsa_lab.theory import drift, learning_curves
from population import constant_layer, gauss_hermite, linear_risk, recurrent_answer

N, D, NOISE = 3, 2, 0.3
LAGS = 1.0 * lags(N + 1)


@jit_numpy
def exact_risk(step, gate, scale, rho):  # of an LMS layer after three tokens -> []
    points, masses = gauss_hermite([3] * (N * D))
    answer = recurrent_answer(*constant_layer("lms", D, step, gate, scale), jnp.eye(D))
    x, noise_vars = points.reshape(-1, N, D), jnp.full(N, NOISE)
    return linear_risk(answer, x, masses, noise_vars, population.drifting_tasks(rho**LAGS, D))


@pytest.mark.parametrize("numbers", [(0.2, 0.7, 0.9, 0.8), (0.4, 1 - 1e-9, 0.6, 0.5)])
def test_least_mean_squares_follows_its_recursion(numbers):
    *free, rho = numbers
    risk, curve = exact_risk(*numbers), learning_curves.lms(N, D, NOISE, *free, drift=rho)
    np.testing.assert_allclose(risk, curve[-1], rtol=1e-7)
    other = learning_curves.lms(N, D, NOISE, *free, drift=rho - 0.1)[-1]
    assert abs(other - risk) > 1e-2  # Control


@partial(jit_numpy, static_argnums=0)
def predict(kind, rows, step, gate, scale):  # [B, n+1, d+1] -> [B]
    params, config = constant_layer(kind, rows.shape[2] - 1, step, gate, scale)
    return jax.vmap(lambda one: recurrent.predict(params, one, config))(rows)


@pytest.mark.parametrize("kind", ["lms", "gated_delta"])
def test_layers_on_drawn_prompts_have_the_predicted_risk(kind):
    d, noise_var, rho, n = 4, 0.25, 0.8, 16
    best, curve = getattr(drift, kind)(d, noise_var, rho), getattr(learning_curves, kind)
    x, _, y = draw_regressions(np.random.default_rng(0), 40_000, n, d, noise_var, rho)
    rows, numbers = np.concatenate([x, y[..., None]], 2), (best.step, best.gate, best.scale)
    rows[:, -1, -1] = 0
    errors = (predict(kind, rows, *numbers) - y[:, -1]) ** 2
    stated, other = (curve(n, d, noise_var, *numbers, drift=r)[-1] for r in (rho, 0.9))
    assert abs(z_score(errors - stated)) < 4
    assert abs(z_score(errors - other)) > 8  # Control
    np.testing.assert_allclose(stated, best.risk, rtol=1e-2)  # 16 are many where ρ is .8


@jit_numpy
@jax.value_and_grad
def risk_of_weights(weights, correlation):  # [n], of Σ_i weights_i y_i x_i
    points, masses = gauss_hermite([3] * (N * D))
    tasks = population.drifting_tasks(correlation, D)
    x, noise_vars = points.reshape(-1, N, D), jnp.full(N, NOISE)
    return linear_risk(lambda x, y: (weights * y) @ x, x, masses, noise_vars, tasks)


def test_the_best_weights_have_the_stated_risk_and_no_others_have_less():
    weights, stated = drift.best_weights(0.7**LAGS, D, NOISE)
    risk, slope = risk_of_weights(weights, 0.7**LAGS)
    np.testing.assert_allclose(risk, stated, rtol=1e-10)
    np.testing.assert_allclose(slope, np.zeros(N), atol=1e-10)
    assert weights[0] < weights[1] < weights[2]  # the nearer in time, the more
    other, _ = drift.best_weights(0.49**LAGS, D, NOISE)  # Control: of another drift
    assert np.abs(risk_of_weights(other, 0.7**LAGS)[1]).max() > 1e-2
