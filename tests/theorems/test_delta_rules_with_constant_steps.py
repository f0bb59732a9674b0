"""Least mean squares and gated DeltaNet with constant steps learn by recursions of two scalars.

Directions are uniform, E wwᵀ = I/d; labels may be scaled, or divided by |x|. The risk is exact: the
layer runs on every pair of vertices of an icosahedron, up to a rotation, at two lengths with the
moments of |x|.
docs/theory, "Constant steps, and labels as they are", "Learning curve of DeltaNet".
"""

import itertools
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

import population
from draws import jit_numpy
from lsa_lab.theory import learning_curves

N, D, NOISE = 2, 3, 0.4
lms, gated_delta, delta = (
    jit_numpy(curve, static_argnums=(0, 1))
    for curve in (learning_curves.lms, learning_curves.gated_delta, learning_curves.delta)
)
MEAN = np.sqrt(8 / np.pi)  # E |x| in three dimensions
LENGTHS = {
    "lms": np.sqrt(D + np.sqrt(2 * D) * np.array([-1, 1])),  # E |x|⁴ = d (d + 2)
    "gated_delta": MEAN + np.sqrt(D - MEAN**2) * np.array([-1, 1]),
}


@partial(jit_numpy, static_argnums=0)
def risk(kind, lengths, step, gate, scale, noise_var):  # []
    points = lengths[:, None, None] * jnp.asarray(population.icosahedron())[None]
    x = points.reshape(-1, D)[np.array(list(itertools.product((0, 12), range(24))))]
    layer = population.constant_layer(kind, D, step, gate if kind != "lms" else None, scale)
    answer = population.recurrent_answer(*layer, jnp.eye(D))
    return population.linear_risk(answer, x, jnp.full(len(x), 1 / len(x)), jnp.full(N, noise_var))


@pytest.mark.parametrize("case", [(lms, 0.2, 1.0, 0.7), (gated_delta, 0.6, 0.9, 0.5)])
def test_a_layer_with_constant_steps_follows_the_recursion(case):
    (curve, *numbers), kind = case, "lms" if case[0] is lms else "gated_delta"
    exact = risk(kind, LENGTHS[kind], *numbers, NOISE)
    np.testing.assert_allclose(exact, curve(N, D, NOISE, *numbers)[-1], rtol=1e-10)
    *fixed, scale = numbers  # Control: another noise or scale
    for wrong in ((1.1 * NOISE, *numbers), (NOISE, *fixed, 1.1 * scale)):
        assert abs(curve(N, D, *wrong)[-1] / exact - 1) > 1e-3


def test_with_labels_divided_by_the_length_too_and_control_another_step_gate_or_noise():
    def normalised(step, gate, noise_var):
        return risk("gated_delta", np.ones(2), step, gate, 1.0, noise_var / (D - 2))  # E 1/|x|²

    for step, gate in ((0.5, 1.0), (1.3, 0.9), (0.7, 0.4)):
        stated = gated_delta(N, D, NOISE, step, gate)[-1]
        np.testing.assert_allclose(normalised(step, gate, NOISE), stated, rtol=1e-10)
        if gate == 1:
            np.testing.assert_allclose(delta(N, D, NOISE, step)[-1], stated, rtol=1e-12)
    for case in ((0.8, 0.4, NOISE), (0.7, 0.5, NOISE), (0.7, 0.4, 2 * NOISE)):
        assert abs(normalised(*case) / stated - 1) > 1e-3


def test_risks_end_at_their_stated_levels_and_the_best_step_leaves_the_stated_risk():
    level = 0.1 * 4 * 0.3 / (2 - 0.1 * 6)
    np.testing.assert_allclose(lms(400, 4, 0.3, 0.1)[-1], level, rtol=1e-12)
    level = 0.5 * 0.1 * 8 / (1.5 * 6)
    np.testing.assert_allclose(delta(600, 8, 0.1, 0.5)[-1], level, rtol=1e-12)
    # Without noise, and with labels whose mean product with u is right: the length of x is noise.
    for step in (0.1, 1.0, 1.9):
        level = step * (D / MEAN**2 - 1) / (2 - step)
        curve = gated_delta(400, D, 0.0, step, 1.0, 1 / MEAN)
        np.testing.assert_allclose(curve[-1], level, rtol=1e-9)
    best = 1 / (6 + 4 * 0.3)
    np.testing.assert_allclose(lms(1, 4, 0.3, best)[1], 1 - best)


def test_the_best_schedule_takes_the_best_step_of_every_token_and_falls_like_one_over_t():
    curve, grid = delta(6, 8, 0.3), np.linspace(0.01, 1.5, 400)
    for before, after in itertools.pairwise(curve):
        one_token = (1 - grid * (2 - grid) / 8) * before + grid**2 * 0.3 / 6
        np.testing.assert_allclose(after, one_token.min(), rtol=1e-4)
        assert after <= one_token.min() * (1 + 1e-12)
    tail = delta(40_000, 8, 0.1)[-1] * 40_000
    np.testing.assert_allclose(tail, 8 / 6 * 0.1 * 8, rtol=0.01)


def test_inner_steps_on_one_token_are_one_longer_step():
    u, w = np.array([0.6, 0.8]), np.zeros(2)
    for count in range(1, 5):
        w = w + 0.3 * (1.7 - w @ u) * u
        np.testing.assert_allclose(w, (1 - 0.7**count) * 1.7 * u, rtol=1e-12)
