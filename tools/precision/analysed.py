"""Each public analysis as a function of the inputs, and those that have no error of their own."""

from collections.abc import Callable
from importlib import import_module

import jax
import jax.numpy as jnp

from lsa_lab import estimators
from lsa_lab.analyses import (
    amplification,
    common_map,
    heads,
    implicit_gd,
    probes,
)
from lsa_lab.models import linear_attention
from lsa_lab.models.trace import layer_predictions, predict
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.selection import (
    gradient_matching,
    scores,
)
from lsa_lab.theory import (
    head_bound,
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


def _choice(i):
    return jnp.zeros(N, i.query.dtype).at[:3].set(1)


def _error_of(i):
    def error(chosen):
        return ((i.prompt.x * chosen[:, None]).sum(0) @ i.prompt.x_query - i.prompt.y_query) ** 2

    return error


def _number(value, i):
    return jnp.asarray(value, i.query.dtype)


# What each function is given, by module.
ARGUMENTS = {
    "analyses.alignment": {
        "descent_plus_plus": lambda i: (i.prompt, (_steps(i), _steps(i))),
        "distances": lambda i: (
            layer_predictions(i.trace),
            implicit_gd.implied_weights(FORWARD, i.params, i.prompt),
            estimators.gradient_descent(i.prompt, _steps(i)),
            i.prompt.x_query,
        ),
        "newton": lambda i: (i.prompt, 4),
        "preconditioned_descent": lambda i: (i.prompt, 0.125 * jnp.stack([i.covariance] * 3)),
        "ridge_path": lambda i: (i.prompt, jnp.log(_steps(i))),
    },
    "analyses.amplification": {
        "amplification_ratio": lambda i: (_flow(i),),
        "interactions": lambda i: (FORWARD, i.params, i.prompt),
        "log_ratio": lambda i: (_flow(i),),
        "log_sizes": lambda i: (_flow(i),),
        "moment_flow": lambda i: (i.params, i.prompt),
        "moment_token_flow": lambda i: (i.params, i.prompt),
        "token_flow": lambda i: (FORWARD, i.params, i.prompt),
    },
    "analyses.clipping": {
        "clip": lambda i: (i.one_head, 1, "w_kq", 0.5),
        "condition_number": lambda i: (i.matrix,),
        "condition_numbers": lambda i: (i.one_head, "w_kq"),
        "singular_values": lambda i: (i.matrix,),
        "stable_rank": lambda i: (i.matrix,),
        "truncate": lambda i: (i.matrix, 0.5),
    },
    "analyses.disparity": {
        "effective_number": lambda i: (i.unit,),
        "entropy": lambda i: (i.unit,),
        "gini": lambda i: (i.unit,),
        "shares": lambda i: (i.unit,),
        "top_share": lambda i: (i.unit,),
    },
    "analyses.head_subsets": {
        "shapley": lambda i: (i.losses,),
    },
    "analyses.heads": {
        "effective_heads": lambda i: (_importance(i),),
        "mean_fill": lambda i: (jnp.stack([i.trace.heads] * 3),),
        "normalised": lambda i: (_importance(i),),
    },
    "analyses.implicit_gd": {
        "block_mlp_update": lambda i: (i.matrix, i.square[0]),
        "implicit_update": lambda i: (*i.square, i.demonstrations),
        "implied_weights": lambda i: (FORWARD, i.params, i.prompt),
        "norms": lambda i: (implicit_gd.trajectory(i.params, i.prompt),),
        "relaxed_mlp_update": lambda i: (i.matrix, i.square[0]),
        "upper_bounds": lambda i: (
            implicit_gd.trajectory(i.one_head, i.prompt),
            *[i.square] * 3,
            i.demonstrations,
        ),
    },
    "analyses.kernel": {
        "log_kernel_factors": lambda i: (i.pool, i.query),
        "softmax_update": lambda i: (*i.square, i.demonstrations, i.query),
    },
    "analyses.narrow_heads": {
        "condition_number": lambda i: (*_heads_of(i), 2),
    },
    "analyses.probes": {
        "contributions": lambda i: (i.trace,),
        "descend": lambda i: (i.tokens, i.prompt.y, 4),
        "explained": lambda i: (probes.fit(i.states, i.targets), i.states, i.targets),
        "fit": lambda i: (i.states, i.targets),
        "preprocessed": lambda i: (i.prompt,),
        "project_out": lambda i: (i.tokens, i.matrix[:2]),
        "squared_errors": lambda i: (probes.fit(i.states, i.targets), i.states, i.targets),
    },
    "estimators": {
        "descent_predictions": lambda i: (
            *estimators.descent_modes(i.prompt),
            _steps(i),
            jnp.arange(4),
        ),
        "discrete_posterior_means": lambda i: (i.prompt, i.pool[:4, :D], _number(0.5, i)),
        "flat_posterior_mean": lambda i: (i.prompt, None, 1.0, 0.5),
        "gaussian_posterior_mean": lambda i: (i.prompt, 1.0, 0.25),
        "gaussian_predictive_variance": lambda i: (i.prompt, 1.0, 0.25),
        "gradient_descent": lambda i: (i.prompt, _steps(i)),
        "gradient_descent_plus_plus": lambda i: (i.prompt, _steps(i), _steps(i)),
        "largest_step": lambda i: (i.prompt.x,),
        "lasso": lambda i: (i.prompt, 0.125),
        "lasso_duality_gap": lambda i: (i.prompt, i.prompt.x_query, 0.125),
        "mixed_gradient_descent": lambda i: (i.prompt, _steps(i), _steps(i)),
        "ols": lambda i: (i.prompt,),
        "preprocessed_gradient_descent": lambda i: (i.prompt, 0.125, 4),
        "preprocessed_step_limit": lambda i: (i.prompt,),
        "recursive_ridge": lambda i: (i.prompt, _number(2.0, i)),
        "ridge": lambda i: (i.prompt, 0.125),
        "rotation_equivariant_posterior_mean": lambda i: (i.prompt, None, 1.0, 0.5),
        "rotation_equivariant_ridge": lambda i: (i.prompt, 4.0, 0.5),
        "sparse_posterior_mean": lambda i: (i.prompt, 2, 1.0, 0.25),
        "spike_and_slab_posterior_mean": lambda i: (i.prompt, 0.5, 1.0, 0.25),
    },
    "selection.diversity": {
        "leverage": lambda i: (i.pool,),
    },
    "selection.gradient_matching": {
        "random_expectation": lambda i: (i.gradients, 4),
    },
    "selection.oracles": {
        "flow_joining": lambda i: (i.params, i.demonstrations, i.prompt.x_query, _choice(i)),
        "leave_one_out": lambda i: (_error_of(i), _choice(i)),
    },
    "selection.prefix": {
        "batch_loss": lambda i: (FORWARD, i.params, i.prefix[0], i.points),
        "example_loss": lambda i: (
            FORWARD,
            i.params,
            i.prefix[0],
            i.prompt.x_query,
            i.prompt.y_query,
        ),
        "linear_gradients": lambda i: (i.covariance[:2], i.points),
        "linear_loss": lambda i: (i.prompt.x_query, i.points),
        "prefix_gradients": lambda i: (FORWARD, i.params, i.prefix, i.points),
    },
    "selection.projection": {
        "gap": lambda i: ([i.gradients], [0, 3, 5, 9]),
    },
    "selection.rivals": {
        "moment_features": lambda i: (i.pool,),
    },
    "selection.scores": {
        "contribution": lambda i: _as_pool(i),
        "cosine": lambda i: (i.pool, i.query),
        "encode": lambda i: (i.square[0], i.square[1], i.pool),
        "encode_flow": lambda i: (i.params, i.pool),
        "flow_norm": lambda i: (_flow(i)[-1],),
        "flow_times_input": lambda i: (_flow(i)[-1], i.demonstrations),
        "grads": lambda i: (scores.encode(i.square[0], i.square[1], i.pool), i.query),
        "grads_of_slot": lambda i: (scores.encode(i.square[0], i.square[1], i.pool), i.query),
        "relevance": lambda i: _as_pool(i),
        "residual": lambda i: _as_pool(i),
        "similarity": lambda i: _as_pool(i),
    },
    "theory.amplification": {
        "contribution": lambda i: (*i.square[:2], i.pool[0], i.query),
        "frozen_demonstration": lambda i: (*i.square[:2], i.pool[0], i.query, 4),
        "frozen_demonstration_untied": lambda i: (i.square, i.square, i.pool[0], i.query),
        "geometric_gain": lambda i: (i.unit[0], 6),
        "many_shot_descent_flow": lambda i: (_steps(i), i.prompt.x, i.prompt.x_query),
        "one_coordinate_ratio": lambda i: (
            i.unit[0] / 128,
            i.unit[1:3],
            i.unit[3],
            jnp.arange(1, 5).astype(i.query.dtype),
        ),
        "one_shot_descent_flow": lambda i: (_steps(i), i.prompt.x[0], i.prompt.x_query),
        "one_shot_flow_norm_sq": lambda i: (*i.square[:2], i.pool[0], i.query),
        "one_shot_jacobian": lambda i: (*i.square[:2], i.pool[0], i.query),
        "radial_flow": lambda i: (*i.square[:2], i.pool[0], i.query),
        "relevance": lambda i: (i.square[0], i.pool[0], i.query),
        "self_coupling": lambda i: (*i.square[:2], i.pool[0]),
    },
    "theory.alignment": {
        "aligned_risk": lambda i: (
            1 + i.unit[:2],
            1 + i.unit[2:4],
            _number(2.0, i),
            1 + i.unit[0],
            _number(2.0, i),
            _number(0.125, i),
        ),
    },
    "theory.asymptotics": {
        "ridge_risk": lambda i: (
            _number(2.0, i),
            1 + i.unit[0],
            _number(2.0, i),
            _number(0.125, i),
            i.unit[1],
        ),
        "ridgeless_risk": lambda i: (
            _number(2.0, i),
            1 + i.unit[0],
            _number(2.0, i),
            _number(0.125, i),
        ),
    },
    "theory.generalization": {
        "measured_gap": lambda i: (i.losses, i.unit, 0.0, 1.0),
        "noise_covariance": lambda i: (i.batch_of_updates, 0.125),
        "optimal_prior_variance": lambda i: (i.updates, i.noise_cov),
        "summands": lambda i: (i.updates, i.noise_cov),
        "trajectory_bound": lambda i: (i.updates, i.noise_cov, 1.0, 20),
    },
    "theory.head_bound": {
        "coefficients": lambda i: head_bound.layer(i.image, 2),
        "least_residual": lambda i: (i.image, 2),
        "residual": lambda i: (*head_bound.layer(i.image, 2), i.image),
    },
    "theory.implicit_updates": {
        "mean_square": lambda i: (i.params.w_kq[0], i.params.w_pv[0], i.second_moment, N),
        "shape": lambda i: (i.matrix, i.params.w_kq[0], i.params.w_pv[0], i.second_moment, N),
    },
    "theory.matching": {
        "descent_gap": lambda i: (i.prompt.x, i.prompt.y, _steps(i), 2.0**-7 * i.unit[0]),
        "least_squares_gap": lambda i: (i.prompt.x, i.prompt.y, 2.0**-7 * i.unit[0]),
        "moment_spread": lambda i: (i.prompt.x,),
    },
    "theory.moving_demonstration": {
        "cubic_gains": lambda i: (i.unit[0], 4),
        "flow_terms": lambda i: (i.square[0], i.pool[0], i.query),
        "moving_demonstration": lambda i: (
            i.square[0],
            i.unit[0] * jnp.eye(D + 1, dtype=i.query.dtype),
            i.pool[0],
            i.query,
            4,
        ),
        "moving_flow": lambda i: (i.square[0], i.unit[0], i.pool[0], i.query, 4),
    },
    "theory.optimum": {
        "best_temperature": lambda i: (
            i.covariance + 0.125 * i.image,
            i.covariance,
            i.task_covariance,
            N,
            0.25,
        ),
        "label_moments": lambda i: (i.covariance, i.task_covariance, N, 0.25),
        "one_layer": lambda i: (i.covariance, i.task_covariance, N, 0.25),
        "one_layer_risk": lambda i: (0.125 * i.image, i.covariance, i.task_covariance, N, 0.25),
        "rank_limited_risk": lambda i: (i.covariance, i.task_covariance, N, 0.25),
        "shifted_risk": lambda i: (
            0.125 * i.image,
            i.covariance,
            i.query_covariance,
            i.task_covariance,
            N,
            0.25,
        ),
        "shifted_risk_floor": lambda i: (
            0.125 * i.image,
            i.covariance,
            i.query_covariance,
            i.task_covariance,
        ),
    },
    "theory.risk": {
        "gradient_descent": lambda i: (i.unit, _steps(i), N, i.unit[0]),
        "min_norm": lambda i: (N, 2 * N, i.unit[0]),
        "ols": lambda i: (N, D, i.unit[0]),
    },
    "theory.training_dynamics": {
        "conserved": lambda i: (i.unit[:1], i.image[None]),
        "half_time": lambda i: (D, N, i.unit[1], i.unit[2] / 128),
        "head_growth": lambda i: (i.unit, i.unit[::-1], N),
        "isotropic_loss": lambda i: (i.unit[0], D, N, i.unit[1]),
        "isotropic_step": lambda i: (10 * i.unit[0], D, N, i.unit[1], i.unit[2] / 128),
        "loss": lambda i: (i.unit[0], i.image, i.covariance, N, i.unit[1]),
        "plateaus": lambda i: (i.unit, N),
        "vector_field": lambda i: (i.unit[0], i.image, i.covariance, N, i.unit[1]),
    },
}
# Of those whose answer is more or other than arrays in this precision, the arrays.
ANSWERS = {
    "analyses.amplification.demonstration_flow": _flow,
    "analyses.common_map.best_common_map": lambda i: (
        common_map.best_common_map(i.tokens, i.trace.stream).maps
    ),
    "analyses.common_map.best_common_query_map": lambda i: (
        common_map.best_common_query_map(FORWARD, i.params, i.prompt, i.prompt.x).maps
    ),
    "analyses.heads.first_order": lambda i: heads.first_order(_loss(i), L, H).astype(i.query.dtype),
    "analyses.heads.importance": _importance,
    "analyses.implicit_gd.trajectory": lambda i: _without_residual(
        implicit_gd.trajectory(i.params, i.prompt)
    ),
    "estimators.descent_modes": lambda i: estimators.descent_modes(i.prompt)[0],
    "selection.gradient_matching.certify": lambda i: (
        gradient_matching.certify(i.gradients, jnp.arange(4)).objective
    ),
    "selection.gradient_matching.match": lambda i: _gaps(gradient_matching.match(i.gradients, 4)),
    "selection.gradient_matching.whitened": lambda i: jnp.abs(
        gradient_matching.whitened(i.gradients, 4)
    ),
    "theory.head_bound.layer": lambda i: jnp.einsum("hke,hfd->kefd", *head_bound.layer(i.image, 2)),
    "theory.training_dynamics.solve": lambda i: training_dynamics.solve(
        jnp.arange(1, 4).astype(i.query.dtype), i.covariance, N, i.unit[0], i.image, **SOLVER
    ),
    "theory.training_dynamics.solve_heads": lambda i: training_dynamics.solve_heads(
        jnp.arange(1, 4).astype(i.query.dtype), i.unit, N, i.unit[::-1] / 8, **SOLVER
    ),
}


def _call(name: str, arguments: Callable) -> Callable:
    module, _, function = name.rpartition(".")
    return lambda i: getattr(import_module(f"lsa_lab.{module}"), function)(*arguments(i))


CASES = {
    f"{module}.{name}": _call(f"{module}.{name}", given)
    for module, rows in ARGUMENTS.items()
    for name, given in rows.items()
} | ANSWERS

# What has no error of its own, and why: by module.
REASONS = {
    "gives a choice: indices, masks, subsets": {
        "analyses.clipping": "compose keep_masks search search_everywhere",
        "analyses.head_subsets": "best_subsets greedy",
        "analyses.heads": "prune prune_first_layer",
        "analyses.implicit_gd": "ranks",
        "selection.diversity": "determinantal farthest_point k_means medoids",
        "selection.gradient_matching": "best_swap first match_blocks",
        "selection.oracles": "best_subset pick_greedily",
        "selection.rivals": "best_of stratified",
        "selection.scores": "select",
        "theory.amplification": "degeneracy",
    },
    "has the error of the function that it is given": {
        "analyses.alignment": "mismatch",
        "analyses.amplification": "flow",
        "analyses.clipping": "curve",
        "analyses.heads": "losses",
        "estimators": "prefixes",
        "selection.prefix": "example_gradients mean_loss",
        "selection.scores": "score_queries",
        "theory.asymptotics": "root_of",
    },
    "draws, or searches from draws": {
        "analyses.clipping": "by_random_direction",
        "analyses.heads": "prune_to_random_heads remove_at_random",
        "analyses.least_heads": "least_error refitted",
        "analyses.probes": "control_targets with_random_labels",
        "selection.prefix": "init sample_batch",
        "selection.projection": "project",
        "selection.rivals": "random_subsets",
        "selection.scores": "random",
        "theory.head_bound": "searched_residuals",
    },
    "counts, copies or rearranges": {
        "analyses.clipping": (
            "apply as_heads by_magnitude by_singular_value drop every_rate factor free_numbers "
            "kept_rank rebuild rebuild_layer"
        ),
        "analyses.disparity": "median_of_finite summary",
        "analyses.head_subsets": "subsets",
        "analyses.heads": "masked resampled_fill",
        "analyses.probes": "as_queries",
        "selection.gradient_matching": "random_gap",
        "selection.prefix": "tokens",
        "selection.scores": "label_slot_flow",
    },
    "is computed in double precision, from plain numbers": {
        "theory.depth": "best_descent_at moving_inverse rotated_covariance tied_descent_at",
        "theory.learning_curves": "ridge",
        "theory.wishart": "rotation_invariant_bound sizes wishart_quadrature",
    },
    "is a short recursion or a small system of plain numbers": {
        "theory.asymptotics": "pretraining_risk",
        "theory.depth": "best_descent power_law ridge_limit",
        "theory.learning_curves": (
            "additive best_weights delta delta_rule delta_rule_limit gated_delta implicit "
            "inner_steps lms"
        ),
    },
}
EXEMPT = [
    f"{module}.{name}"
    for rows in REASONS.values()
    for module, names in rows.items()
    for name in names.split()
]

# They look at the values of what they are given, and are not jitted.
EAGER = ("analyses.clipping", "theory.generalization", "selection.projection")
