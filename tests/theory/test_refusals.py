"""What the closed forms refuse: calls whose numbers would mean nothing, in one table."""

import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.theory import (
    amplification,
    asymptotics,
    depth,
    generalization,
    head_bound,
    implicit_updates,
    learning_curves,
    matching,
    moving_demonstration,
    optimum,
    risk,
    training_dynamics,
)

EYE, SKEW = jnp.eye(2), jnp.array([[1.0, 0.5], [0.0, 1.0]])
NEGATIVE = jnp.array(-1.0)  # a variance as an array
ONES = jnp.ones(2)
HEADS = jnp.ones((1, 2, 3)), jnp.ones((1, 3, 2))  # one head, k = d = 2
FLOW = training_dynamics
TURN, MOVING = jnp.array([[0.0, 1.0], [-1.0, 0.0]]), moving_demonstration.moving_demonstration
CALLS = [
    (lambda: risk.ols(8, 8, 0.5), "infinite with noise"),
    (lambda: risk.ols(7, 8, 0.5), "use min_norm"),
    (lambda: risk.min_norm(7, 8, 0.5), "infinite with noise"),
    (lambda: risk.ols(5, 5, 0.0), "infinite with noise and 0 without"),
    (lambda: risk.min_norm(4, 5, 0.0), r"infinite with noise and max\(1 - n/d, 0\) .w.² without"),
    (lambda: risk.min_norm(10, 8, 0.5), "use ols"),
    (lambda: risk.min_norm(1, 5, 0.3, -2.0), "signal_norm_sq = -2.0: a squared length is finite"),
    (lambda: risk.gradient_descent(ONES, ONES, 3, 0.0, np.nan), "signal_norm_sq = nan"),
    (lambda: risk.ols(10, 8, -1.0), "finite and not negative"),
    (lambda: risk.min_norm(True, 8, 0.1), "both are whole numbers"),
    (lambda: risk.gradient_descent(ONES, ONES, 9, np.array([-1.0])), "noise_var = "),
    (lambda: risk.gradient_descent(-ONES, ONES, 9, 0.1), "no eigenvalue of XᵀX/n is negative"),
    (lambda: risk.rotation_invariant_bound(5, 5, 0.5, 0.0), "positive and finite"),
    (lambda: risk.rotation_invariant_bound(400, 301, 0.5), "up to 300"),
    (lambda: risk.rotation_invariant_bound(5, 5, NEGATIVE), "noise_var = -1"),
    (lambda: optimum.one_layer_risk(EYE, EYE, EYE, 3, -0.1), "finite and not negative"),
    (lambda: optimum.one_layer(EYE, SKEW, 3, 0.1), "task_covariance is not symmetric"),
    (lambda: optimum.shifted_risk(EYE, EYE, SKEW, EYE, 3, 0.1), "query_covariance is not symm"),
    (lambda: optimum.rank_limited_risk(EYE, jnp.eye(3), 3, 0.1), r"task_covariance is \[d, d\]"),
    (lambda: optimum.one_layer(EYE, 0 * EYE, 3, 0.0), "every label is 0"),
    (lambda: optimum.rank_limited_risk(0 * EYE, EYE, 3, 0.0), "every label is 0"),
    (lambda: FLOW.plateaus(0 * ONES, 5), "tr Λ [+] σ² = 0"),
    (lambda: learning_curves.best_weights(0 * EYE, 2, 0.0), "a task is 0, without noise"),
    (lambda: head_bound.residual(*HEADS, ONES[None]), r"image is G \[k, d\], for as many outputs"),
    (lambda: depth.best_descent(0.0, 0.1, 2), "alpha = 0.0"),
    (lambda: depth.ridge_limit(-1.0, 0.1), "alpha = -1.0: a ratio of sizes is finite and not neg"),
    (lambda: depth.best_descent(1.0, -0.1, 2), "noise_var = -0.1"),
    (lambda: depth.best_descent(1.0, 0.1, -1), "depth = -1"),
    (lambda: depth.best_descent_at(0, 3, 0.1, 2), "both are at least 1"),
    (lambda: depth.tied_descent_at(4, 3, 0.1, -1), "depth = -1"),
    (lambda: depth.rotated_covariance([1.0, -0.1], 2), "none is negative"),
    (lambda: depth.moving_inverse([0.0, 0.0]), "one is positive"),
    (lambda: depth.power_law(-1.0, 2), "the weight has no sum"),
    (lambda: depth.best_descent_at(4, 3, 0.1, 10_000), "depth = 10000: at most"),
    (lambda: learning_curves.additive(4, 0, 0.1), "both are at least 1"),
    (lambda: learning_curves.additive(4, 3, NEGATIVE), "noise_var = -1"),
    (lambda: learning_curves.delta_rule(4, 3, -0.1), "noise_var = -0.1"),
    (lambda: learning_curves.delta_rule(4, 3, np.ones(3)), r"noise_var has shape \(3,\)"),
    (lambda: learning_curves.delta(4, 2, 0.1), "d = 2 with noise"),
    (lambda: learning_curves.delta(4, 3, 0.1, 2.0), "step = 2.0"),
    (lambda: learning_curves.gated_delta(4, 3, 0.1, 0.5, 1.1), "gate = 1.1"),
    (lambda: learning_curves.gated_delta(4, 3, 0.1, 0.5, 1.0, np.nan), "scale holds 1 NaN"),
    (lambda: learning_curves.lms(4, 3, 0.1, 0.1, 1.0, np.nan), "scale holds 1 NaN"),
    (lambda: learning_curves.delta_rule_limit(np.nan, 0.1), "alpha = nan: a ratio of sizes is fin"),
    (lambda: learning_curves.inner_steps(0.5, -3), "count = -3: it is at least 0"),
    (lambda: learning_curves.inner_steps(-0.5, 3), "step = -0.5"),
    (lambda: learning_curves.ridge(4, 3, 0.1, -1.0), "penalty = -1.0"),
    (lambda: learning_curves.ridge(4, 3, 0.1, 0.0), "penalty = 0 with noise"),
    (lambda: learning_curves.best_weights(jnp.ones((3, 2)), 2, 0.1), r"expected \[n\+1, n\+1\]"),
    (lambda: learning_curves.best_weights(SKEW, 2, 0.1), "task_covariance is not symmetric"),
    (lambda: learning_curves.best_weights(-EYE, 2, 0.1), "task_covariance has the eigenvalue -1"),
    (lambda: learning_curves.best_weights(EYE, -3, 0.1), "d = -3: it is at least 1"),
    (lambda: asymptotics.ridgeless_risk(1.0, 1.0, 2.0, np.inf), "noise_var = inf"),
    (lambda: FLOW.loss(1.0, EYE, EYE, -3), "n = -3: it is at least 1"),
    (lambda: FLOW.loss(1.0, EYE, SKEW, 3), "covariance is not symmetric"),
    (lambda: FLOW.loss(1.0, EYE, EYE, 3, NEGATIVE), "noise_var = -1"),
    (lambda: FLOW.vector_field(1.0, EYE, -EYE, 3), "covariance has the eigenvalue -1"),
    (lambda: FLOW.solve(ONES, EYE, 2.5, 0.1, EYE), "n = 2.5: it is a whole number"),
    (lambda: FLOW.solve(ONES, jnp.nan * EYE, 2, 0.1, EYE), "covariance holds 4 NaN"),
    (lambda: FLOW.solve(ONES[:0], EYE, 2, 0.1, EYE), "times = .*let them increase from 0"),
    (lambda: FLOW.head_growth(ONES, -ONES, 3), "no eigenvalue of a covariance"),
    (lambda: FLOW.isotropic_step(1.0, -3, 3, 1.0, 0.1), "d = -3: it is at least 1"),
    (lambda: FLOW.isotropic_step(1.0, 2, 3, 1.0, -0.1), "initial_step = -0.1: u_0²/√d is posit"),
    (lambda: FLOW.isotropic_step(1.0, 2, 3, 1.0, 0 * ONES), "initial_step = .*is positive"),
    (lambda: FLOW.half_time(2, 3, 1.0, 0.1, -0.5), "noise_var = -0.5"),
    (lambda: FLOW.half_time(2, 3, 1.0, 0.0), "initial_step = 0.0: it lies between 0 and the"),
    (lambda: FLOW.half_time(2, 3, 1.0, 0.5), "initial_step = 0.5: .* the limit 1/γ"),
    (lambda: FLOW.solve(ONES, EYE, 2, ONES, EYE), "u is one number"),
    (lambda: FLOW.loss(ONES, EYE, EYE, 2), "u is one number"),
    (lambda: FLOW.loss(1.0, EYE, EYE, 2, ONES), "noise_var is one number"),
    (lambda: matching.moment_spread(EYE[:1]), "x has 1 rows of width 2: H = XᵀX/m has no inverse"),
    (lambda: matching.least_squares_gap(EYE[:1], ONES[:1], 0.1), "give d or more"),
    (lambda: generalization.trajectory_bound(EYE[None], 0.1, 1.0, 2.5), "it is a whole number"),
    (lambda: generalization.noise_covariance(EYE[None, None], 0.5), "B >= 2"),
    (lambda: generalization.noise_covariance(jnp.ones((2, 1, 2, 2)), 0), "shrinkage = 0"),
    (lambda: implicit_updates.mean_square(EYE[None], EYE[None], SKEW, 3), "is not symmetric"),
    (lambda: implicit_updates.shape(EYE, EYE[None], EYE[None], -EYE, 3), "has the eigenvalue -1"),
    (lambda: amplification.geometric_gain(NEGATIVE, -4), "num_layers = -4: it is at least 0"),
    (lambda: moving_demonstration.cubic_gains(NEGATIVE, -4), "num_layers = -4: it is at least"),
    (lambda: MOVING(EYE, SKEW, ONES, ONES, 2), "P d is not along d"),
    (lambda: moving_demonstration.flow_terms(TURN, ONES, ONES), "d·Kd = 0"),
]


@pytest.mark.parametrize(("call", "words"), CALLS)
def test_what_has_no_meaning_is_refused_in_a_sentence(call, words):
    with pytest.raises((ValueError, AssertionError), match=words):
        call()
