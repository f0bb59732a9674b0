"""A public function that is called again with arrays of the same shapes compiles nothing."""

import functools
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lsa_lab import estimators, interop, prompts, training
from lsa_lab.analyses import (
    alignment,
    amplification,
    clipping,
    common_map,
    disparity,
    heads,
    implicit_gd,
    probes,
)
from lsa_lab.lm import config as lm_config
from lsa_lab.lm import decoder
from lsa_lab.lm import flow as lm_flow
from lsa_lab.models import (
    constructions,
    effective,
    linear_attention,
    moments,
    prefixes,
    recurrent,
    trace,
    transformer,
)
from lsa_lab.models.recurrent_weights import Kind
from lsa_lab.prompts import Prompt
from lsa_lab.selection import (
    baselines,
    diversity,
    gradient_matching,
    oracles,
    prefix,
    scores,
)
from lsa_lab.tasks import linear, pools
from lsa_lab.theory import alignment as theory_alignment
from lsa_lab.theory import amplification as closed_forms
from lsa_lab.theory import (
    asymptotics,
    depth,
    generalization,
    iteration,
    learning_curves,
    matching,
    optimum,
    plateaus,
    risk,
    training_dynamics,
)

COMPILATION = "/jax/core/compile/backend_compile_duration"
RNG = np.random.default_rng(0)
KEY = jax.random.key(0)


def rows(*shape):
    return jnp.asarray(RNG.normal(size=shape))


N, D, E = 5, 2, 3
PROMPT = Prompt(rows(N, D), rows(N), rows(D), rows())
BATCH = Prompt(rows(4, N, D), rows(4, N), rows(4, D), rows(4))
OTHERS = jax.tree.map(lambda leaf: leaf + 1, BATCH)
LONG = Prompt(rows(24, D), rows(24), rows(D), rows())
TOKENS, BOUND = prompts.tokens(PROMPT), prompts.bound_tokens(PROMPT)
I2, STEPS, VALUES = jnp.eye(D), jnp.array([0.3, 0.2]), jnp.array([1.0, 0.5])
MASK, W, FLOW, GRADIENTS = jnp.ones((2, 2)), rows(E, E), rows(2, N, E), rows(12, 4)
POOL, QUERY, STATES, IDS = rows(12, E), rows(D), rows(60, 3), jnp.arange(4)
MERGED = linear_attention.init(KEY, 2, 2, D)
SOFTMAX = transformer.Config(E, 2, 2, 2, norm=True, mlp_width=4)
LINEAR = transformer.Config(E, 2, 2, 2, kernel="linear")
INTERLEAVED = transformer.Config(E, 2, 2, 2, layout="interleaved", keys="causal")
FACTORS, PLAIN, GARG = (transformer.init(KEY, c) for c in (SOFTMAX, LINEAR, INTERLEAVED))
MERGED_TRACE = linear_attention.forward(MERGED, TOKENS)
SOFTMAX_TRACE = transformer.forward(FACTORS, TOKENS, SOFTMAX)
LAW = linear.LinearTask(6, D, noise_std=0.1, covariance=I2)
SPARSE = linear.LinearTask(6, D, sparsity=1, labels="signs")
WORDS = lm_config.Config(2, 2, 1, 4, 8, 16, 10, 12)
DECODER = decoder.init(KEY, WORDS, float)
TRAINING = training.Training(
    lambda w, batch: ((w - batch) ** 2).mean(),
    lambda key: jax.random.normal(key, (3,)),
    optax.sgd(0.1),
    8,
)
LOSS = jax.jit(lambda mask: mask.sum() ** 2)
SCORES = jax.jit(lambda chosen: chosen**2)
READ = jax.jit(lambda tokens: tokens[:2, 0] ** 2)
SMOOTHER = jax.jit(lambda tokens: (tokens[:-1] @ tokens[-1]) @ tokens[:-1, -1])


def softmax():
    """The forward that a notebook writes anew in every call."""
    return functools.partial(transformer.forward, config=SOFTMAX)


def causal():
    return functools.partial(linear_attention.forward, head_mask=MASK, keys="causal")


