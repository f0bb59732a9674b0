"""Each public analysis as a function of the inputs, and those that have no error of their own."""

import jax
import jax.numpy as jnp

from lsa_lab import estimators
from lsa_lab.analyses import (
    alignment,
    amplification,
    clipping,
    common_map,
    disparity,
    head_subsets,
    heads,
    implicit_gd,
    kernel,
    narrow_heads,
    probes,
)
from lsa_lab.models import linear_attention
from lsa_lab.models.trace import layer_predictions, predict
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.selection import (
    diversity,
    gradient_matching,
    oracles,
    prefix,
    projection,
    rivals,
    scores,
)
from lsa_lab.theory import (
    amplification as one_shot,
)
from lsa_lab.theory import (
    asymptotics,
    generalization,
    head_bound,
    implicit_updates,
    matching,
    moving_demonstration,
    optimum,
    risk,
    training_dynamics,
)
from tools.precision.ordinary import D, H, L, N

FORWARD = linear_attention.forward
STEPS = (0.125, 0.25, 0.1875)  # numbers that single precision has
SOLVER = {"rtol": 1e-5, "atol": 1e-6}  # as fine as single precision resolves


def _steps(i):
    return jnp.asarray(STEPS, i.query.dtype)


def _flow(i):
    return amplification.demonstration_flow(FORWARD, i.params, i.prompt)


def _risk(params, batch: Prompt):
    walks = jax.vmap(lambda prompt: FORWARD(params, tokens(prompt)))(batch)
    return (jax.vmap(predict)(walks) - batch.y_query) ** 2


def _loss(i):
    def loss(head_mask):
        trace = FORWARD(i.params, i.tokens, head_mask=head_mask.astype(i.query.dtype))
        return (predict(trace) - i.prompt.y_query) ** 2

    return loss


def _importance(i):
    return heads.importance(_loss(i), L, H)


def _as_pool(i):
    return i.pool, i.query[:-1]


def _gaps(selection):
    return selection.objective, selection.certificate.random


def _without_residual(trajectory):
    return trajectory.maps, trajectory.updates


def _heads_of(i):
    return i.params.w_pv[0], i.params.w_kq[0]


def _chosen(i):
    return jnp.zeros(N, i.query.dtype).at[:3].set(1)


def _error_of(i):
    def error(chosen):
        return ((i.prompt.x * chosen[:, None]).sum(0) @ i.prompt.x_query - i.prompt.y_query) ** 2

    return error


def _number(value, i):
    return jnp.asarray(value, i.query.dtype)


