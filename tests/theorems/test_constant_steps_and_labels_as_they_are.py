"""Least mean squares and gated DeltaNet with constant steps, and labels as a layer reads them.

docs/theory, "Constant steps, and labels as they are". Sides: recurrent layers on every pair of
vertices of an icosahedron, each at two lengths that have the moments of |x|; the recursions.
Hypotheses: the direction uniform, E |x|² = d, with E |x|⁴ = d(d + 2) or the mean length of N(0, I).
"""

import itertools
from functools import partial

import numpy as np
import pytest

import population
from draws import jit_numpy
from lsa_lab.theory import learning_curves

N, D, NOISE = 2, 3, 0.4
CURVES = {
    kind: jit_numpy(getattr(learning_curves, kind), static_argnums=(0, 1))
    for kind in ("lms", "gated_delta")
}
MEAN = np.sqrt(8 / np.pi)  # E |x| in three dimensions
LENGTHS = {
    "lms": np.sqrt(D + np.sqrt(2 * D) * np.array([-1, 1])),
    "gated_delta": MEAN + np.sqrt(D - MEAN**2) * np.array([-1, 1]),
}


def prompts_of(kind):  # [P, N, D]
    points = np.concatenate([length * population.icosahedron() for length in LENGTHS[kind]])
    return points[np.array(list(itertools.product(range(24), repeat=N)))]


@partial(jit_numpy, static_argnums=0)
def risk(kind, step, gate, scale, noise_var):  # []
    layer = population.constant_layer(kind, D, step, gate if kind != "lms" else None, scale)
    return population.recurrent_risk(*layer, prompts_of(kind), noise_var)


def stated(kind, step, gate, scale, noise_var):
    return CURVES[kind](N, D, noise_var, step, gate, scale)[-1]


CASES = [("lms", 0.2, 1.0, 0.7), ("gated_delta", 0.6, 0.9, 0.5)]


@pytest.mark.parametrize("case", CASES)
def test_the_layer_follows_the_recursion(case):
    np.testing.assert_allclose(risk(*case, NOISE), stated(*case, NOISE), rtol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_control_with_another_scale_or_noise_it_does_not(case):
    own = risk(*case, NOISE)
    others = stated(*case[:3], 1.1 * case[3], NOISE), stated(*case, 1.1 * NOISE)
    assert np.abs(np.array(others) / own - 1).min() > 1e-3


def test_floors_and_the_best_step():
    floor = 0.1 * 4 * 0.3 / (2 - 0.1 * 6)
    np.testing.assert_allclose(CURVES["lms"](400, 4, 0.3, 0.1)[-1], floor, rtol=1e-12)
    # Without noise, and with labels whose mean product with u is right: the length of x is noise.
    for step in (0.1, 1.0, 1.9):
        floor = step * (D / MEAN**2 - 1) / (2 - step)
        curve = CURVES["gated_delta"](400, D, 0.0, step, 1.0, 1 / MEAN)
        np.testing.assert_allclose(curve[-1], floor, rtol=1e-9)
        assert floor > 0
    best = 1 - 1 / (6 + 4 * 0.3)  # what the delta rule's best step leaves
    np.testing.assert_allclose(CURVES["lms"](1, 4, 0.3, 1 / (6 + 4 * 0.3))[1], best)
    with pytest.raises(ValueError, match="steps are positive"):
        learning_curves.lms(3, 4, 0.3, 0.0)
    with pytest.raises(ValueError, match=r"a gate lies in \[0, 1\]"):
        learning_curves.lms(3, 4, 0.3, 0.1, gate=1.2)
