"""DeltaNet with keys and labels divided by |x|, with and without a gate, learns by two scalars.

docs/theory, "Learning curve of DeltaNet". Sides: the recurrent layer on every pair of vertices of
an icosahedron, where polynomials of degree five have the mean of the sphere; the recursions.
Hypotheses: directions uniform, E wwᵀ = I/d, noise independent of the direction.
"""

import itertools

import numpy as np
import pytest

import population
from draws import jit_numpy
from lsa_lab.theory import learning_curves

N, D, NOISE = 2, 3, 0.4
PAIRS = np.array(list(itertools.product(population.icosahedron(), repeat=N)))


gated_delta = jit_numpy(learning_curves.gated_delta, static_argnums=(0, 1))
delta = jit_numpy(learning_curves.delta, static_argnums=(0, 1))
inner_steps = jit_numpy(learning_curves.inner_steps, static_argnums=1)


@jit_numpy
def risk(step, gate, noise_var):  # []
    layer = population.constant_layer("gated_delta", D, step, gate)
    return population.recurrent_risk(*layer, PAIRS, noise_var / (D - 2))  # E 1/|x|² = 1/(d - 2)


@pytest.mark.parametrize(("step", "gate"), [(0.5, 1.0), (1.3, 0.9), (0.7, 0.4)])
def test_the_layer_follows_the_recursion(step, gate):
    stated = gated_delta(N, D, NOISE, step, gate)[-1]
    np.testing.assert_allclose(risk(step, gate, NOISE), stated, rtol=1e-10)
    if gate == 1:
        np.testing.assert_allclose(delta(N, D, NOISE, step)[-1], stated, rtol=1e-12)


def test_control_with_another_gate_or_noise_it_does_not():
    stated = gated_delta(N, D, NOISE, 0.7, 0.9)[-1]
    for step, gate, noise_var in ((0.8, 0.9, NOISE), (0.7, 0.8, NOISE), (0.7, 0.9, 2 * NOISE)):
        assert abs(risk(step, gate, noise_var) / stated - 1) > 1e-3


def test_the_best_schedule_is_the_best_step_of_every_token():
    curve, grid = delta(6, 8, 0.3), np.linspace(0.01, 1.5, 400)
    for before, after in itertools.pairwise(curve):
        one_token = (1 - grid * (2 - grid) / 8) * before + grid**2 * 0.3 / 6
        np.testing.assert_allclose(after, one_token.min(), rtol=1e-4)
        assert after <= one_token.min() * (1 + 1e-12)


def test_a_constant_step_comes_to_its_floor_and_the_schedule_falls_like_one_over_t():
    floor = 0.5 * 0.1 * 8 / (1.5 * 6)
    np.testing.assert_allclose(delta(600, 8, 0.1, 0.5)[-1], floor, rtol=1e-12)
    tail = delta(40_000, 8, 0.1)[-1] * 40_000
    np.testing.assert_allclose(tail, 8 / 6 * 0.1 * 8, rtol=0.01)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_inner_steps_on_one_token_are_one_longer_step(count):
    u, w = np.array([0.6, 0.8]), np.zeros(2)
    for _ in range(count):
        w = w + 0.3 * (1.7 - w @ u) * u
    np.testing.assert_allclose(w, inner_steps(0.3, count) * 1.7 * u, rtol=1e-12)
