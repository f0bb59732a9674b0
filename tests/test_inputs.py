"""Bad inputs are refused in a sentence that names the argument; values at the edge are accepted."""

import functools
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lsa_lab import estimators, prompts, training
from lsa_lab.analyses import (
    amplification,
    clipping,
    disparity,
    heads,
    implicit_gd,
    patches,
    probes,
)
from lsa_lab.analyses.common_map import best_common_map
from lsa_lab.lm import cached_stream, decoder, readings, text
from lsa_lab.lm import config as lm_config
from lsa_lab.lm import flow as lm_flow
from lsa_lab.lm import prefix as lm_prefix
from lsa_lab.lm.sentences import Sentences, Template
from lsa_lab.lm.weights import check_params
from lsa_lab.lm.weights import init as init_decoder
from lsa_lab.models import (
    constructions,
    linear_attention,
    moments,
    prefixes,
    recurrent,
    sparse_constructions,
    trace,
    transformer,
)
from lsa_lab.prompts import Prompt
from lsa_lab.selection import baselines, diversity, gradient_matching, oracles, scores
from lsa_lab.tasks import linear, pools, tables
from lsa_lab.tasks.linear import LinearTask
from lsa_lab.tasks.pools import PoolTask
from lsa_lab.theory import amplification as flows
from lsa_lab.theory import (
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

# n = 3, d = 2, e = 3, L = H = 2, m = 5; one array of every shape, so that no call makes one.
SHAPES = [(), (1,), (2,), (3,), (4,), (2, 1), (3, 1), (1, 2), (2, 2), (3, 3), (2, 3), (5, 3)]
SHAPES += [(4, 3), (5, 4), (1, 2, 3), (2, 2, 1), (2, 2, 2), (2, 3, 3), (2, 3, 3, 3)]
A = {shape: jnp.ones(shape) for shape in SHAPES}
INF, KEY = float("inf"), jax.random.key(0)
KEYS = jax.random.split(KEY, 2)
PROMPT = Prompt(jnp.ones((3, 2)), A[3,], A[2,], A[()])
COLUMN = PROMPT.replace(y=A[3, 1])
BATCH = jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), PROMPT)
SINGLE = jax.tree.map(lambda leaf: leaf.astype("float32"), PROMPT)
TOKENS = jnp.ones((4, 3))
NARROW, STACKED, BIG_ENDIAN = TOKENS[:, :2], TOKENS[None], np.ones((3, 3), ">f8")
WEIGHTS = linear_attention.init(KEY, 2, 2, 2)
LAYER = jax.tree.map(lambda leaf: leaf[0], WEIGHTS)
RUNS = jax.tree.map(lambda leaf: leaf[None], WEIGHTS)
UNEQUAL = WEIGHTS.replace(w_pv=WEIGHTS.w_pv[:1])
CONFIG = transformer.Config(3, 2, 2, 2)
FACTORS = transformer.init(KEY, CONFIG)
WITH_MLP = transformer.init(KEY, transformer.Config(3, 2, 2, 2, mlp_width=4))
BIASED = transformer.init(KEY, transformer.Config(3, 2, 2, 2, biases=True))
EMPTY, HOLED = PROMPT.replace(x=PROMPT.x[:0], y=A[3,][:0]), PROMPT.x.at[2, 1].set(jnp.nan)
HALF = jax.tree.map(lambda leaf: leaf.astype("float16"), PROMPT)
BROAD = Prompt(jnp.ones((6, 24)), jnp.ones(6), jnp.ones(24), A[()])
MANY = jnp.ones((80, 4))
DELTA = recurrent.Config("delta", 5, layout="bound")
DELTA_PARAMS = recurrent.init(KEY, DELTA)
TASK = LinearTask(3, 2)
ENCODED = scores.encode(A[3, 3], A[3, 3], A[5, 3])
POOL = pools.Pool(np.ones((4, 3)), np.ones(4))
SENTENCES = Sentences("four", ("a", "b", "c", "d"), np.array([0, 1, 0, 1]), ("bad", "good"))
TEMPLATE, I2, SKEW = Template(("bad", "good")), jnp.eye(2), jnp.array([[1.0, 0.5], [0.0, 1.0]])
forward = linear_attention.forward
config_of = partial(transformer.Config, 3, 2, 2, 2)
recurrent_of = partial(recurrent.Config, token_width=3)
decoder_of = partial(lm_config.Config, 2, 2, 2, 4, 8, 16, 10, 5)
WORDS = decoder_of()
DECODER = init_decoder(KEY, WORDS)


def token_flow(**options):
    read = lm_flow.margin(DECODER, WORDS, 7, 2)
    return lm_flow.token_flow(DECODER, jnp.ones((3, 8)), WORDS, read, **options)


def unread(params, tokens):
    """Run a model whose trace has no label slot."""
    walked = forward(params, tokens)
    return trace.Walk(walked.stream, walked.heads)


def fit(params=A[3,], key=KEY, optimizer=None, steps=2, **options):
    task = training.Training(
        lambda params, batch: (params**2).sum(),
        lambda key: A[()],
        optimizer or optax.sgd(0.1),
        steps,
    )
    return training.fit(task, params, key, **options)


