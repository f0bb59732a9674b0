"""Delta rules follow a task that drifts by ρ best with the gate ρ and the label scale ρ, additive
layers with the gate of a scalar Kalman filter.

Gaussian covariates, many demonstrations; derived here. docs/theory, "Layers that follow a drifting
task".
"""

import jax
import numpy as np
import pytest
from scipy.optimize import minimize

from draws import jit_numpy, lags
from lsa_lab.theory import drift, learning_curves

places = pytest.mark.parametrize("place", [(4, 0.25, 0.9), (16, 0.5, 0.98)])  # d, noise_var, rho
N = 1500


def search(curve, start):
    """Return the least last value of a curve of free numbers, and where."""
    slope = jit_numpy(jax.value_and_grad(lambda free: curve(free)[-1]))
    bounds = [(1e-3, 1.0)] * len(start)
    end = minimize(slope, start, jac=True, bounds=bounds, tol=1e-15, options=dict(gtol=1e-11))
    return end.x, end.fun


@places
def test_the_best_of_all_weights_has_the_stated_risk_and_is_geometric(place):
    d, noise_var, rho = place
    stated = drift.additive(*place)
    weights, risk = drift.best_weights(rho ** lags(601), d, noise_var)
    curve = learning_curves.additive(600, d, noise_var, rho)
    np.testing.assert_allclose([stated.risk, curve[-1]], risk, rtol=1e-10)
    geometric = stated.scale * stated.gate ** np.arange(20.0)
    np.testing.assert_allclose(weights[::-1][:20], geometric, rtol=1e-8)


@places
def test_a_delta_rule_has_the_gate_and_the_scale_of_the_task(place):
    (d, noise_var, rho), stated = place, drift.lms(*place)

    def curve(free):
        step = free[0] / (d + 2)  # at free = 1 no step learns faster
        return learning_curves.lms(N, d, noise_var, step, free[1], free[2], drift=rho)

    found, risk = search(curve, [0.5, 0.8, 0.8])
    np.testing.assert_allclose(risk, stated.risk, rtol=1e-9)
    np.testing.assert_allclose(found, [stated.step * (d + 2), stated.gate, stated.scale], rtol=1e-3)
    np.testing.assert_allclose([stated.gate, stated.scale], rho, rtol=1e-12)


@places
def test_so_has_gated_deltanet_and_without_a_gate_it_has_more_risk(place):
    (d, noise_var, rho), stated, ungated = place, drift.gated_delta(*place), drift.delta(*place)

    def curve(free, gate=None):
        gate = free[2] if gate is None else gate
        return learning_curves.gated_delta(N, d, noise_var, free[0], gate, free[1], rho)

    found, risk = search(curve, [0.5, 0.4, 0.8])
    np.testing.assert_allclose(risk, stated.risk, rtol=1e-9)
    np.testing.assert_allclose(found, [stated.step, stated.scale, stated.gate], rtol=1e-3)
    scale = stated.scale * drift.mean_length(d)
    np.testing.assert_allclose([stated.gate, scale], rho, rtol=1e-12)
    found, risk = search(lambda free: curve(free, 1.0), [0.5, 0.3])
    np.testing.assert_allclose(risk, ungated.risk, rtol=1e-9)
    np.testing.assert_allclose(found, [ungated.step, ungated.scale], rtol=1e-3)
    assert stated.risk < ungated.risk - 0.01


@places
@pytest.mark.parametrize("kind", ["lms", "gated_delta"])
def test_control_the_numbers_of_another_rate_have_more_risk(kind, place):
    (d, noise_var, rho), best = place, getattr(drift, kind)
    wrong = best(d, noise_var, rho - 0.1)
    numbers = N, d, noise_var, wrong.step, wrong.gate, wrong.scale
    risk = getattr(learning_curves, kind)(*numbers, drift=rho)[-1]
    assert risk > best(*place).risk + 0.01


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
