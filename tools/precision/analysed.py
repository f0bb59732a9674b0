"""Each public analysis as a function of the inputs, and those that have no error of their own.

Inputs are ordinary ones: the same numbers in single and in double precision.
"""

import functools
from collections.abc import Callable
from functools import partial
from importlib import import_module
from operator import attrgetter
from types import SimpleNamespace

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab import estimators, prompts
from lsa_lab.analyses import amplification, common_map, heads, implicit_gd, probes
from lsa_lab.models import linear_attention
from lsa_lab.models.trace import layer_predictions, predict
from lsa_lab.prompts import Prompt
from lsa_lab.selection import gradient_matching, scores
from lsa_lab.tasks.pools import Pool
from lsa_lab.theory import head_bound, training_dynamics

N, D, L, H, M = 12, 4, 3, 2, 16  # demonstrations, covariates, layers, heads, pool
E = D + 1


@functools.cache
def inputs(seed: int, dtype: str) -> SimpleNamespace:
    """Draw ``seed``, in numbers that single precision has."""
    arrays = jax.tree.map(lambda x: x.astype(jnp.float32).astype(dtype), _draw(seed))
    return SimpleNamespace(**arrays, **_derive(arrays))


@jax.jit
def _draw(seed: int) -> dict[str, Array]:
    keys = iter(jax.random.split(jax.random.key(seed), 20))
    normal = partial(jax.random.normal, dtype=float)
    prompt = _regression(next(keys))
    params = linear_attention.init(next(keys), L, H, D, scale=0.3)
    return {
        "prompt": prompt,
        "params": params,
        "one_head": linear_attention.init(next(keys), L, 1, D, scale=0.3),
        "pool": normal(next(keys), (M, E)),
        "query": normal(next(keys), (E,)),
        "states": normal(next(keys), (128, E)),
        "targets": normal(next(keys), (128, 2)),
        "gradients": normal(next(keys), (M, 6)),
        "matrix": normal(next(keys), (E, E)),
        "image": normal(next(keys), (D, D)),
        "square": 0.3 * normal(next(keys), (3, E, E)),
        "prefix": normal(next(keys), (2, 3, E)),
        "covariance": _covariance(next(keys), D),
        "query_covariance": _covariance(next(keys), D),
        "task_covariance": _covariance(next(keys), D),
        "noise_cov": _covariance(next(keys), E * E),
        "updates": normal(next(keys), (L, E, E)),
        "batch_of_updates": normal(next(keys), (8, L, E, E)),
        "losses": jax.random.uniform(next(keys), (2**H,), float),
        "unit": jax.random.uniform(next(keys), (6,), float, 0.1, 0.9),
    }


def _regression(key: Array) -> Prompt:
    keys = jax.random.split(key, 3)
    x = jax.random.normal(keys[0], (N + 1, D))
    y = x @ jax.random.normal(keys[1], (D,)) + jax.random.normal(keys[2], (N + 1,))
    return Prompt(x[:-1], y[:-1], x[-1], y[-1])


def _covariance(key: Array, d: int) -> Array:  # [d, d]
    key_values, key_vectors = jax.random.split(key)
    values = jax.random.uniform(key_values, (d,), minval=0.3, maxval=3.0)
    vectors = jax.random.orthogonal(key_vectors, d)
    return vectors * values[None] @ vectors.T


def _derive(arrays: dict) -> dict:
    prompt: Prompt = arrays["prompt"]
    tokens = prompts.tokens(prompt)
    return {
        "tokens": tokens,
        "demonstrations": tokens[:-1],
        "second_moment": prompts.second_moment(prompt),
        "points": Pool(prompt.x, prompt.y),
        "trace": linear_attention.forward(arrays["params"], tokens),
    }


FORWARD = linear_attention.forward
STEPS = (0.125, 0.25, 0.1875)  # numbers that single precision has
SOLVER = {"rtol": 1e-5, "atol": 1e-6}  # as fine as single precision resolves