WRONG_SHAPES = [  # a call, and the argument
    (lambda: prompts.tokens(COLUMN), "y"),
    (lambda: prompts.tokens(PROMPT.replace(x_query=A[1, 2])), "x_query"),
    (lambda: prompts.tokens(PROMPT.replace(y_query=A[1,])), "y_query"),
    (lambda: prompts.tokens(BATCH), "x"),
    (lambda: prompts.tokens(PROMPT.replace(x=A[3,])), "x"),
    (lambda: prompts.interleaved_tokens(COLUMN), "y"),
    (lambda: prompts.second_moments(PROMPT), "x"),
    (lambda: estimators.ols(COLUMN), "y"),
    (lambda: estimators.ridge(PROMPT, A[2,]), "penalty"),
    (lambda: estimators.mixed_gradient_descent(PROMPT, A[2,], A[3,]), "raw_step_sizes"),
    (lambda: estimators.gradient_descent(PROMPT, A[()]), "step_sizes"),
    (lambda: estimators.gradient_descent(PROMPT, A[2,], A[2, 2]), "preconditioners"),
    (lambda: estimators.gradient_descent_plus_plus(PROMPT, A[2,], A[3,]), "gammas"),
    (lambda: estimators.sparse_posterior_mean(COLUMN, 1, 1.0, 0.1), "y"),
    (lambda: estimators.largest_step(A[3,]), "covariates"),
    (lambda: LinearTask(3, 2, covariance=A[3, 3]), "covariance"),
    (lambda: LinearTask(3, 2, prior_mean=A[2, 1]), "prior_mean"),
    (lambda: linear.sample(KEYS, TASK), "key"),
    (lambda: forward(WEIGHTS, STACKED), "prompt"),
    (lambda: forward(WEIGHTS, NARROW), "weights"),
    (lambda: forward(LAYER, TOKENS), "weights"),
    (lambda: forward(UNEQUAL, TOKENS), "weights"),
    (lambda: forward(WEIGHTS, TOKENS, head_mask=A[2,]), "head_mask"),
    (lambda: moments.layer_maps(WEIGHTS, A[3,]), "S_0"),
    (lambda: moments.layer_maps(WEIGHTS, A[2, 2]), "S_0"),
    (lambda: constructions.gradient_descent(A[2, 1], 2), "step_sizes"),
    (lambda: constructions.gradient_descent_plus_plus(A[2,], A[3,], 2), "γ"),
    (lambda: constructions.preconditioned(A[2, 2]), "preconditioners"),
    (lambda: constructions.prior_attention(A[2,], A[2, 1]), "prior_mean"),
    (lambda: constructions.one_step_optimum(A[2, 3], 3, 0.1), "covariance"),
    (lambda: constructions.preprocess_then_optimise(2, 2, A[3, 1]), "step_sizes"),
    (lambda: transformer.forward(FACTORS, STACKED, CONFIG), "prompt"),
    (lambda: transformer.forward(FACTORS, NARROW, CONFIG), "tokens"),
    (lambda: transformer.predict(FACTORS, NARROW, CONFIG), "tokens"),
    (lambda: transformer.forward(FACTORS, TOKENS, CONFIG, A[2,]), "head_mask"),
    (lambda: transformer.forward(FACTORS, TOKENS, config_of(width=3)), "params"),
    (lambda: recurrent.forward(DELTA_PARAMS, TOKENS, DELTA), "tokens"),
    (lambda: optimum.one_layer(A[2, 2], A[2, 1], 3, 0.1), "task_covariance"),
    (lambda: optimum.one_layer_risk(A[3, 3], A[2, 2], A[2, 2], 3, 0.1), "A"),
    (lambda: risk.gradient_descent(A[2, 2], A[2,], 3, 0.1), "eigenvalues"),
    (lambda: asymptotics.ridgeless_risk(A[2,], A[3,], 2.0, 1.0), "kappa"),
    (lambda: training_dynamics.solve(A[()], A[2, 2], 3, 0.1, A[2, 2]), "times"),
    (lambda: flows.one_shot_jacobian(A[3, 3], A[3, 3], A[3, 1], A[3,]), "token"),
    (lambda: flows.self_coupling(A[3, 3], A[2, 2], A[3,]), "weights"),
    (lambda: generalization.trajectory_bound(A[3, 3], 1.0, 1.0, 3), "updates"),
    (lambda: generalization.trajectory_bound(A[2, 3, 3], A[3, 3], 1.0, 3), "noise_cov"),
    (lambda: amplification.amplification_ratio(A[3, 3]), "flow"),
    (lambda: implicit_gd.trajectory(RUNS, PROMPT), "weights"),
    (lambda: implicit_gd.implied_weights(forward, WEIGHTS, COLUMN), "y"),
    (lambda: heads.prune(A[2,]), "importance"),
    (lambda: heads.losses(lambda mask: mask.sum(1), A[2, 2, 2]), "loss"),
    (lambda: clipping.truncate(A[2,], 0.5), "matrices"),
    (lambda: scores.flow_norm(A[2, 3, 3, 3]), "flow"),
    (lambda: scores.contribution(A[5, 3], A[2, 1]), "query"),
    (lambda: scores.similarity(A[2,], A[2,]), "pool"),
    (lambda: scores.residual(A[5, 3], A[2,], A[3,]), "prior_mean"),
    (lambda: scores.grads(ENCODED, A[2,]), "token"),
    (lambda: scores.select(A[5, 3], 2), "scores"),
    (lambda: gradient_matching.match(A[3,], 2), "gradients"),
    (lambda: fit(A[3,], KEYS), "params"),
]

