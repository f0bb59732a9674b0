"""Least mean squares and gated DeltaNet with constant steps learn by recursions of two scalars.

Directions are uniform, E wwᵀ = I/d; labels may be scaled, or divided by |x|. The risk is exact: the
layer runs on every pair of vertices of an icosahedron, at two lengths with the moments of |x|.
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
CURVES = {
    kind: jit_numpy(getattr(learning_curves, kind), static_argnums=(0, 1))
    for kind in ("lms", "gated_delta", "delta")
}
MEAN = np.sqrt(8 / np.pi)  # E |x| in three dimensions
LENGTHS = {
    "lms": np.sqrt(D + np.sqrt(2 * D) * np.array([-1, 1])),  # E |x|⁴ = d (d + 2)
    "gated_delta": MEAN + np.sqrt(D - MEAN**2) * np.array([-1, 1]),
    "normalised": np.ones(2),
}


@partial(jit_numpy, static_argnums=0)
def risk(kind, lengths, step, gate, scale, noise_var):  # []
    points = lengths[:, None, None] * jnp.asarray(population.icosahedron())[None]
    points = points.reshape(-1, D)
    x = points[np.array(list(itertools.product(range(len(points)), repeat=N)))]
    layer = population.constant_layer(kind, D, step, gate if kind != "lms" else None, scale)
    answer = population.recurrent_answer(*layer, jnp.eye(D))
    return population.linear_risk(answer, x, jnp.full(len(x), 1 / len(x)), jnp.full(N, noise_var))


def normalised_risk(step, gate, noise_var):
    noise_var = noise_var / (D - 2)  # E 1/|x|²
    return risk("gated_delta", LENGTHS["normalised"], step, gate, 1.0, noise_var)


@pytest.mark.parametrize("case", [("lms", 0.2, 1.0, 0.7), ("gated_delta", 0.6, 0.9, 0.5)])
def test_a_layer_with_constant_steps_follows_the_recursion(case):
    kind, *numbers = case
    exact = risk(kind, LENGTHS[kind], *numbers, NOISE)
    stated = CURVES[kind](N, D, NOISE, *numbers)[-1]
    np.testing.assert_allclose(exact, stated, rtol=1e-10)
    wrong = [CURVES[kind](N, D, 1.1 * NOISE, *numbers)[-1]]  # Control: another noise or scale
    wrong.append(CURVES[kind](N, D, NOISE, *numbers[:2], 1.1 * numbers[2])[-1])
    assert np.abs(np.array(wrong) / exact - 1).min() > 1e-3


def test_with_labels_divided_by_the_length_too_and_control_another_step_gate_or_noise():
    for step, gate in ((0.5, 1.0), (1.3, 0.9), (0.7, 0.4)):
        stated = CURVES["gated_delta"](N, D, NOISE, step, gate)[-1]
        np.testing.assert_allclose(normalised_risk(step, gate, NOISE), stated, rtol=1e-10)
        if gate == 1:
            np.testing.assert_allclose(CURVES["delta"](N, D, NOISE, step)[-1], stated, rtol=1e-12)
    for case in ((0.8, 0.4, NOISE), (0.7, 0.5, NOISE), (0.7, 0.4, 2 * NOISE)):
        assert abs(normalised_risk(*case) / stated - 1) > 1e-3


def test_risks_end_at_their_stated_levels_and_the_best_step_leaves_the_stated_risk():
    level = 0.1 * 4 * 0.3 / (2 - 0.1 * 6)
    np.testing.assert_allclose(CURVES["lms"](400, 4, 0.3, 0.1)[-1], level, rtol=1e-12)
    level = 0.5 * 0.1 * 8 / (1.5 * 6)
    np.testing.assert_allclose(CURVES["delta"](600, 8, 0.1, 0.5)[-1], level, rtol=1e-12)
    # Without noise, and with labels whose mean product with u is right: the length of x is noise.
    for step in (0.1, 1.0, 1.9):
        level = step * (D / MEAN**2 - 1) / (2 - step)
        curve = CURVES["gated_delta"](400, D, 0.0, step, 1.0, 1 / MEAN)
        np.testing.assert_allclose(curve[-1], level, rtol=1e-9)
    best = 1 / (6 + 4 * 0.3)
    np.testing.assert_allclose(CURVES["lms"](1, 4, 0.3, best)[1], 1 - best)


def test_the_best_schedule_takes_the_best_step_of_every_token_and_falls_like_one_over_t():
    curve, grid = CURVES["delta"](6, 8, 0.3), np.linspace(0.01, 1.5, 400)
    for before, after in itertools.pairwise(curve):
        one_token = (1 - grid * (2 - grid) / 8) * before + grid**2 * 0.3 / 6
        np.testing.assert_allclose(after, one_token.min(), rtol=1e-4)
        assert after <= one_token.min() * (1 + 1e-12)
    tail = CURVES["delta"](40_000, 8, 0.1)[-1] * 40_000
    np.testing.assert_allclose(tail, 8 / 6 * 0.1 * 8, rtol=0.01)


def test_inner_steps_on_one_token_are_one_longer_step():
    u, w = np.array([0.6, 0.8]), np.zeros(2)
    for count in range(1, 5):
        w = w + 0.3 * (1.7 - w @ u) * u
        np.testing.assert_allclose(w, (1 - 0.7**count) * 1.7 * u, rtol=1e-12)