CASES = {
    "analyses.alignment.distances": lambda i: alignment.distances(
        layer_predictions(i.trace),
        implicit_gd.implied_weights(FORWARD, i.params, i.prompt),
        estimators.gradient_descent(i.prompt, _steps(i)),
        i.prompt.x_query,
    ),
    "analyses.alignment.descent_plus_plus": lambda i: alignment.descent_plus_plus(
        i.prompt, (_steps(i), _steps(i))
    ),
    "analyses.alignment.preconditioned_descent": lambda i: alignment.preconditioned_descent(
        i.prompt, 0.125 * jnp.stack([i.covariance] * 3)
    ),
    "analyses.alignment.newton": lambda i: alignment.newton(i.prompt, 4),
    "analyses.alignment.ridge_path": lambda i: alignment.ridge_path(i.prompt, jnp.log(_steps(i))),
    "analyses.amplification.demonstration_flow": _flow,
    "analyses.amplification.token_flow": lambda i: amplification.token_flow(
        FORWARD, i.params, i.prompt
    ),
    "analyses.amplification.moment_flow": lambda i: amplification.moment_flow(i.params, i.prompt),
    "analyses.amplification.moment_token_flow": lambda i: amplification.moment_token_flow(
        i.params, i.prompt
    ),
    "analyses.amplification.interactions": lambda i: amplification.interactions(
        FORWARD, i.params, i.prompt
    ),
    "analyses.amplification.log_sizes": lambda i: amplification.log_sizes(_flow(i)),
    "analyses.amplification.log_ratio": lambda i: amplification.log_ratio(_flow(i)),
    "analyses.amplification.amplification_ratio": lambda i: amplification.amplification_ratio(
        _flow(i)
    ),
    "analyses.clipping.truncate": lambda i: clipping.truncate(i.matrix, 0.5),
    "analyses.clipping.singular_values": lambda i: clipping.singular_values(i.matrix),
    "analyses.clipping.condition_number": lambda i: clipping.condition_number(i.matrix),
    "analyses.clipping.stable_rank": lambda i: clipping.stable_rank(i.matrix),
    "analyses.common_map.best_common_map": lambda i: (
        common_map.best_common_map(i.tokens, i.trace.stream).maps
    ),
    "analyses.disparity.shares": lambda i: disparity.shares(i.unit),
    "analyses.disparity.top_share": lambda i: disparity.top_share(i.unit),
    "analyses.disparity.entropy": lambda i: disparity.entropy(i.unit),
    "analyses.disparity.effective_number": lambda i: disparity.effective_number(i.unit),
    "analyses.disparity.gini": lambda i: disparity.gini(i.unit),
    "analyses.head_subsets.shapley": lambda i: head_subsets.shapley(i.losses),
    "analyses.heads.importance": _importance,
    "analyses.heads.first_order": lambda i: heads.first_order(_loss(i), L, H).astype(i.query.dtype),
    "analyses.heads.normalised": lambda i: heads.normalised(_importance(i)),
    "analyses.heads.effective_heads": lambda i: heads.effective_heads(_importance(i)),
    "analyses.implicit_gd.trajectory": lambda i: _without_residual(
        implicit_gd.trajectory(i.params, i.prompt)
    ),
    "analyses.implicit_gd.norms": lambda i: implicit_gd.norms(
        implicit_gd.trajectory(i.params, i.prompt)
    ),
    "analyses.implicit_gd.implicit_update": lambda i: implicit_gd.implicit_update(
        *i.square, i.demonstrations
    ),
    "analyses.implicit_gd.relaxed_mlp_update": lambda i: implicit_gd.relaxed_mlp_update(
        i.matrix, i.square[0]
    ),
    "analyses.implicit_gd.block_mlp_update": lambda i: implicit_gd.block_mlp_update(
        i.matrix, i.square[0]
    ),
    "analyses.implicit_gd.implied_weights": lambda i: implicit_gd.implied_weights(
        FORWARD, i.params, i.prompt
    ),
    "analyses.kernel.softmax_update": lambda i: kernel.softmax_update(
        *i.square, i.demonstrations, i.query
    ),
    "analyses.kernel.log_kernel_factors": lambda i: kernel.log_kernel_factors(i.pool, i.query),
    "analyses.narrow_heads.condition_number": lambda i: narrow_heads.condition_number(
        *_heads_of(i), 2
    ),
    "analyses.probes.fit": lambda i: probes.fit(i.states, i.targets),
    "analyses.probes.squared_errors": lambda i: probes.squared_errors(
        probes.fit(i.states, i.targets), i.states, i.targets
    ),
    "analyses.probes.explained": lambda i: probes.explained(
        probes.fit(i.states, i.targets), i.states, i.targets
    ),
    "analyses.probes.preprocessed": lambda i: probes.preprocessed(i.prompt),
    "analyses.probes.descend": lambda i: probes.descend(i.tokens, i.prompt.y, 4),
    "analyses.probes.project_out": lambda i: probes.project_out(i.tokens, i.matrix[:2]),
    "analyses.probes.contributions": lambda i: probes.contributions(i.trace),
    "estimators.ols": lambda i: estimators.ols(i.prompt),
    "estimators.recursive_ridge": lambda i: estimators.recursive_ridge(i.prompt, _number(2.0, i)),
    "estimators.ridge": lambda i: estimators.ridge(i.prompt, 0.125),
    "estimators.lasso": lambda i: estimators.lasso(i.prompt, 0.125),
    "estimators.gradient_descent": lambda i: estimators.gradient_descent(i.prompt, _steps(i)),
    "estimators.gradient_descent_plus_plus": lambda i: estimators.gradient_descent_plus_plus(
        i.prompt, _steps(i), _steps(i)
    ),
    "estimators.preprocessed_gradient_descent": lambda i: estimators.preprocessed_gradient_descent(
        i.prompt, 0.125, 4
    ),
    "estimators.mixed_gradient_descent": lambda i: estimators.mixed_gradient_descent(
        i.prompt, _steps(i), _steps(i)
    ),
    "estimators.discrete_posterior_means": lambda i: estimators.discrete_posterior_means(
        i.prompt, i.pool[:4, :D], _number(0.5, i)
    ),
    "estimators.gaussian_posterior_mean": lambda i: estimators.gaussian_posterior_mean(
        i.prompt, 1.0, 0.25
    ),
    "estimators.gaussian_predictive_variance": lambda i: estimators.gaussian_predictive_variance(
        i.prompt, 1.0, 0.25
    ),
    "estimators.sparse_posterior_mean": lambda i: estimators.sparse_posterior_mean(
        i.prompt, 2, 1.0, 0.25
    ),
    "estimators.spike_and_slab_posterior_mean": lambda i: estimators.spike_and_slab_posterior_mean(
        i.prompt, 0.5, 1.0, 0.25
    ),
    "estimators.rotation_equivariant_ridge": lambda i: estimators.rotation_equivariant_ridge(
        i.prompt, 4.0, 0.5
    ),
    "estimators.rotation_equivariant_posterior_mean": lambda i: (
        estimators.rotation_equivariant_posterior_mean(i.prompt, None, 1.0, 0.5)
    ),
    "estimators.flat_posterior_mean": lambda i: estimators.flat_posterior_mean(
        i.prompt, None, 1.0, 0.5
    ),
    "selection.diversity.leverage": lambda i: diversity.leverage(i.pool),
    "selection.gradient_matching.match": lambda i: _gaps(gradient_matching.match(i.gradients, 4)),
    "selection.gradient_matching.random_expectation": lambda i: (
        gradient_matching.random_expectation(i.gradients, 4)
    ),
    "selection.gradient_matching.whitened": lambda i: jnp.abs(
        gradient_matching.whitened(i.gradients, 4)
    ),
    "selection.oracles.flow_joining": lambda i: oracles.flow_joining(
        i.params, i.demonstrations, i.prompt.x_query, _chosen(i)
    ),
    "selection.oracles.leave_one_out": lambda i: oracles.leave_one_out(_error_of(i), _chosen(i)),
    "selection.prefix.prefix_gradients": lambda i: prefix.prefix_gradients(
        FORWARD, i.params, i.prefix, i.points
    ),
    "selection.prefix.linear_gradients": lambda i: prefix.linear_gradients(
        i.covariance[:2], i.points
    ),
    "selection.rivals.moment_features": lambda i: rivals.moment_features(i.pool),
    "selection.scores.flow_norm": lambda i: scores.flow_norm(_flow(i)[-1]),
    "selection.scores.flow_times_input": lambda i: scores.flow_times_input(
        _flow(i)[-1], i.demonstrations
    ),
    "selection.scores.contribution": lambda i: scores.contribution(*_as_pool(i)),
    "selection.scores.relevance": lambda i: scores.relevance(*_as_pool(i)),
    "selection.scores.similarity": lambda i: scores.similarity(*_as_pool(i)),
    "selection.scores.cosine": lambda i: scores.cosine(i.pool, i.query),
    "selection.scores.residual": lambda i: scores.residual(*_as_pool(i)),
    "selection.scores.grads": lambda i: scores.grads(
        scores.encode(i.square[0], i.square[1], i.pool), i.query
    ),
    "selection.scores.grads_of_slot": lambda i: scores.grads_of_slot(
        scores.encode(i.square[0], i.square[1], i.pool), i.query
    ),
    "selection.scores.encode_flow": lambda i: scores.encode_flow(i.params, i.pool),
    "theory.amplification.one_shot_jacobian": lambda i: one_shot.one_shot_jacobian(
        *i.square[:2], i.pool[0], i.query
    ),
    "theory.amplification.one_shot_flow_norm_sq": lambda i: one_shot.one_shot_flow_norm_sq(
        *i.square[:2], i.pool[0], i.query
    ),
    "theory.amplification.self_coupling": lambda i: one_shot.self_coupling(
        *i.square[:2], i.pool[0]
    ),
    "theory.amplification.geometric_gain": lambda i: one_shot.geometric_gain(i.unit[0], 6),
    "theory.amplification.frozen_demonstration": lambda i: one_shot.frozen_demonstration(
        *i.square[:2], i.pool[0], i.query, 4
    ),
    "theory.amplification.many_shot_descent_flow": lambda i: one_shot.many_shot_descent_flow(
        _steps(i), i.prompt.x, i.prompt.x_query
    ),
    "theory.asymptotics.ridgeless_risk": lambda i: asymptotics.ridgeless_risk(
        _number(2.0, i), 1 + i.unit[0], _number(2.0, i), _number(0.125, i)
    ),
    "theory.asymptotics.ridge_risk": lambda i: asymptotics.ridge_risk(
        _number(2.0, i), 1 + i.unit[0], _number(2.0, i), _number(0.125, i), i.unit[1]
    ),
    "theory.generalization.trajectory_bound": lambda i: generalization.trajectory_bound(
        i.updates, i.noise_cov, 1.0, 20
    ),
    "theory.generalization.optimal_prior_variance": lambda i: generalization.optimal_prior_variance(
        i.updates, i.noise_cov
    ),
    "theory.generalization.noise_covariance": lambda i: generalization.noise_covariance(
        i.batch_of_updates, 0.125
    ),
    "theory.head_bound.least_residual": lambda i: head_bound.least_residual(i.image, 2),
    "theory.implicit_updates.mean_square": lambda i: implicit_updates.mean_square(
        i.params.w_kq[0], i.params.w_pv[0], i.second_moment, N
    ),
    "theory.implicit_updates.shape": lambda i: implicit_updates.shape(
        i.matrix, i.params.w_kq[0], i.params.w_pv[0], i.second_moment, N
    ),
    "theory.matching.moment_spread": lambda i: matching.moment_spread(i.prompt.x),
    "theory.matching.descent_gap": lambda i: matching.descent_gap(
        i.prompt.x, i.prompt.y, _steps(i), 2.0**-7 * i.unit[0]
    ),
    "theory.matching.least_squares_gap": lambda i: matching.least_squares_gap(
        i.prompt.x, i.prompt.y, 2.0**-7 * i.unit[0]
    ),
    "theory.moving_demonstration.moving_flow": lambda i: moving_demonstration.moving_flow(
        i.square[0], i.unit[0], i.pool[0], i.query, 4
    ),
    "theory.optimum.best_temperature": lambda i: optimum.best_temperature(
        0.125 * i.image, i.covariance, i.task_covariance, N, 0.25
    ),
    "theory.optimum.one_layer": lambda i: optimum.one_layer(
        i.covariance, i.task_covariance, N, 0.25
    ),
    "theory.optimum.one_layer_risk": lambda i: optimum.one_layer_risk(
        0.125 * i.image, i.covariance, i.task_covariance, N, 0.25
    ),
    "theory.optimum.shifted_risk": lambda i: optimum.shifted_risk(
        0.125 * i.image, i.covariance, i.query_covariance, i.task_covariance, N, 0.25
    ),
    "theory.optimum.shifted_risk_floor": lambda i: optimum.shifted_risk_floor(
        0.125 * i.image, i.covariance, i.query_covariance, i.task_covariance
    ),
    "theory.optimum.rank_limited_risk": lambda i: optimum.rank_limited_risk(
        i.covariance, i.task_covariance, N, 0.25
    ),
    "theory.risk.ols": lambda i: risk.ols(N, D, i.unit[0]),
    "theory.risk.min_norm": lambda i: risk.min_norm(N, 2 * N, i.unit[0]),
    "theory.risk.gradient_descent": lambda i: risk.gradient_descent(
        i.unit, _steps(i), N, i.unit[0]
    ),
    "theory.training_dynamics.loss": lambda i: training_dynamics.loss(
        i.unit[0], i.image, i.covariance, N, i.unit[1]
    ),
    "theory.training_dynamics.vector_field": lambda i: training_dynamics.vector_field(
        i.unit[0], i.image, i.covariance, N, i.unit[1]
    ),
    "theory.training_dynamics.isotropic_step": lambda i: training_dynamics.isotropic_step(
        10 * i.unit[0], D, N, i.unit[1], i.unit[2] / 128
    ),
    "theory.training_dynamics.isotropic_loss": lambda i: training_dynamics.isotropic_loss(
        i.unit[0], D, N, i.unit[1]
    ),
    "theory.training_dynamics.half_time": lambda i: training_dynamics.half_time(
        D, N, i.unit[1], i.unit[2] / 128
    ),
    "theory.training_dynamics.plateaus": lambda i: training_dynamics.plateaus(i.unit, N),
    "theory.training_dynamics.head_growth": lambda i: training_dynamics.head_growth(
        i.unit, i.unit[::-1], N
    ),
    "analyses.clipping.clip": lambda i: clipping.clip(i.one_head, 1, "w_kq", 0.5),
    "analyses.clipping.condition_numbers": lambda i: clipping.condition_numbers(i.one_head, "w_kq"),
    "analyses.common_map.best_common_query_map": lambda i: (
        common_map.best_common_query_map(FORWARD, i.params, i.prompt, i.prompt.x).maps
    ),
    "analyses.heads.mean_fill": lambda i: heads.mean_fill(jnp.stack([i.trace.heads] * 3)),
    "analyses.implicit_gd.upper_bounds": lambda i: implicit_gd.upper_bounds(
        implicit_gd.trajectory(i.one_head, i.prompt), *[i.square] * 3, i.demonstrations
    ),
    "estimators.descent_modes": lambda i: estimators.descent_modes(i.prompt)[0],
    "estimators.descent_predictions": lambda i: estimators.descent_predictions(
        *estimators.descent_modes(i.prompt), _steps(i), jnp.arange(4)
    ),
    "estimators.largest_step": lambda i: estimators.largest_step(i.prompt.x),
    "estimators.preprocessed_step_limit": lambda i: estimators.preprocessed_step_limit(i.prompt),
    "estimators.lasso_duality_gap": lambda i: estimators.lasso_duality_gap(
        i.prompt, i.prompt.x_query, 0.125
    ),
    "selection.gradient_matching.certify": lambda i: (
        gradient_matching.certify(i.gradients, jnp.arange(4)).objective
    ),
    "selection.prefix.example_loss": lambda i: prefix.example_loss(
        FORWARD, i.params, i.prefix[0], i.prompt.x_query, i.prompt.y_query
    ),
    "selection.prefix.batch_loss": lambda i: prefix.batch_loss(
        FORWARD, i.params, i.prefix[0], i.points
    ),
    "selection.prefix.linear_loss": lambda i: prefix.linear_loss(i.prompt.x_query, i.points),
    "selection.projection.gap": lambda i: projection.gap([i.gradients], [0, 3, 5, 9]),
    "selection.scores.encode": lambda i: scores.encode(i.square[0], i.square[1], i.pool),
    "theory.amplification.relevance": lambda i: one_shot.relevance(i.square[0], i.pool[0], i.query),
    "theory.amplification.contribution": lambda i: one_shot.contribution(
        *i.square[:2], i.pool[0], i.query
    ),
    "theory.amplification.radial_flow": lambda i: one_shot.radial_flow(
        *i.square[:2], i.pool[0], i.query
    ),
    "theory.amplification.frozen_demonstration_untied": lambda i: (
        one_shot.frozen_demonstration_untied(i.square, i.square, i.pool[0], i.query)
    ),
    "theory.amplification.one_coordinate_ratio": lambda i: one_shot.one_coordinate_ratio(
        i.unit[0] / 128, i.unit[1:3], i.unit[3], jnp.arange(1, 5).astype(i.query.dtype)
    ),
    "theory.amplification.one_shot_descent_flow": lambda i: one_shot.one_shot_descent_flow(
        _steps(i), i.prompt.x[0], i.prompt.x_query
    ),
    "theory.generalization.summands": lambda i: generalization.summands(i.updates, i.noise_cov),
    "theory.generalization.measured_gap": lambda i: generalization.measured_gap(
        i.losses, i.unit, 0.0, 1.0
    ),
    "theory.head_bound.layer": lambda i: jnp.einsum("hke,hfd->kefd", *head_bound.layer(i.image, 2)),
    "theory.head_bound.coefficients": lambda i: head_bound.coefficients(
        *head_bound.layer(i.image, 2)
    ),
    "theory.head_bound.residual": lambda i: head_bound.residual(
        *head_bound.layer(i.image, 2), i.image
    ),
    "theory.moving_demonstration.cubic_gains": lambda i: moving_demonstration.cubic_gains(
        i.unit[0], 4
    ),
    "theory.moving_demonstration.moving_demonstration": lambda i: (
        moving_demonstration.moving_demonstration(
            i.square[0], i.unit[0] * jnp.eye(D + 1, dtype=i.query.dtype), i.pool[0], i.query, 4
        )
    ),
    "theory.moving_demonstration.flow_terms": lambda i: moving_demonstration.flow_terms(
        i.square[0], i.pool[0], i.query
    ),
    "theory.optimum.label_moments": lambda i: optimum.label_moments(
        i.covariance, i.task_covariance, N, 0.25
    ),
    "theory.training_dynamics.conserved": lambda i: training_dynamics.conserved(
        i.unit[:1], i.image[None]
    ),
    "theory.training_dynamics.solve": lambda i: training_dynamics.solve(
        jnp.arange(1, 4).astype(i.query.dtype), i.covariance, N, i.unit[0], i.image, **SOLVER
    ),
    "theory.training_dynamics.solve_heads": lambda i: training_dynamics.solve_heads(
        jnp.arange(1, 4).astype(i.query.dtype), i.unit, N, i.unit[::-1] / 8, **SOLVER
    ),
}

