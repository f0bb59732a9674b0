"""Sizes without a meaning are refused by theory.depth and theory.learning_curves."""

import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.theory import depth, learning_curves

CALLS = [
    (lambda: depth.best_descent(0.0, 0.1, 2), "alpha = 0.0"),
    (lambda: depth.best_descent(1.0, -0.1, 2), "noise_var = -0.1"),
    (lambda: depth.best_descent(1.0, 0.1, -1), "depth = -1"),
    (lambda: depth.best_descent_at(0, 3, 0.1, 2), "both are at least 1"),
    (lambda: depth.best_descent_at(4, 3, 0.1, 10_000), "depth = 10000: at most"),
    (lambda: learning_curves.additive(4, 0, 0.1), "both are at least 1"),
    (lambda: learning_curves.delta_rule(4, 3, -0.1), "noise_var = -0.1"),
    (lambda: learning_curves.delta_rule(4, 3, np.ones(3)), r"noise_var has shape \(3,\)"),
    (lambda: learning_curves.delta(4, 2, 0.1), "d = 2 with noise"),
    (lambda: learning_curves.delta(4, 3, 0.1, 2.0), "step = 2.0"),
    (lambda: learning_curves.gated_delta(4, 3, 0.1, 0.5, 1.1), "gate = 1.1"),
    (lambda: learning_curves.ridge(4, 3, 0.1, -1.0), "penalty = -1.0"),
    (lambda: learning_curves.ridge(4, 3, 0.1, 0.0), "penalty = 0 with noise"),
    (lambda: learning_curves.best_weights(jnp.ones((3, 2)), 2, 0.1), "task_covariance has shape"),
]


@pytest.mark.parametrize(("call", "words"), CALLS)
def test_sizes_without_a_meaning_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_nothing_to_learn_from_leaves_the_risk_of_predicting_zero():
    curves = [learning_curves.additive, learning_curves.delta_rule, learning_curves.implicit]
    for curve in [*curves, learning_curves.ridge, learning_curves.delta]:
        np.testing.assert_array_equal(curve(0, 4, 0.1), [1.0])


def test_without_noise_the_last_direction_is_learnt():
    np.testing.assert_allclose(learning_curves.delta_rule(60, 1, 0.0)[-1], (2 / 3) ** 60, rtol=1e-9)
    np.testing.assert_allclose(learning_curves.ridge(4, 4, 0.0), [1, 0.75, 0.5, 0.25, 0], atol=1e-9)
    assert np.isfinite(learning_curves.delta_rule(4000, 1, 0.0)).all()