WRONG_VALUES = [  # a call, and words of the message
    (lambda: constructions.one_step_optimum(I2, 4, -50), "noise_var"),
    (lambda: constructions.scale_skip(WEIGHTS, 0.0), "weight is 0"),
    (lambda: LinearTask(4.5, 2), "n = 4.5"),
    (lambda: LinearTask(True, 2), "n = True"),
    (lambda: LinearTask(4, 0), "d = 0"),
    (lambda: LinearTask(4, 2, covariance=-I2), "eigenvalue -1"),
    (lambda: LinearTask(4, 2, task_covariance=SKEW), "task_covariance"),
    (lambda: LinearTask(4, 2, noise_std=np.array([0.1, -0.1])), "noise_std"),
    (lambda: LinearTask(4, 2, noise_std=np.nan), "noise_std"),
    (lambda: LinearTask(4, 2, prior_mean=[1.0]), "prior_mean"),
    (lambda: LinearTask(4, 2, signal="dense"), "signal"),
    (lambda: LinearTask(4, 2, labels="sign"), "labels"),
    (lambda: LinearTask(4, 2, signal="sphere", task_covariance=I2), "sphere"),
    (lambda: LinearTask(4, 2, sparsity=1, task_covariance=I2), "sparsity"),
    (lambda: LinearTask(4, 2, sparsity=1, drift=0.9), "drift"),
    (lambda: LinearTask(4, 2, drift=1.5), "drift"),
    (lambda: LinearTask(4, 2, correlation=-0.1), "correlation"),
    (lambda: linear.sample_moments(KEY, LinearTask(4, 2, drift=0.5)), "drift"),
    (lambda: linear.sample_moments(KEY, LinearTask(4, 2, labels="signs")), "labels"),
    (lambda: tables.sample(KEY, tables.Table(A[5, 3], A[3,]), 3), "label"),
    (lambda: pools.queries(KEY, PoolTask(4, 3), pools.Population(POOL.x, POOL.x), -4), "count"),
    (lambda: pools.take(POOL, POOL.y > 0), "flatnonzero"),
    (lambda: pools.take(POOL, np.array([0.0, 2.0])), "whole numbers"),
    (lambda: pools.prompt(POOL, np.array([0, 4]), A[3,], A[()]), "0 to 3"),
    (lambda: pools.take(POOL, np.array([-1, 2])), "0 to 3"),
    (lambda: pools.take(POOL.replace(y=np.ones(3)), np.array([3])), "label"),
    (lambda: clipping.truncate(I2, A[2,]), "vmap"),
    (lambda: clipping.kept_rank(np.nan, 0.1), "full_rank"),
    (lambda: clipping.clip(WEIGHTS, [True], "w_kq", 0.5), "layer"),
    (lambda: clipping.truncate(BIG_ENDIAN, 0.5), "astype"),
    (lambda: probes.fit(jnp.ones((40, 2)), jnp.ones((40, 1)), penalty=-0.9), "penalty"),
    (lambda: best_common_map(A[3, 3].astype("float16"), A[2, 3, 3][:1]), "float16"),
    (lambda: estimators.discrete_posterior_means(PROMPT, jnp.zeros((0, 2)), 1.0), "no rows"),
    (lambda: estimators.discrete_posterior_means(PROMPT, I2, 0.0), "noise_var"),
    (lambda: estimators.discrete_posterior_means(SINGLE, SINGLE.x, 1e-50), "float32"),
    (lambda: estimators.ridge(PROMPT, "0.1"), "number"),
    (lambda: estimators.ridge(SINGLE, 1e-39), "too small"),
    (lambda: estimators.ridge(SINGLE, 1e50), "inf in float32"),
    (lambda: estimators.recursive_ridge(SINGLE, 1e-50), "penalty"),
    (lambda: estimators.sparse_posterior_mean(SINGLE, 1, 1e-50, 1.0), "signal_var"),
    (lambda: SENTENCES.select_classes("bad", "bad"), "two or more"),
    (lambda: SENTENCES.take([True, False, False, True]), "flatnonzero"),
    (lambda: readings.shift_scores(np.ones((2, 3)), 1.0), "B, 2"),
    (lambda: readings.shift_scores(np.ones((2, 2)), np.nan), "finite"),
    (lambda: readings.affine_shares([1, 2, np.nan], [1, 2, 3]), "answers before or after are NaN"),
    (lambda: decoder_of(norm="foo"), "layer"),
    (lambda: decoder_of(norm_epsilon=jnp.nan), "norm_epsilon"),
    (lambda: decoder_of(rotary_scaling=(8.0, 4.0, 4.0, 64.0)), "low"),
    (lambda: TEMPLATE.find_label_ids(None), "tokenizer"),
    (lambda: text.ask(TEMPLATE, SENTENCES, SENTENCES, None, 9), "None"),
    (lambda: linear_attention.init(KEY, 0, 1, 2), "num_layers"),
    (lambda: linear_attention.init(KEY, 1, 0, 2), "num_heads"),
    (lambda: linear_attention.init(KEY, 1, 1, 2, jnp.nan), "scale"),
    (lambda: forward(WEIGHTS, TOKENS, head_mask=A[2, 2] * jnp.nan), "head_mask"),
    (lambda: forward(WEIGHTS, TOKENS.astype(int)), "int64"),
    (lambda: forward(WEIGHTS, TOKENS.astype("float32")), "float32"),
    (lambda: forward(WEIGHTS, BIG_ENDIAN), ">f8"),
    (lambda: forward(WEIGHTS, TOKENS, keys="none"), "keys"),
    (lambda: moments.layer_maps(WEIGHTS, jnp.eye(3).at[0, 1].set(0.5)), "symmetric"),
    (lambda: moments.layer_maps(WEIGHTS, jnp.diag(jnp.array([1.0, -0.1, 1.0]))), "eigenvalue"),
    (lambda: moments.layer_maps(WEIGHTS, jnp.diag(jnp.array([1.0, jnp.nan, 1.0]))), "NaN"),
    (lambda: moments.layer_maps(FACTORS, A[3, 3]), "merge"),
    (lambda: prefixes.predictions(forward, WEIGHTS, PROMPT, "causal"), "layout"),
    (lambda: config_of(heads=0), "heads"),
    (lambda: transformer.Config(3, 2, (2, 0), 2), "heads"),
    (lambda: transformer.Config(3, 2, (8,), 2), r"\(8, 1\)"),
    (lambda: transformer.Config(3, 2, [2, 2], 2), "tuple"),
    (lambda: transformer.Config(3, 0, 2, 2), "num_layers"),
    (lambda: transformer.Config(3, 2.5, 2, 2), "num_layers"),
    (lambda: transformer.Config(3, 2, 2, 0), "key_width"),
    (lambda: transformer.Config(1, 2, 2, 2), "token_width"),
    (lambda: config_of(width=0), "width"),
    (lambda: config_of(mlp_width=0), "mlp_width"),
    (lambda: config_of(keys="none"), "keys"),
    (lambda: config_of(kernel="relu"), "kernel"),
    (lambda: config_of(layout="flat"), "layout"),
    (lambda: config_of(layout="interleaved"), "causal"),
    (lambda: config_of(normalise=False), "normalise"),
    (lambda: config_of(init_scale=jnp.inf), "init_scale"),
    (lambda: config_of(final_norm=True), "final_norm"),
    (lambda: config_of(num_positions=0), "num_positions"),
    (lambda: transformer.predict_prefixes(FACTORS, TOKENS, CONFIG), "layout"),
    (lambda: transformer.merge(FACTORS, CONFIG), "kernel"),
    (lambda: recurrent_of("relu"), "kind"),
    (lambda: recurrent_of("delta", inner=2), "inner"),
    (lambda: recurrent_of("delta", largest_step=2.5), "largest_step"),
    (lambda: recurrent_of("delta", diagonal=True), "diagonal"),
    (lambda: recurrent_of("delta", layout="causal"), "layout"),
    (lambda: recurrent_of("delta", key_width=2.5), "key_width"),
    (lambda: recurrent_of("delta", init_scale=0), "init_scale"),
    (lambda: recurrent_of("delta", num_layers=0), "num_layers"),
    (lambda: recurrent.forward(DELTA_PARAMS, jnp.ones((0, 5)), DELTA), "tokens"),
    (lambda: recurrent.forward(DELTA_PARAMS, jnp.ones((4, 5), int), DELTA), "floats"),
    (lambda: recurrent.forward(DELTA_PARAMS, jnp.ones((1, 4, 5)), DELTA), "batch"),
    (lambda: optimum.one_layer(BIG_ENDIAN, A[3, 3], 4, 0.0), "astype"),
    (lambda: scores.similarity(BIG_ENDIAN, A[2,]), "astype"),
    (lambda: diversity.determinantal(SINGLE.x[:, :1], 2, 1e-50), "determinant"),
    (lambda: baselines.stratified(KEY, I2, 1), "labels"),
    (lambda: gradient_matching.gap(I2, [True, False]), "flatnonzero"),
    (lambda: fit(steps=1e3), "steps"),
    (lambda: fit(key=0), "random key"),
    (lambda: fit(optimizer="adam"), "optax"),
    (lambda: fit(optimizer=optax.adam), "optax"),
    (lambda: fit(per_run=A[()]), "per_run"),
    (lambda: fit(files="fit.ckpt"), "Files"),
    (lambda: fit(progress=True), "Progress"),
    (lambda: risk.ols(8, 8, 0.5), "n = 8"),
    (lambda: risk.ols(7, 9, 0.5), "min_norm"),
    (lambda: risk.min_norm(10, 8, 0.5), "ols"),
    (lambda: risk.min_norm(True, 8, 0.1), "n = True"),
    (lambda: risk.rotation_invariant_bound(5, 5, 0.5, 0.0), "signal_norm_sq"),
    (lambda: risk.rotation_invariant_bound(400, 301, 0.5), "301"),
    (lambda: optimum.one_layer(I2, 0 * I2, 3, 0.0), "label"),
    (lambda: optimum.rank_limited_risk(I2, jnp.eye(3), 3, 0.1), "task_covariance"),
    (lambda: depth.best_descent(1.0, 0.1, -1), "depth"),
    (lambda: depth.best_descent_at(0, 3, 0.1, 2), "n = 0"),
    (lambda: depth.best_descent_at(4, 3, 0.1, 10_000), "depth"),
    (lambda: rotating_covariance.best_descent([1.0, -0.1], 2), "eigenvalues"),
    (lambda: rotating_covariance.moving_inverse([0.0, 0.0]), "eigenvalues"),
    (lambda: iteration.iterated_risk(16, 8, 0.1, 400), "steps"),
    (lambda: drift.lms(4, 0.1, 1.1), "rho"),
    (lambda: drift.best_weights(0 * I2, 2, 0.0), "task_covariance"),
    (lambda: drift.best_weights(-I2, 2, 0.1), "task_covariance"),
    (lambda: correlated_prompts.additive(4, 3, 0.1, [0.9]), "correlation"),
    (lambda: learning_curves.additive(4, 3, 0.1, -0.1), "drift"),
    (lambda: learning_curves.delta_rule(4, 3, np.ones(3)), "noise_var"),
    (lambda: learning_curves.delta(4, 3, 0.1, drift=0.9), "drift"),
    (lambda: learning_curves.delta(4, 2, 0.1), "d = 2"),
    (lambda: learning_curves.delta(4, 3, 0.1, 2.0), "step"),
    (lambda: learning_curves.gated_delta(4, 3, 0.1, 0.5, 1.0, np.nan), "scale"),
    (lambda: learning_curves.lms(3, 4, 0.3, 0.0), "step"),
    (lambda: learning_curves.ridge(4, 3, 0.1, 0.0), "penalty"),
    (lambda: asymptotics.ridge_risk(1.0, 1.0, 2.0, 0.1, 0.0), "penalty"),
    (lambda: aligned_risk([1.0, -1.0], A[2,], 1.0, 0.5, 2.0, 0.1), "train"),
    (lambda: aligned_risk([0.0], [1.0], 1.0, 0.5, 2.0, 0.1), "train"),
    (lambda: training_dynamics.loss(1.0, I2, SKEW, 3), "covariance"),
    (lambda: training_dynamics.loss(A[2,], I2, I2, 2), "u is"),
    (lambda: training_dynamics.solve(A[2,], I2, 2.5, 0.1, I2), "n = 2.5"),
    (lambda: training_dynamics.solve(A[2,][:0], I2, 2, 0.1, I2), "times"),
    (lambda: training_dynamics.isotropic_step(1.0, 2, 3, 1.0, -A[2,]), "initial_step"),
    (lambda: plateaus.plateaus(0 * A[2,], 5), "σ² = 0"),
    (lambda: matching.moment_spread(I2[:1]), "x has 1 rows"),
    (lambda: matching.least_squares_gap(I2, A[2,], -0.1), "objective"),
    (lambda: generalization.summands(I2[None], 0.1, centred=True), "centred"),
    (lambda: generalization.summands(I2[None], 0.0), "noise_cov"),
    (lambda: generalization.summands(I2[None], jnp.eye(4).at[0, 1].set(0.5)), "symmetric"),
    (lambda: generalization.summands(I2[None], 0 * jnp.eye(4)), "definite"),
    (lambda: generalization.measured_gap(A[2,], A[2,], 2.0, 2.0), "low"),
    (lambda: flows.geometric_gain(jnp.array(-1.0), -4), "num_layers"),
    (lambda: implicit_gd.trajectory(WEIGHTS, PROMPT, keys="causal"), "no common layer map"),
    (lambda: implicit_gd.trajectory(WEIGHTS, PROMPT, keys="demonstration"), "'demonstration'"),
    (lambda: implicit_gd.trajectory(FACTORS, PROMPT), r"not .*transformer.*\.Params: softmax"),
    (lambda: patches.virtual_demonstrations(FACTORS, PROMPT), r"not .*transformer.*\.Params"),
    (lambda: implicit_gd.implied_weights(unread, WEIGHTS, PROMPT), r"label slot.*flow\(read"),
    (lambda: amplification.demonstration_flow(forward, WEIGHTS, BATCH), "vmap"),
    (lambda: amplification.demonstration_flow(unread, WEIGHTS, PROMPT), "not the Trace .*flow"),
    (lambda: amplification.moment_flow(WEIGHTS, EMPTY), "at least one demonstration"),
    (lambda: amplification.moment_flow(FACTORS, PROMPT), "moment form exists for"),
    (lambda: amplification.flow(lambda x: x, TOKENS), "one number for each layer"),
    (lambda: heads.losses(jnp.sum, jnp.zeros((2, 2, 2))), "head_mask 0 of 2 is all zero"),
    *((lambda counts=counts: heads.prune(A[3, 3], counts), "pass the head_counts of the config")
      for counts in ((3, 1), (2, 1, 1), (3, 0, 1))),
    (lambda: heads.prune(INF * A[2, 3]), r"6 NaN or infinite.*\(0, 0\)"),
    (lambda: heads.effective_heads(jnp.array([[1.0, jnp.nan]])), r"1 NaN.*\(0, 1\)"),
    (lambda: heads.mask_heads(FACTORS, ("w_q", "w_o"), A[2, 2]), "one of them"),
    (lambda: heads.mask_heads(WITH_MLP, "mlp_in", A[2, 2]), "have no heads"),
    (lambda: clipping.truncate(jnp.nan * I2, 0.5), "NaN or infinity"),
    (lambda: clipping.Edit(0, "w_q", 1.0), r"lies in \[0, 1\); for rank 0 use 'drop'"),
    (lambda: clipping.clip(WEIGHTS, 0, "mlp", 0.5), "called 'mlp': this model has w_"),
    (lambda: clipping.clip(FACTORS, (0, 5), "w_q", 0.5), "has 0 to 1"),
    (lambda: clipping.clip(FACTORS, -1, "w_q", 0.5), "has 0 to 1"),
    (lambda: clipping.kept_ranks(FACTORS, clipping.Edit((), "w_q", 0.5)), "0 to 1"),
    (lambda: clipping.clip(RUNS, 0, "w_kq", 0.5), "an axis of runs, use jax.vmap"),
    (lambda: clipping.condition_numbers(RUNS, "w_kq"), "use jax.vmap"),
    (lambda: probes.fit(MANY[:79], MANY[:79]), "79 prompts for a probe of width 4.*80 or more"),
    (lambda: probes.fit(MANY, MANY[:79]), "one row for each of states"),
    (lambda: probes.fit(MANY, jnp.nan * MANY), "targets"),
    (lambda: probes.r_squared(MANY[:4, :1], MANY[:3], MANY[:3, 0]), "a row for each of states"),
    (lambda: probes.r_squared(MANY[:4, :1], MANY[:3], 0 * MANY[:3, :1]), "nothing to explain"),
    (lambda: probes.descend(MANY[:4], A[4,], 3), "and one for the query"),
    (lambda: probes.descend(MANY[:5], A[4,], 2.5), "num_steps = 2.5: it is a whole number"),
    (lambda: probes.descend(MANY[:5], A[4,], 2, 1.5), "share = 1.5: choose one between 0"),
    (lambda: probes.embed_as_queries(forward, WEIGHTS, PROMPT, layer=3), "that after 0 to"),
    (lambda: probes.preprocess(BATCH), r"use jax\.vmap for a batch"),
    (lambda: probes.head_contributions(unread(WEIGHTS, TOKENS)), "needs a label slot"),
    (lambda: best_common_map(A[3, 3], A[2, 3, 3]), "3 tokens of width 3 always have a common map"),
    (lambda: best_common_map(A[5, 4], A[2, 3, 3]), "T as in tokens"),
    (lambda: estimators.lasso(PROMPT, jnp.nan), "penalty = nan"),
    (lambda: estimators.gaussian_posterior_mean(PROMPT, 1.0, 0.0), "noise_var = 0.0.*use ols"),
    (lambda: estimators.gaussian_posterior_mean(PROMPT, 0.0, 1.0), "signal_var = 0.0"),
    (lambda: estimators.gaussian_posterior_mean(PROMPT, 1, 1, prior_covariance=-I2), "definite"),
    (lambda: estimators.gaussian_posterior_mean(PROMPT, 1, 1, prior_covariance=SKEW), "symmetric"),
    (lambda: estimators.sparse_posterior_mean(PROMPT, 2, 1.0, 0.0), "noise_var = 0.0.*use ols"),
    (lambda: estimators.sparse_posterior_mean(BROAD, 8, 1.0, 0.1), "735471 supports of 8 among 24"),
    (lambda: estimators.descent_predictions(A[2,], A[2,], [np.nan], [4]), "step_sizes"),
    (lambda: estimators.descent_predictions(A[2,], A[2,], [0.1], np.array([-4])), "not negative"),
    (lambda: estimators.gradient_descent(PROMPT, [0.1, np.inf]), "step_sizes holds 1 NaN"),
    (lambda: estimators.preprocessed_gradient_descent(PROMPT, 0.0, 3), "step_size = 0.0"),
    (lambda: estimators.ols(PROMPT.replace(x=HOLED)), r"x holds 1 .*\(2, 1\)"),
    (lambda: estimators.ols(PROMPT.replace(y=INF * A[3,])), r"y holds 3 .*\(0,\)"),
    (lambda: estimators.largest_step(HOLED), r"x holds 1 .*\(2, 1\)"),
    (lambda: estimators.ols(PROMPT.replace(x=PROMPT.x.astype(int))), "one floating dtype"),
    (lambda: estimators.ols(EMPTY), "at least one demonstration"),
    *((lambda rule=rule: rule(HALF), "no matrix is factored in it")
      for rule in (estimators.ols, partial(estimators.ridge, penalty=0.1),
                   partial(estimators.lasso, penalty=0.1), estimators.descent_modes,
                   lambda p: estimators.largest_step(p.x))),
    (lambda: constructions.scale_skip(transformer.init(KEY, config_of(norm=True)), 0.5), "homogen"),
    (lambda: constructions.scale_skip(WITH_MLP, 0.5), "not homogeneous"),
    (lambda: constructions.scale_skip(BIASED, 0.5), "bias"),
    (lambda: transformer.forward(BIASED, TOKENS, CONFIG), "config"),
    (lambda: constructions.preprocess_then_optimise(5, 0, A[2,]), "num_heads = 0 .*choose 1 to 5"),
    (lambda: constructions.preprocess_then_optimise(5, 6, A[2,]), "num_heads = 6 .*choose 1 to 5"),
    (lambda: constructions.preprocess_then_optimise(5, 5, A[2,], A[1,]), "raw_step_sizes"),
    (lambda: gradient_matching.match(A[5, 3].at[3, 0].set(jnp.nan), 2), "gradients"),
    (lambda: gradient_matching.match(INF * A[4, 3], 2), "gradients"),
    (lambda: gradient_matching.match(np.ones((4, 2), int), 2), "gradients"),
    (lambda: gradient_matching.match(A[5, 3], 2, max_swaps=-1), "max_swaps"),
    (lambda: readings.auc(np.zeros((3, 2)), [1, 1, 1]), "none of class 0: take queries of every"),
    (
        lambda: readings.best_threshold_shift(np.zeros((3, 3)), [0, 1, 2]),
        "scores of 3 labels: .* needs two",
    ),
    (lambda: readings.accuracy(np.zeros((3, 2)), [0, 1]), r"shapes \(3, 2\) and \(2,\); expected"),
    (lambda: readings.accuracy(np.zeros((3, 2)), [0, 1, 2]), "whole numbers from 0 to C - 1"),
    (lambda: readings.accuracy([[0, np.nan]], [0]), "1 scores are NaN or infinite"),
    (lambda: fit(steps=0), "steps = 0"),
    (lambda: fit(chunk=0), "chunk = 0"),
    (lambda: fit(A[2, 3][:0], KEYS[:0]), "key has shape"),
    (lambda: fit(key=KEYS[None]), "key has shape"),
    (lambda: fit({"w": A[5, 3]}, KEYS), r"params.w has shape \(5, 3\): with 2 keys"),
    (lambda: fit(A[2, 3], KEYS, per_run=A[2,]), "optimizer is no function"),
    (lambda: fit(per_run=KEY, optimizer=optax.sgd), "per_run has a typed key"),
    (lambda: fit({"w": jnp.nan * A[3,]}), "w is not finite"),
    (lambda: fit({"w": jnp.arange(3)}), "w is int64: give floats"),
    (lambda: fit({"w": "a"}), "w is <U1: give floats"),
    (lambda: fit({}), "params is {}: it has no array to train"),
    (lambda: replace(WORDS, num_groups=3), "does not divide num_heads = 2"),
    (lambda: decoder_of(rotary_width=3), "an even number up to key_width = 4"),
    (lambda: replace(WORDS, num_layers=2.0), "num_layers = 2.0: it is a whole"),
    (lambda: decoder.embed(DECODER, jnp.zeros(6, int), WORDS), "6 tokens, .* context is 5"),
    (lambda: decoder.embed(DECODER, jnp.zeros((1, 3), int), WORDS), "one prompt"),
    (lambda: decoder.embed(DECODER, np.array([1, 10]), WORDS), "words are numbers from 0"),
    (lambda: decoder.embed(DECODER, np.array([1.0]), WORDS), "expected whole numbers"),
    (lambda: decoder.logits(DECODER, jnp.ones(8), WORDS, np.array([10])), "are numbers from 0"),
    (lambda: check_params(DECODER.replace(mlp_gate=None), WORDS), "params lacks mlp_gate"),
    (lambda: check_params(DECODER, decoder_of(gated=False)), "has mlp_gate"),
    (lambda: cached_stream.resume(DECODER, None, WORDS, 2), "this model has layers 0 to 1"),
    (lambda: cached_stream.check_edit(DECODER, DECODER), "one layer's Params without the axis L"),
    (lambda: cached_stream.take_layer(DECODER, 2), "of 2 layers are numbers from 0 to 1"),
    (lambda: cached_stream.embed_questions(DECODER, np.zeros(2, int), np.array([[10]]), WORDS),
     "words are numbers from"),
    (lambda: token_flow(layers=(0,)), "after layers 1 to 2"),
    (lambda: token_flow(layers=(2, 1)), r"layers \(2, 1\): name each once, in ascending order"),
    (lambda: token_flow(layers=np.array([1, 2]), place=3), "place = 3: the prompt has 3 tokens"),
    (lambda: token_flow(layers=(1,), place=-4), "place = -4"),
    (lambda: lm_flow.margin(DECODER, WORDS, 7, 10), "words are numbers from 0 to 9"),
    (lambda: lm_prefix.init(KEY, DECODER, 0), "one row at least"),
    (lambda: lm_prefix.loss(A[1, 2], DECODER, None, config=WORDS, label_ids=jnp.array([1, 2])),
     r"a prefix is \[k, D\]"),
]  # fmt: skip