# What has no error of its own.
REASONS = {
    "gives a choice: indices, masks, subsets": (
        "analyses.clipping.compose",
        "analyses.clipping.keep_masks",
        "analyses.clipping.search",
        "analyses.clipping.search_everywhere",
        "analyses.head_subsets.best_subsets",
        "analyses.head_subsets.greedy",
        "analyses.heads.prune",
        "analyses.heads.prune_first_layer",
        "analyses.implicit_gd.ranks",
        "selection.diversity.determinantal",
        "selection.diversity.farthest_point",
        "selection.diversity.k_means",
        "selection.diversity.medoids",
        "selection.gradient_matching.best_swap",
        "selection.gradient_matching.first",
        "selection.gradient_matching.match_blocks",
        "selection.oracles.best_subset",
        "selection.oracles.pick_greedily",
        "selection.rivals.best_of",
        "selection.rivals.stratified",
        "selection.scores.select",
        "theory.amplification.degeneracy",
    ),
    "has the error of the function that it is given": (
        "analyses.alignment.mismatch",
        "analyses.amplification.flow",
        "analyses.clipping.curve",
        "analyses.heads.losses",
        "estimators.prefixes",
        "selection.prefix.example_gradients",
        "selection.prefix.mean_loss",
        "selection.scores.score_queries",
    ),
    "draws, or searches from draws": (
        "analyses.clipping.by_random_direction",
        "analyses.heads.prune_to_random_heads",
        "analyses.heads.remove_at_random",
        "analyses.least_heads.least_error",
        "analyses.least_heads.refitted",
        "analyses.probes.control_targets",
        "analyses.probes.with_random_labels",
        "selection.prefix.init",
        "selection.prefix.sample_batch",
        "selection.projection.project",
        "selection.rivals.random_subsets",
        "selection.scores.random",
        "theory.head_bound.searched_residuals",
    ),
    "counts, copies or rearranges": (
        "analyses.clipping.apply",
        "analyses.clipping.as_heads",
        "analyses.clipping.by_magnitude",
        "analyses.clipping.by_singular_value",
        "analyses.clipping.drop",
        "analyses.clipping.every_rate",
        "analyses.clipping.factor",
        "analyses.clipping.free_numbers",
        "analyses.clipping.kept_rank",
        "analyses.clipping.rebuild",
        "analyses.clipping.rebuild_layer",
        "analyses.disparity.median_of_finite",
        "analyses.disparity.summary",
        "analyses.head_subsets.subsets",
        "analyses.heads.masked",
        "analyses.heads.resampled_fill",
        "analyses.probes.as_queries",
        "selection.gradient_matching.random_gap",
        "selection.prefix.tokens",
        "selection.scores.label_slot_flow",
    ),
    "is computed in double precision, from plain numbers": (
        "theory.depth.best_descent_at",
        "theory.depth.rotated_covariance",
        "theory.depth.tied_descent_at",
        "theory.learning_curves.ridge",
        "theory.wishart.rotation_invariant_bound",
        "theory.wishart.sizes",
        "theory.wishart.wishart_quadrature",
    ),
    "is a short recursion or a small system of plain numbers": (
        "theory.depth.best_descent",
        "theory.depth.power_law",
        "theory.depth.ridge_limit",
        "theory.learning_curves.additive",
        "theory.learning_curves.best_weights",
        "theory.learning_curves.delta",
        "theory.learning_curves.delta_rule",
        "theory.learning_curves.delta_rule_limit",
        "theory.learning_curves.gated_delta",
        "theory.learning_curves.implicit",
        "theory.learning_curves.inner_steps",
        "theory.learning_curves.lms",
    ),
}
# They look at the values of what they are given, and are not jitted.
EAGER = ("analyses.clipping", "theory.generalization", "selection.projection")
