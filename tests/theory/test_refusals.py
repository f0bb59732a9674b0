"""Calls of closed forms that would have no meaning, with the argument that the error names."""

import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.theory import (
    amplification,
    asymptotics,
    correlated_prompts,
    depth,
    drift,
    generalization,
    iteration,
    learning_curves,
    matching,
    optimum,
    plateaus,
    risk,
    rotating_covariance,
    training_dynamics,
)
from lsa_lab.theory.alignment import aligned_risk

EYE, SKEW = jnp.eye(2), jnp.array([[1.0, 0.5], [0.0, 1.0]])
NEGATIVE, ONES = jnp.array(-1.0), jnp.ones(2)
FLOW, CURVES = training_dynamics, learning_curves
CALLS = [
    (lambda: risk.ols(8, 8, 0.5), "n = 8"),
    (lambda: risk.ols(7, 9, 0.5), "min_norm"),
    (lambda: risk.min_norm(10, 8, 0.5), "ols"),
    (lambda: risk.min_norm(True, 8, 0.1), "n = True"),
    (lambda: risk.rotation_invariant_bound(5, 5, 0.5, 0.0), "signal_norm_sq"),
    (lambda: risk.rotation_invariant_bound(400, 301, 0.5), "301"),
    (lambda: optimum.one_layer(EYE, 0 * EYE, 3, 0.0), "label"),
    (lambda: optimum.rank_limited_risk(EYE, jnp.eye(3), 3, 0.1), "task_covariance"),
    (lambda: depth.best_descent(1.0, 0.1, -1), "depth"),
    (lambda: depth.best_descent_at(0, 3, 0.1, 2), "n = 0"),
    (lambda: depth.best_descent_at(4, 3, 0.1, 10_000), "depth"),
    (lambda: rotating_covariance.best_descent([1.0, -0.1], 2), "eigenvalues"),
    (lambda: rotating_covariance.moving_inverse([0.0, 0.0]), "eigenvalues"),
    (lambda: iteration.iterated_risk(16, 8, 0.1, 400), "steps"),
    (lambda: drift.lms(4, 0.1, 1.1), "rho"),
    (lambda: drift.best_weights(0 * EYE, 2, 0.0), "task_covariance"),
    (lambda: drift.best_weights(-EYE, 2, 0.1), "task_covariance"),
    (lambda: correlated_prompts.additive(4, 3, 0.1, [0.9]), "correlation"),
    (lambda: CURVES.additive(4, 3, 0.1, -0.1), "drift"),
    (lambda: CURVES.delta_rule(4, 3, np.ones(3)), "noise_var"),
    (lambda: CURVES.delta(4, 3, 0.1, drift=0.9), "drift"),
    (lambda: CURVES.delta(4, 2, 0.1), "d = 2"),
    (lambda: CURVES.delta(4, 3, 0.1, 2.0), "step"),
    (lambda: CURVES.gated_delta(4, 3, 0.1, 0.5, 1.0, np.nan), "scale"),
    (lambda: CURVES.lms(3, 4, 0.3, 0.0), "step"),
    (lambda: CURVES.ridge(4, 3, 0.1, 0.0), "penalty"),
    (lambda: asymptotics.ridge_risk(1.0, 1.0, 2.0, 0.1, 0.0), "penalty"),
    (lambda: aligned_risk([1.0, -1.0], ONES, 1.0, 0.5, 2.0, 0.1), "train"),
    (lambda: aligned_risk([0.0], [1.0], 1.0, 0.5, 2.0, 0.1), "train"),
    (lambda: FLOW.loss(1.0, EYE, SKEW, 3), "covariance"),
    (lambda: FLOW.loss(ONES, EYE, EYE, 2), "u is"),
    (lambda: FLOW.solve(ONES, EYE, 2.5, 0.1, EYE), "n = 2.5"),
    (lambda: FLOW.solve(ONES[:0], EYE, 2, 0.1, EYE), "times"),
    (lambda: FLOW.isotropic_step(1.0, 2, 3, 1.0, -ONES), "initial_step"),
    (lambda: plateaus.plateaus(0 * ONES, 5), "σ² = 0"),
    (lambda: matching.moment_spread(EYE[:1]), "x has 1 rows"),
    (lambda: matching.least_squares_gap(EYE, ONES, -0.1), "objective"),
    (lambda: generalization.summands(EYE[None], 0.1, centred=True), "centred"),
    (lambda: generalization.summands(EYE[None], 0.0), "noise_cov"),
    (lambda: generalization.summands(EYE[None], jnp.eye(4).at[0, 1].set(0.5)), "symmetric"),
    (lambda: generalization.summands(EYE[None], 0 * jnp.eye(4)), "definite"),
    (lambda: generalization.measured_gap(ONES, ONES, 2.0, 2.0), "low"),
    (lambda: amplification.geometric_gain(NEGATIVE, -4), "num_layers"),
]


@pytest.mark.parametrize(("call", "argument"), CALLS)
def test_a_call_without_meaning_is_refused_and_its_argument_named(call, argument):
    with pytest.raises((ValueError, AssertionError), match=argument):
        call()