@pytest.fixture(scope="module")
def compiled():
    """The programs compiled so far, or taken from the cache on disk."""
    programs = []

    def note(event, *_, **__):
        if event.endswith("backend_compile_duration"):
            programs.append(event)

    jax.monitoring.register_event_duration_secs_listener(note)
    yield programs
    jax.monitoring.unregister_event_duration_listener(note)


def refuse(call, words):
    with pytest.raises((ValueError, TypeError, AssertionError), match=words) as raised:
        call()
    assert len(str(raised.value).splitlines()) <= 3


def test_a_wrong_shape_is_refused_before_anything_is_compiled(compiled):
    for call, argument in WRONG_SHAPES:
        before = len(compiled)
        refuse(call, rf"\b{argument}\b")
        assert len(compiled) == before, argument
    jax.jit(lambda x: 3 * x)(A[3,])
    assert len(compiled) > before  # Control: the listener hears a program


@pytest.mark.parametrize(("call", "words"), WRONG_VALUES)
def test_a_wrong_value_is_refused_in_a_sentence(call, words):
    refuse(call, words)


ROWS = np.random.default_rng(0).normal(size=(5, 3))
FIVE = Prompt(*map(jnp.asarray, (ROWS[:, :2], ROWS[:, 2], ROWS[0, :2], 0.0)))
TABLE = tables.Table(jnp.asarray(ROWS[:, :2]), jnp.asarray(ROWS[:, 2]))
TWO = dict(shares=(0.5, 0.5))