def _steps(i):
    return jnp.asarray(STEPS, i.query.dtype)


def _flow(i):
    return amplification.demonstration_flow(FORWARD, i.params, i.prompt)


def _loss(i):
    def loss(head_mask):
        trace = FORWARD(i.params, i.tokens, head_mask=head_mask.astype(i.query.dtype))
        return (predict(trace) - i.prompt.y_query) ** 2

    return loss


def _importance(i):
    return heads.importance(_loss(i), L, H)


def _as_pool(i):
    return i.pool, i.query[:-1]


def _choice(i):
    return jnp.zeros(N, i.query.dtype).at[:3].set(1)


def _error_of(i):
    def error(chosen):
        return ((i.prompt.x * chosen[:, None]).sum(0) @ i.prompt.x_query - i.prompt.y_query) ** 2

    return error


def _number(value, i):
    return jnp.asarray(value, i.query.dtype)


def _proportional(i):
    return _number(2.0, i), 1 + i.unit[0], _number(2.0, i), _number(0.125, i)


def _task(i):
    return i.covariance, i.task_covariance, N, 0.25


def _shift(i):
    return 0.125 * i.image, i.covariance, i.query_covariance, i.task_covariance


# What each function is given.
ARGUMENTS = {
    "analyses.alignment.descent_plus_plus": lambda i: (i.prompt, (_steps(i), _steps(i))),
    "analyses.alignment.distances": lambda i: (
        layer_predictions(i.trace),
        implicit_gd.implied_weights(FORWARD, i.params, i.prompt),
        estimators.gradient_descent(i.prompt, _steps(i)),
        i.prompt.x_query,
    ),
    "analyses.alignment.newton": lambda i: (i.prompt, 4),
    "analyses.alignment.preconditioned_descent": lambda i: (
        i.prompt,
        0.125 * jnp.stack([i.covariance] * 3),
    ),
    "analyses.alignment.ridge_path": lambda i: (i.prompt, jnp.log(_steps(i))),
    "analyses.amplification.amplification_ratio": lambda i: (_flow(i),),
    "analyses.amplification.interactions": lambda i: (FORWARD, i.params, i.prompt),
    "analyses.amplification.log_ratio": lambda i: (_flow(i),),
    "analyses.amplification.log_sizes": lambda i: (_flow(i),),
    "analyses.amplification.moment_flow": lambda i: (i.params, i.prompt),
    "analyses.amplification.moment_token_flow": lambda i: (i.params, i.prompt),
    "analyses.amplification.token_flow": lambda i: (FORWARD, i.params, i.prompt),
    "analyses.clipping.clip": lambda i: (i.one_head, 1, "w_kq", 0.5),
    "analyses.clipping.condition_number": lambda i: (i.matrix,),
    "analyses.clipping.condition_numbers": lambda i: (i.one_head, "w_kq"),
    "analyses.clipping.singular_values": lambda i: (i.matrix,),
    "analyses.clipping.stable_rank": lambda i: (i.matrix,),
    "analyses.clipping.truncate": lambda i: (i.matrix, 0.5),
    "analyses.disparity.effective_number": lambda i: (i.unit,),
    "analyses.disparity.entropy": lambda i: (i.unit,),
    "analyses.disparity.gini": lambda i: (i.unit,),
    "analyses.disparity.shares": lambda i: (i.unit,),
    "analyses.disparity.top_share": lambda i: (i.unit,),
    "analyses.head_subsets.shapley": lambda i: (i.losses,),
    "analyses.heads.effective_heads": lambda i: (_importance(i),),
    "analyses.heads.mean_fill": lambda i: (jnp.stack([i.trace.heads] * 3),),
    "analyses.heads.normalised": lambda i: (_importance(i),),
    "analyses.implicit_gd.block_mlp_update": lambda i: (i.matrix, i.square[0]),
    "analyses.implicit_gd.implicit_update": lambda i: (*i.square, i.demonstrations),
    "analyses.implicit_gd.implied_weights": lambda i: (FORWARD, i.params, i.prompt),
    "analyses.implicit_gd.norms": lambda i: (implicit_gd.trajectory(i.params, i.prompt),),
    "analyses.implicit_gd.relaxed_mlp_update": lambda i: (i.matrix, i.square[0]),
    "analyses.implicit_gd.upper_bounds": lambda i: (
        implicit_gd.trajectory(i.one_head, i.prompt),
        *[i.square] * 3,
        i.demonstrations,
    ),
    "analyses.kernel.log_kernel_factors": lambda i: (i.pool, i.query),
    "analyses.kernel.softmax_update": lambda i: (*i.square, i.demonstrations, i.query),
    "analyses.narrow_heads.condition_number": lambda i: (i.params.w_pv[0], i.params.w_kq[0], 2),
    "analyses.probes.contributions": lambda i: (i.trace,),
    "analyses.probes.descend": lambda i: (i.tokens, i.prompt.y, 4),
    "analyses.probes.explained": lambda i: (probes.fit(i.states, i.targets), i.states, i.targets),
    "analyses.probes.fit": lambda i: (i.states, i.targets),
    "analyses.probes.preprocessed": lambda i: (i.prompt,),
    "analyses.probes.project_out": lambda i: (i.tokens, i.matrix[:2]),
    "analyses.probes.squared_errors": lambda i: (
        probes.fit(i.states, i.targets),
        i.states,
        i.targets,
    ),
    "estimators.descent_predictions": lambda i: (
        *estimators.descent_modes(i.prompt),
        _steps(i),
        jnp.arange(4),
    ),
    "estimators.discrete_posterior_means": lambda i: (i.prompt, i.pool[:4, :D], _number(0.5, i)),
    "estimators.flat_posterior_mean": lambda i: (i.prompt, None, 1.0, 0.5),
    "estimators.gaussian_posterior_mean": lambda i: (i.prompt, 1.0, 0.25),
    "estimators.gaussian_predictive_variance": lambda i: (i.prompt, 1.0, 0.25),
    "estimators.gradient_descent": lambda i: (i.prompt, _steps(i)),
    "estimators.gradient_descent_plus_plus": lambda i: (i.prompt, _steps(i), _steps(i)),
    "estimators.largest_step": lambda i: (i.prompt.x,),
    "estimators.lasso": lambda i: (i.prompt, 0.125),
    "estimators.lasso_duality_gap": lambda i: (i.prompt, i.prompt.x_query, 0.125),
    "estimators.mixed_gradient_descent": lambda i: (i.prompt, _steps(i), _steps(i)),
    "estimators.ols": lambda i: (i.prompt,),
    "estimators.preprocessed_gradient_descent": lambda i: (i.prompt, 0.125, 4),
    "estimators.preprocessed_step_limit": lambda i: (i.prompt,),
    "estimators.recursive_ridge": lambda i: (i.prompt, _number(2.0, i)),
    "estimators.ridge": lambda i: (i.prompt, 0.125),
    "estimators.rotation_equivariant_posterior_mean": lambda i: (i.prompt, None, 1.0, 0.5),
    "estimators.rotation_equivariant_ridge": lambda i: (i.prompt, 4.0, 0.5),
    "estimators.sparse_posterior_mean": lambda i: (i.prompt, 2, 1.0, 0.25),
    "estimators.spike_and_slab_posterior_mean": lambda i: (i.prompt, 0.5, 1.0, 0.25),
    "selection.diversity.leverage": lambda i: (i.pool,),
    "selection.gradient_matching.random_expectation": lambda i: (i.gradients, 4),
    "selection.oracles.flow_joining": lambda i: (
        i.params,
        i.demonstrations,
        i.prompt.x_query,
        _choice(i),
    ),
    "selection.oracles.leave_one_out": lambda i: (_error_of(i), _choice(i)),
    "selection.prefix.batch_loss": lambda i: (FORWARD, i.params, i.prefix[0], i.points),
    "selection.prefix.example_loss": lambda i: (
        FORWARD,
        i.params,
        i.prefix[0],
        i.prompt.x_query,
        i.prompt.y_query,
    ),
    "selection.prefix.linear_gradients": lambda i: (i.covariance[:2], i.points),
    "selection.prefix.linear_loss": lambda i: (i.prompt.x_query, i.points),
    "selection.prefix.prefix_gradients": lambda i: (FORWARD, i.params, i.prefix, i.points),
    "selection.projection.gap": lambda i: ([i.gradients], [0, 3, 5, 9]),
    "selection.rivals.moment_features": lambda i: (i.pool,),
    "selection.scores.contribution": _as_pool,
    "selection.scores.cosine": lambda i: (i.pool, i.query),
    "selection.scores.encode": lambda i: (i.square[0], i.square[1], i.pool),
    "selection.scores.encode_flow": lambda i: (i.params, i.pool),
    "selection.scores.flow_norm": lambda i: (_flow(i)[-1],),
    "selection.scores.flow_times_input": lambda i: (_flow(i)[-1], i.demonstrations),
    "selection.scores.grads": lambda i: (scores.encode(i.square[0], i.square[1], i.pool), i.query),
    "selection.scores.grads_of_slot": lambda i: (
        scores.encode(i.square[0], i.square[1], i.pool),
        i.query,
    ),
    "selection.scores.relevance": _as_pool,
    "selection.scores.residual": _as_pool,
    "selection.scores.similarity": _as_pool,
    "theory.amplification.contribution": lambda i: (*i.square[:2], i.pool[0], i.query),
    "theory.amplification.frozen_demonstration": lambda i: (*i.square[:2], i.pool[0], i.query, 4),
    "theory.amplification.frozen_demonstration_untied": lambda i: (
        i.square,
        i.square,
        i.pool[0],
        i.query,
    ),
    "theory.amplification.geometric_gain": lambda i: (i.unit[0], 6),
    "theory.amplification.many_shot_descent_flow": lambda i: (
        _steps(i),
        i.prompt.x,
        i.prompt.x_query,
    ),
    "theory.amplification.one_coordinate_ratio": lambda i: (
        i.unit[0] / 128,
        i.unit[1:3],
        i.unit[3],
        jnp.arange(1, 5).astype(i.query.dtype),
    ),
    "theory.amplification.one_shot_descent_flow": lambda i: (
        _steps(i),
        i.prompt.x[0],
        i.prompt.x_query,
    ),
    "theory.amplification.one_shot_flow_norm_sq": lambda i: (*i.square[:2], i.pool[0], i.query),
    "theory.amplification.one_shot_jacobian": lambda i: (*i.square[:2], i.pool[0], i.query),
    "theory.amplification.radial_flow": lambda i: (*i.square[:2], i.pool[0], i.query),
    "theory.amplification.relevance": lambda i: (i.square[0], i.pool[0], i.query),
    "theory.amplification.self_coupling": lambda i: (*i.square[:2], i.pool[0]),
    "theory.alignment.aligned_risk": lambda i: (1 + i.unit[:2], 1 + i.unit[2:4], *_proportional(i)),
    "theory.asymptotics.ridge_risk": lambda i: (*_proportional(i), i.unit[1]),
    "theory.asymptotics.ridgeless_risk": _proportional,
    "theory.generalization.measured_gap": lambda i: (i.losses, i.unit, 0.0, 1.0),
    "theory.generalization.noise_covariance": lambda i: (i.batch_of_updates, 0.125),
    "theory.generalization.optimal_prior_variance": lambda i: (i.updates, i.noise_cov),
    "theory.generalization.summands": lambda i: (i.updates, i.noise_cov),
    "theory.generalization.trajectory_bound": lambda i: (i.updates, i.noise_cov, 1.0, 20),
    "theory.head_bound.coefficients": lambda i: head_bound.layer(i.image, 2),
    "theory.head_bound.least_residual": lambda i: (i.image, 2),
    "theory.head_bound.residual": lambda i: (*head_bound.layer(i.image, 2), i.image),
    "theory.implicit_updates.mean_square": lambda i: (
        i.params.w_kq[0],
        i.params.w_pv[0],
        i.second_moment,
        N,
    ),
    "theory.implicit_updates.shape": lambda i: (
        i.matrix,
        i.params.w_kq[0],
        i.params.w_pv[0],
        i.second_moment,
        N,
    ),
    "theory.matching.descent_gap": lambda i: (
        i.prompt.x,
        i.prompt.y,
        _steps(i),
        2.0**-7 * i.unit[0],
    ),
    "theory.matching.least_squares_gap": lambda i: (i.prompt.x, i.prompt.y, 2.0**-7 * i.unit[0]),
    "theory.matching.moment_spread": lambda i: (i.prompt.x,),
    "theory.moving_demonstration.cubic_gains": lambda i: (i.unit[0], 4),
    "theory.moving_demonstration.flow_terms": lambda i: (i.square[0], i.pool[0], i.query),
    "theory.moving_demonstration.moving_demonstration": lambda i: (
        i.square[0],
        i.unit[0] * jnp.eye(D + 1, dtype=i.query.dtype),
        i.pool[0],
        i.query,
        4,
    ),
    "theory.moving_demonstration.moving_flow": lambda i: (
        i.square[0],
        i.unit[0],
        i.pool[0],
        i.query,
        4,
    ),
    "theory.optimum.best_temperature": lambda i: (i.covariance + 0.125 * i.image, *_task(i)),
    "theory.optimum.label_moments": _task,
    "theory.optimum.one_layer": _task,
    "theory.optimum.one_layer_risk": lambda i: (0.125 * i.image, *_task(i)),
    "theory.optimum.rank_limited_risk": _task,
    "theory.optimum.shifted_risk": lambda i: (*_shift(i), N, 0.25),
    "theory.optimum.shifted_risk_floor": _shift,
    "theory.risk.gradient_descent": lambda i: (i.unit, _steps(i), N, i.unit[0]),
    "theory.risk.min_norm": lambda i: (N, 2 * N, i.unit[0]),
    "theory.risk.ols": lambda i: (N, D, i.unit[0]),
    "theory.training_dynamics.conserved": lambda i: (i.unit[:1], i.image[None]),
    "theory.training_dynamics.half_time": lambda i: (D, N, i.unit[1], i.unit[2] / 128),
    "theory.training_dynamics.head_growth": lambda i: (i.unit, i.unit[::-1], N),
    "theory.training_dynamics.isotropic_loss": lambda i: (i.unit[0], D, N, i.unit[1]),
    "theory.training_dynamics.isotropic_step": lambda i: (
        10 * i.unit[0],
        D,
        N,
        i.unit[1],
        i.unit[2] / 128,
    ),
    "theory.training_dynamics.loss": lambda i: (i.unit[0], i.image, i.covariance, N, i.unit[1]),
    "theory.training_dynamics.plateaus": lambda i: (i.unit, N),
    "theory.training_dynamics.vector_field": lambda i: (
        i.unit[0],
        i.image,
        i.covariance,
        N,
        i.unit[1],
    ),
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
    "analyses.implicit_gd.trajectory": lambda i: attrgetter("maps", "updates")(
        implicit_gd.trajectory(i.params, i.prompt)
    ),
    "estimators.descent_modes": lambda i: estimators.descent_modes(i.prompt)[0],
    "selection.gradient_matching.certify": lambda i: (
        gradient_matching.certify(i.gradients, jnp.arange(4)).objective
    ),
    "selection.gradient_matching.match": lambda i: attrgetter("objective", "certificate.random")(
        gradient_matching.match(i.gradients, 4)
    ),
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


CASES = {name: _call(name, given) for name, given in ARGUMENTS.items()} | ANSWERS

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
