"""Where the task drifts, E ŵ·w is multiplied by ρ after every step, and nothing else changes; the
best weights of linear attention solve one linear system.

Delta rules follow the task best with the gate ρ and the label scale ρ, additive layers with the
gate of a scalar Kalman filter, after many demonstrations. Gaussian covariates, w_{t+1} = ρ w_t +
√((1 - ρ²)/d) z_t, or E w_i·w_j = C_ij. Derived here; docs/theory, "Layers that follow a drifting
task", "Gates as weights".
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

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


places = pytest.mark.parametrize("place", [(4, 0.25, 0.9), (16, 0.5, 0.98)])  # d, noise_var, rho


@places
def test_the_best_of_all_weights_has_the_stated_risk_and_is_geometric(place):
    d, noise_var, rho = place
    stated = drift.additive(*place)
    weights, risk = drift.best_weights(rho ** lags(601), d, noise_var)
    curve = learning_curves.additive(600, d, noise_var, rho)
    np.testing.assert_allclose([stated.risk, curve[-1]], risk, rtol=1e-10)
    geometric = stated.scale * stated.gate ** np.arange(20.0)
    np.testing.assert_allclose(weights[::-1][:20], geometric, rtol=1e-8)


def endless_risk(kind, place, step, gate, scale):
    """q - 2m + 1 at the fixed point of the moments m = E ŵ·w and q = E |ŵ|² of a layer."""
    d, noise_var, rho = place
    second, fourth, product, square = 1, d + 2, scale, scale**2 * (d + 2 + d * noise_var)
    if kind == "gated_delta":
        second = fourth = 1 / d
        product, square = scale * drift.mean_length(d) / d, scale**2 * (1 + noise_var)
    crossed = product * (1 - step * fourth / second)
    m = rho * step * product / (1 - rho * gate * (1 - step * second))
    kept = gate**2 * (1 - 2 * step * second + step**2 * fourth)
    return (2 * step * crossed * gate * m + step**2 * square) / (1 - kept) - 2 * m + 1


def search(kind, place, *gates):  # of step, gate and scale, or with the gate -> the end, its risk
    largest = 1 / (place[0] + 2) if kind == "lms" else 1.0  # no longer step learns faster
    ends = np.delete([[1e-3 * largest, largest], [0, 1], [0, 2]], [1] * len(gates), axis=0)
    options = dict(xatol=1e-10, fatol=1e-15, maxiter=4000)

    def risk(free):
        return endless_risk(kind, place, *np.insert(free, 1, gates))

    end = minimize(risk, ends.mean(1), bounds=ends, method="Nelder-Mead", options=options)
    return end.x, end.fun


@places
@pytest.mark.parametrize("kind", ["lms", "gated_delta"])
def test_a_delta_rule_has_the_gate_and_the_scale_of_the_task(kind, place):
    (d, noise_var, rho), best = place, getattr(drift, kind)
    stated, (found, risk) = best(*place), search(kind, place)
    np.testing.assert_allclose(risk, stated.risk, rtol=1e-9)
    np.testing.assert_allclose(found, [stated.step, stated.gate, stated.scale], rtol=1e-3)
    length = drift.mean_length(d) if kind == "gated_delta" else 1
    np.testing.assert_allclose([stated.gate, stated.scale * length], rho, rtol=1e-12)
    wrong, risks = best(d, noise_var, rho - 0.1), []  # Control: the numbers of another rate
    for numbers in (stated, wrong):
        case = 1500, d, noise_var, numbers.step, numbers.gate, numbers.scale
        risks.append(getattr(learning_curves, kind)(*case, drift=rho)[-1])
    np.testing.assert_allclose(risks[0], stated.risk, rtol=1e-9)
    assert risks[1] > risks[0] + 0.01


@places
def test_without_a_gate_deltanet_has_more_risk(place):
    stated, (found, risk) = drift.delta(*place), search("gated_delta", place, 1.0)
    np.testing.assert_allclose(risk, stated.risk, rtol=1e-9)
    np.testing.assert_allclose(found, [stated.step, stated.scale], rtol=1e-3)
    assert drift.gated_delta(*place).risk < stated.risk - 0.01


def test_of_a_task_that_stands_still_nothing_is_forgotten():
    for layer in (drift.additive, drift.gla, drift.lms, drift.delta, drift.gated_delta):
        still = layer(4, 0.25, 1.0)
        assert (still.risk, still.gate) == (0, 1)
    weights = np.array([0.5, 0.9, 0.99, 1.0])[:, None] ** np.arange(2000)  # C is all ones
    risks = 1 - weights.sum(1) ** 2 / (weights.sum(1) ** 2 + (4 + 1 + 1) * (weights**2).sum(1))
    assert (np.diff(risks) < 0).all()
    np.testing.assert_allclose(risks[-1], learning_curves.additive(2000, 4, 0.25)[-1], rtol=1e-10)


def test_a_gate_that_sees_the_length_of_a_key_gains_and_the_less_the_larger_d_is():
    """g = ρ - c|x|²/d: the moments of |x|² against the closed form, at any c."""
    gains, noise_var, rho = [], 0.25, 0.9
    for d in (2, 4, 16, 64):
        stated = drift.gla(d, noise_var, rho)
        scale = stated.scale * np.linspace(0.7, 1.3, 601)
        gate, square = rho - scale, (rho - scale) ** 2 + scale**2 * 2 / d
        cross = gate - scale * 2 / d  # E g |x|²/d
        m = rho * scale / (1 - rho * gate)
        q = (2 * scale * cross * m + scale**2 * (d + 2 + d * noise_var)) / (1 - square)
        np.testing.assert_allclose((q - 2 * m + 1).min(), stated.risk, rtol=1e-9)
        gains.append(1 - stated.risk / drift.additive(d, noise_var, rho).risk)
    assert (np.diff(gains) < 0).all()
    assert 0.005 < gains[1] < 0.006
    assert gains[-1] < 1e-4