def read(num_tokens, layout):
    """Run a transformer of three positions on so many tokens."""
    keys = "causal" if layout == "interleaved" else "demonstrations"
    config = transformer.Config(2, 1, 1, 1, num_positions=3, layout=layout, keys=keys)
    tokens = jnp.asarray(ROWS[:num_tokens, :2])
    return transformer.forward(transformer.init(KEY, config), tokens, config)


def attend(count):
    return forward(linear_attention.init(KEY, 1, 1, 2), jnp.asarray(ROWS[:count]))


def ratio(span):
    return amplification.amplification_ratio(jnp.ones((1, 4, 2)), [(0, 1), span])


def pick(size):
    return oracles.pick_greedily(lambda chosen: chosen, jnp.zeros(3), size)


EDGES = {  # a call, what it accepts, what it refuses
    "repeated prompts": (lambda m: prompts.repeat_demonstrations(FIVE, m), [1, 5], [0, 6]),
    "sparsity": (lambda s: LinearTask(4, 3, sparsity=s), [1, 3], [0, 4]),
    "rows of a table": (lambda n: tables.sample(KEY, TABLE, n), [1, 4], [0, 5, 2.5]),
    "tables": (
        lambda values: tables.standardise(values, ["a", "b", "c"]),
        [ROWS[:2, :2]],
        [ROWS[:1], ROWS[:, :1], ROWS[0]],
    ),
    "pools": (
        lambda changes: PoolTask(**dict(m=4, d=2) | changes),
        [
            *({"shares": (0.0, 1.0)}, {"num_weights": 1}, {"copies": 0}, {"separation": 0}),
            *({"flips": 0}, {"flips": 1}, {"closeness": 0}, {"closeness": 1}, {"tail": 2.1}),
            *({"labels": "cluster"} | TWO, {"num_weights": "cluster"}, {"shares": (1 - 5e-7,)}),
        ],
        [
            *({"shares": (-0.1, 1.1)}, {"shares": (0.9,)}, {"shares": (1.1,)}, {"num_weights": 0}),
            *({"copies": 1}, {"copies": -0.1}, {"separation": INF}, {"flips": 1.1}, {"tail": 2}),
            *({"flips": -0.1}, {"closeness": 1.1}, {"labels": "cluster"}, {"labels": "clusters"}),
            *({"m": 0}, {"separation": -0.1}, {"noise_std": -0.1}, {"shares": (1 - 2e-6,)}),
            *({"shares": (float("nan"), 1.0)}, {"shares": ()}),
        ],
    ),
    "a determinant": (
        lambda options: diversity.determinantal(jnp.asarray(ROWS), *options),
        [(3, 0.0), (4, 0.1)],
        [(4, 0.0), (3, -0.1), (3, INF)],
    ),
    "scores": (lambda size: scores.select(jnp.arange(3.0), size), [1, 3], [0, 4]),
    "random subsets": (lambda size: baselines.random_subsets(KEY, 3, size, 1), [1, 3], [0, 4]),
    "matched gradients": (lambda size: gradient_matching.match(ROWS, size), [1, 5], [0, 6]),
    "gaps": (
        lambda indices: gradient_matching.gap(ROWS, np.array(indices)),
        [[0], [4, 0]],
        [[5], [-1], [1, 1]],
    ),
    "greedy picks": (pick, [1, 3], [0, 4]),
    "ranks": (lambda rank: clipping.kept_rank(rank, 0.5), [1], [0]),
    "rates": (lambda rate: clipping.kept_rank(4, rate), [0, 0.99], [-0.1, 1, "drop"]),
    "matrices": (clipping.singular_values, [ROWS], [ROWS[0], ROWS.astype(int)]),
    "importance": (
        lambda sizes: heads.importance(lambda mask: mask.sum(), *sizes), [(1, 2), (2, 1)], [(1, 1)]
    ),
    "spans": (ratio, [(1, 2), (3, 4), (0, 4)], [(2, 2), (-1, 2), (3, 5), (3, 2)]),
    "flows": (lambda n: amplification.amplification_ratio(jnp.ones((1, n, 2))), [2], [1]),
    "layers": (lambda count: disparity.summarise(jnp.ones((2, count))), [2], [1]),
    "groups": (lambda count: sparse_constructions.coordinate_groups(3, count), [1, 3], [0, 4]),
    "initial scales": (lambda scale: config_of(init_scale=scale), [0.1], [0, INF]),
    "tokens of linear attention": (attend, [2], [1]),
    "tokens of a transformer": (lambda count: read(count, "merged"), [2, 3], [1, 4]),
    "interleaved tokens": (lambda count: read(count, "interleaved"), [1, 3], [2, 4, 5]),
    "sparsity of weights": (
        lambda s: estimators.sparse_posterior_mean(FIVE, s, 1.0, 1.0), [1, 2], [0, 3, 1.0]
    ),
    "steps": (
        lambda steps: estimators.preprocessed_gradient_descent(FIVE, 0.1, steps), [0], [-1, 1.0]
    ),
    "penalties": (lambda penalty: estimators.lasso(FIVE, penalty), [0.0], [-0.1]),
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_values_at_the_edge_are_accepted_and_those_beyond_refused(name):
    call, accepted, refused = EDGES[name]

    def run(value):
        call(value)

    for value in accepted:  # traced: all is checked, and nothing is compiled
        jax.eval_shape(functools.partial(run, value))
    for value in refused:
        with pytest.raises(ValueError):  # noqa: PT011  the table above has the words
            print(name, value, call(value))