def squared_errors(params, batch):
    return (moments.predictions(params, batch) - batch.y_query) ** 2


def of_recurrent(kind, function, layout="bound"):
    tokens = BOUND if layout == "bound" else TOKENS
    config = recurrent.Config(kind, tokens.shape[1], 2, 2, 3, layout=layout)
    params = recurrent.init(KEY, config)
    return lambda: function(params, tokens, config)


def attention_of_recurrent(params, tokens, config):
    return recurrent.attention(params, recurrent.forward(params, tokens, config), config)


CALLS = {
    "prompts.tokens": lambda: prompts.tokens(PROMPT),
    "prompts.bound_tokens": lambda: prompts.bound_tokens(PROMPT),
    "prompts.interleaved_tokens": lambda: prompts.interleaved_tokens(PROMPT),
    "prompts.second_moment": lambda: prompts.second_moment(PROMPT),
    "prompts.second_moments": lambda: prompts.second_moments(BATCH),
    "prompts.normalise": lambda: prompts.normalise(PROMPT),
    "linear.sample": lambda: linear.sample(KEY, LAW),
    "linear.sample of signs": lambda: linear.sample(KEY, SPARSE),
    "linear.sample_batch": lambda: linear.sample_batch(KEY, SPARSE, 4),
    "linear.sample_moments": lambda: linear.sample_moments(KEY, LAW),
    "linear.sample_moments_batch": lambda: linear.sample_moments_batch(KEY, LAW, 4),
    "linear.sample_weights": lambda: linear.sample_weights(KEY, LAW),
    "pools.sample": lambda: pools.sample(KEY, pools.PoolTask(m=6, d=2, copies=0.3)),
    "prompts.repeat_demonstrations": lambda: prompts.repeat_demonstrations(PROMPT, 2),
    "ols": lambda: estimators.ols(PROMPT),
    "ridge": lambda: estimators.ridge(PROMPT, 0.1),
    "lasso": lambda: estimators.lasso(PROMPT, 0.1),
    "lasso_duality_gap": lambda: estimators.lasso_duality_gap(PROMPT, VALUES, 0.1),
    "gradient_descent": lambda: estimators.gradient_descent(PROMPT, STEPS),
    "gradient_descent_plus_plus": lambda: estimators.gradient_descent_plus_plus(
        PROMPT, STEPS, STEPS
    ),
    "preprocessed_gradient_descent": lambda: estimators.preprocessed_gradient_descent(
        PROMPT, 0.1, 3
    ),
    "mixed_gradient_descent": lambda: estimators.mixed_gradient_descent(PROMPT, STEPS, STEPS),
    "descent_predictions": lambda: estimators.descent_predictions(
        *estimators.descent_modes(PROMPT), STEPS, [1, 2]
    ),
    "largest_step": lambda: estimators.largest_step(PROMPT.x),
    "preprocessed_step_limit": lambda: estimators.preprocessed_step_limit(PROMPT),
    "sparse_posterior_mean": lambda: estimators.sparse_posterior_mean(PROMPT, 1, 1.0, 0.1),
    "gaussian_posterior_mean": lambda: estimators.gaussian_posterior_mean(
        PROMPT, 1.0, 0.1, prior_covariance=I2
    ),
    "discrete_posterior_means": lambda: estimators.discrete_posterior_means(PROMPT, I2, 0.1),
    "recursive_ridge": lambda: estimators.recursive_ridge(PROMPT, 0.1),
    "estimators.prefixes": lambda: estimators.prefixes(estimators.ols, PROMPT),
    "rotation_equivariant_posterior_mean": lambda: estimators.rotation_equivariant_posterior_mean(
        PROMPT, 1, 1.0, 0.1
    ),
    "rotation_equivariant_posterior_mean, flat": lambda: (
        estimators.rotation_equivariant_posterior_mean(PROMPT, 1, 1.0, 0.1, signal="flat")
    ),
    "linear_attention.init": lambda: linear_attention.init(KEY, 2, 2, D),
    "linear_attention.forward": lambda: linear_attention.forward(MERGED, TOKENS),
    "linear_attention.forward, all": lambda: linear_attention.forward(MERGED, TOKENS, keys="all"),
    "linear_attention.forward, causal": lambda: causal()(MERGED, TOKENS),
    "linear_attention.attention": lambda: linear_attention.attention(MERGED, MERGED_TRACE),
    "trace.predict": lambda: trace.predict(MERGED_TRACE),
    "trace.layer_predictions": lambda: trace.layer_predictions(MERGED_TRACE),
    "moments.layer_maps": lambda: moments.layer_maps(MERGED, W @ W.T, MASK),
    "moments.predictions": lambda: moments.predictions(MERGED, BATCH),
    "constructions.gradient_descent": lambda: constructions.gradient_descent(STEPS, D),
    "constructions.gradient_descent_plus_plus": lambda: constructions.gradient_descent_plus_plus(
        STEPS, STEPS, D
    ),
    "constructions.preconditioned": lambda: constructions.preconditioned(I2[None]),
    "constructions.prior_attention": lambda: constructions.prior_attention(STEPS, QUERY),
    "constructions.one_step_optimum": lambda: constructions.one_step_optimum(I2, N, 0.1),
    "constructions.preprocess_then_optimise": lambda: constructions.preprocess_then_optimise(
        D, 2, STEPS
    ),
    "transformer.init": lambda: transformer.init(KEY, SOFTMAX),
    "transformer.forward": lambda: transformer.forward(FACTORS, TOKENS, SOFTMAX, MASK),
    "transformer.predict": lambda: transformer.predict(FACTORS, TOKENS, SOFTMAX),
    "transformer.predict_prefixes": lambda: transformer.predict_prefixes(
        GARG, prompts.interleaved_tokens(PROMPT), INTERLEAVED
    ),
    "transformer.attention": lambda: transformer.attention(FACTORS, SOFTMAX_TRACE, SOFTMAX),
    "transformer.merge": lambda: transformer.merge(PLAIN, LINEAR),
    "prefixes.predictions": lambda: prefixes.predictions(causal(), MERGED, PROMPT, "merged"),
    "vmap of transformer.forward": lambda: jax.vmap(
        lambda tokens: transformer.forward(FACTORS, tokens, SOFTMAX)
    )(jax.vmap(prompts.tokens)(BATCH)),
    "grad of linear_attention.forward": lambda: jax.grad(
        lambda params: trace.predict(linear_attention.forward(params, TOKENS))
    )(MERGED),
    **{
        f"recurrent.{call.__name__} of {kind}": of_recurrent(kind, call)
        for kind in get_args(Kind)
        for call in (recurrent.forward, recurrent.states)
        if call is recurrent.forward or kind in ("delta", "mesa")
    },
    "recurrent.init": lambda: recurrent.init(KEY, recurrent.Config("mesa", E)),
    "recurrent.predict_prefixes": of_recurrent("delta", recurrent.predict_prefixes),
    "recurrent.predict": of_recurrent("mesa", recurrent.predict, "merged"),
    "recurrent.attention": of_recurrent("gla", attention_of_recurrent),
    "optimum.one_layer": lambda: optimum.one_layer(I2, I2, N, 0.1),
    "optimum.one_layer_risk": lambda: optimum.one_layer_risk(I2, I2, I2, N, 0.1),
    "optimum.rank_limited_risk": lambda: optimum.rank_limited_risk(I2, I2, N, 0.1),
    "risk.gradient_descent": lambda: risk.gradient_descent(VALUES, STEPS, N, 0.1),
    "training_dynamics.isotropic_step": lambda: training_dynamics.isotropic_step(
        STEPS, 2, 3, 1.0, 0.1
    ),
    "training_dynamics.solve": lambda: training_dynamics.solve(jnp.arange(3.0), I2, N, 0.5, I2),
    "solve_heads": lambda: plateaus.solve_heads(jnp.arange(3.0), VALUES, N, STEPS),
    "asymptotics.ridgeless_risk": lambda: asymptotics.ridgeless_risk(STEPS, 1.0, 2.0, 0.1),
    "asymptotics.ridge_risk": lambda: asymptotics.ridge_risk(STEPS, 1.0, 2.0, 0.1, 0.1),
    "amplification.one_shot_jacobian": lambda: closed_forms.one_shot_jacobian(W, W, W[0], W[1]),
    "amplification.frozen_demonstration": lambda: closed_forms.frozen_demonstration(
        W, W, W[0], W[1], 3
    ),
    "amplification.self_coupling": lambda: closed_forms.self_coupling(W, W, W[0]),
    "generalization.trajectory_bound": lambda: generalization.trajectory_bound(
        W[None], jnp.eye(E * E), 1.0, N
    ),
    "depth.best_descent": lambda: depth.best_descent(2.0, 0.1, 3),
    "learning_curves.additive": lambda: learning_curves.additive(N, D, 0.1),
    "learning_curves.delta_rule": lambda: learning_curves.delta_rule(N, D, 0.1),
    "learning_curves.implicit": lambda: learning_curves.implicit(N, D, 0.1),
    "learning_curves.delta": lambda: learning_curves.delta(N, 3, 0.1),
    "learning_curves.gated_delta": lambda: learning_curves.gated_delta(N, 3, 0.1, 0.3, 0.9),
    "learning_curves.lms": lambda: learning_curves.lms(N, D, 0.1, 0.1),
    "iterated_risk_limit": lambda: iteration.iterated_risk_limit(2.0, 0.1, 3),
    "kalman_filter": lambda: estimators.kalman_filter(PROMPT, 0.1, 0.9),
    "effective.attention": lambda: effective.attention(W, W, step=W[0], gate=W[1]),
    "effective.states": lambda: effective.states(W, W, step=W[0], gate=W[1]),
    "learning_curves.ridge": lambda: learning_curves.ridge(N, D, 0.1),
    "matching.descent_gap": lambda: matching.descent_gap(POOL[:, :D], POOL[:, D], STEPS, 0.1),
    "demonstration_flow of a transformer": lambda: amplification.demonstration_flow(
        softmax(), FACTORS, PROMPT
    ),
    "demonstration_flow of linear attention": lambda: amplification.demonstration_flow(
        linear_attention.forward, MERGED, PROMPT
    ),
    "demonstration_flow of causal linear attention": lambda: amplification.demonstration_flow(
        causal(), MERGED, PROMPT
    ),
    "demonstration_flow of a long prompt": lambda: amplification.demonstration_flow(
        linear_attention.forward, MERGED, LONG
    ),
    "demonstration_flow of a function": lambda: amplification.demonstration_flow(
        interop.as_forward(SMOOTHER), None, PROMPT
    ),
    "token_flow": lambda: amplification.token_flow(softmax(), FACTORS, PROMPT),
    "token_flow of a long prompt": lambda: amplification.token_flow(
        linear_attention.forward, MERGED, LONG
    ),
    "flow": lambda: amplification.flow(READ, TOKENS),
    "flow, some at a time": lambda: amplification.flow(READ, TOKENS, together=1),
    "amplification_ratio": lambda: amplification.amplification_ratio(FLOW),
    "log_sizes": lambda: amplification.log_sizes(FLOW, [(0, 2), (2, 5)]),
    "disparity.summarise": lambda: disparity.summarise(POOL),
    "implicit_gd.trajectory": lambda: implicit_gd.trajectory(MERGED, PROMPT),
    "implied_weights": lambda: implicit_gd.implied_weights(softmax(), FACTORS, PROMPT),
    "best_common_map": lambda: common_map.best_common_map(POOL, POOL[None]),
    "best_common_query_map": lambda: common_map.best_common_query_map(
        softmax(), FACTORS, PROMPT, POOL[:, :D]
    ),
    "probes.embed_as_queries": lambda: probes.embed_as_queries(softmax(), FACTORS, PROMPT),
    "probes.fit": lambda: probes.fit(STATES, STATES),
    "probes.descend": lambda: probes.descend(TOKENS, PROMPT.y, 3),
    "probes.project_out": lambda: probes.project_out(TOKENS, W),
    "probes.head_contributions": lambda: probes.head_contributions(MERGED_TRACE),
    "heads.importance": lambda: heads.importance(LOSS, 2, 2),
    "heads.first_order": lambda: heads.first_order(LOSS, 2, 2),
    "heads.prune": lambda: heads.prune(MASK),
    "heads.effective_heads": lambda: heads.effective_heads(MASK),
    "alignment.newton": lambda: alignment.newton(PROMPT, 3),
    "alignment.ridge_path": lambda: alignment.ridge_path(PROMPT, STEPS),
    "clipping.truncate": lambda: clipping.truncate(W, 0.5),
    "clipping.condition_number": lambda: clipping.condition_number(W),
    "clipping.curve": lambda: clipping.curve(
        squared_errors, jax.tree.map(lambda leaf: leaf[None], MERGED), BATCH, modules=("w_kq",)
    ),
    "clipping.search": lambda: clipping.search(
        squared_errors, MERGED, BATCH, OTHERS, modules="w_kq"
    ),
    "flow_norm": lambda: scores.flow_norm(FLOW[0]),
    "flow_times_input": lambda: scores.flow_times_input(FLOW[0], POOL[:N]),
    "contribution": lambda: scores.contribution(POOL, QUERY, QUERY),
    "similarity": lambda: scores.similarity(POOL, QUERY),
    "residual": lambda: scores.residual(POOL, QUERY),
    "scores.random": lambda: scores.random(POOL, QUERY, KEY),
    "scores.select": lambda: scores.select(POOL[:, 0], 3),
    "scores.grads": lambda: scores.grads(scores.encode(W, W, POOL), W[0]),
    "scores.encode_flow": lambda: scores.encode_flow(MERGED, POOL),
    "gradient_matching.match": lambda: gradient_matching.match(GRADIENTS, 4),
    "gradient_matching.match, white": lambda: gradient_matching.match(GRADIENTS, 4, whiten=True),
    "medoids": lambda: diversity.medoids(POOL, 3, KEY),
    "determinantal": lambda: diversity.determinantal(POOL, 3),
    "farthest_point": lambda: diversity.farthest_point(POOL, 3),
    "leverage": lambda: diversity.leverage(POOL),
    "baselines.random_subsets": lambda: baselines.random_subsets(KEY, 6, 2, 3),
    "baselines.moment_features": lambda: baselines.moment_features(POOL),
    "oracles.pick_greedily": lambda: oracles.pick_greedily(SCORES, jnp.zeros(4), 2),
    "oracles.leave_one_out": lambda: oracles.leave_one_out(LOSS, jnp.zeros(4)),
    "aligned_risk": lambda: theory_alignment.aligned_risk(VALUES, VALUES, 2.0, 1.0, 0.7, 0.1),
    "oracles.candidate_flows": lambda: oracles.candidate_flows(MERGED, POOL, QUERY, jnp.ones(12)),
    "linear_gradients": lambda: prefix.linear_gradients(I2, pools.Pool(POOL[:, :D], POOL[:, D])),
    "training.fit": lambda: training.fit(TRAINING, jnp.zeros(3), KEY, chunk=4),
    "decoder.forward": lambda: decoder.forward(DECODER, decoder.embed(DECODER, IDS, WORDS), WORDS),
    "decoder.logits": lambda: decoder.logits(DECODER, DECODER.embedding, WORDS),
    "lm.flow.token_flow": lambda: lm_flow.token_flow(
        DECODER,
        decoder.embed(DECODER, IDS, WORDS),
        WORDS,
        lm_flow.margin(DECODER, WORDS, 1, 2),
        layers=(1, 2),
    ),
}

compilations = []


def note(event, seconds, **_):
    if event == COMPILATION:
        compilations.append(seconds)


jax.monitoring.register_event_duration_secs_listener(note)


@pytest.mark.parametrize("name", CALLS)
def test_the_third_call_compiles_nothing(name):
    for _ in range(3):
        compilations.clear()
        CALLS[name]()
    assert compilations == []
