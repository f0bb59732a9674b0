"""Bad inputs are refused in a sentence that names the argument; values at the edge are accepted."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lsa_lab import estimators, prompts, training
from lsa_lab.analyses import amplification, clipping, disparity, heads, implicit_gd, probes
from lsa_lab.analyses.common_map import best_common_map
from lsa_lab.arguments import check_finite
from lsa_lab.lm import cached_stream, decoder, readings, text
from lsa_lab.lm import config as lm_config
from lsa_lab.lm import flow as lm_flow
from lsa_lab.lm import prefix as lm_prefix
from lsa_lab.lm.sentences import Sentences, Template
from lsa_lab.lm.weights import check_params
from lsa_lab.lm.weights import init as init_decoder
from lsa_lab.models import (
    constructions,
    effective,
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
    learning_curves,
    matching,
    optimum,
    plateaus,
    risk,
    rotating_covariance,
    training_dynamics,
)
from lsa_lab.theory.alignment import aligned_risk

# n = 3, d = 2, e = 3, L = H = 2, m = 5; one array of every shape.
SHAPES = [(), (1,), (2,), (3,), (4,), (2, 1), (3, 1), (1, 2), (2, 2), (3, 2), (3, 3), (2, 3)]
SHAPES += [(5, 3), (4, 3), (5, 4), (1, 4, 2), (1, 2, 3), (2, 2, 2), (2, 3, 3)]
SHAPES += [(0,), (0, 5), (2, 3, 3, 3)]
A = {shape: jnp.ones(shape) for shape in SHAPES}
INF, KEY = float("inf"), jax.random.key(0)
KEYS = jax.random.split(KEY, 2)
I2, I3, SKEW = jnp.eye(2), jnp.eye(3), jnp.array([[1.0, 0.5], [0.0, 1.0]])
TOKENS, MANY, BIG_ENDIAN = jnp.ones((4, 3)), jnp.ones((80, 4)), np.ones((3, 3), ">f8")
NARROW = TOKENS[:, :2]
PROMPT = Prompt(A[3, 2], A[3,], A[2,], A[()])
COLUMN, EMPTY = PROMPT.replace(y=A[3, 1]), PROMPT.replace(x=PROMPT.x[:0], y=A[0,])
SINGLE, HALF = (
    jax.tree.map(lambda leaf, dtype=dtype: leaf.astype(dtype), PROMPT)
    for dtype in ("float32", "float16")
)
HOLES = PROMPT.x.at[2, 1].set(jnp.nan)
BROAD = Prompt(jnp.ones((6, 24)), jnp.ones(6), jnp.ones(24), A[()])
ROWS = np.random.default_rng(0).normal(size=(5, 3))
FIVE = Prompt(*map(jnp.asarray, (ROWS[:, :2], ROWS[:, 2], ROWS[0, :2], 0.0)))
TABLE = tables.Table(FIVE.x, FIVE.y)
POOL = pools.Pool(np.ones((4, 3)), np.ones(4))
WEIGHTS = linear_attention.init(KEY, 2, 2, 2)
LAYER = jax.tree.map(lambda leaf: leaf[0], WEIGHTS)
RUNS = jax.tree.map(lambda leaf: leaf[None], WEIGHTS)
UNEQUAL = WEIGHTS.replace(w_pv=WEIGHTS.w_pv[:1])
CONFIG = transformer.Config(3, 2, 2, 2)
FACTORS, WITH_MLP, BIASED, NORMED = (
    transformer.init(KEY, replace(CONFIG, **change))
    for change in ({}, {"mlp_width": 4}, {"biases": True}, {"norm": True})
)
DELTA = recurrent.Config("delta", 5, layout="bound")
DELTA_PARAMS = recurrent.init(KEY, DELTA)
SENTENCES = Sentences("four", ("a", "b", "c", "d"), np.array([0, 1, 0, 1]), ("bad", "good"))
TEMPLATE = Template(("bad", "good"))
forward = linear_attention.forward
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


def read(tokens, layout):
    """Run a transformer of three positions."""
    keys = "causal" if layout == "interleaved" else "demonstrations"
    config = transformer.Config(2, 1, 1, 1, num_positions=3, layout=layout, keys=keys)
    return transformer.forward(transformer.init(KEY, config), tokens, config)


ARGUMENTS = [  # a function, the arguments of a call, values that it refuses, and values at the edge
    (prompts.repeat_demonstrations, dict(prompt=FIVE), dict(count=[0, 6]), dict(count=[1, 5])),
    (LinearTask, dict(n=4, d=2), dict(
        n=[4.5, True], d=[0], sparsity=[0, 3], covariance=[-I2, A[3, 3]], task_covariance=[SKEW],
        noise_std=[np.array([0.1, -0.1]), np.nan], prior_mean=[[1.0], A[2, 1]], signal=["dense"],
        labels=["sign"], drift=[1.5], correlation=[-0.1]), dict(sparsity=[1, 2])),
    (LinearTask, dict(n=4, d=2, task_covariance=I2), dict(signal=["sphere"], sparsity=[1])),
    (LinearTask, dict(n=4, d=2, sparsity=1), dict(drift=[0.9])),
    (linear.sample, dict(task=LinearTask(3, 2)), dict(key=[KEYS])),
    (tables.sample, dict(key=KEY, table=TABLE), dict(n=[0, 5, 2.5]), dict(n=[1, 4])),
    (partial(tables.standardise, names=["a", "b", "c"]), {}, {}, dict(values=[ROWS[:2, :2]])),
    (PoolTask, dict(m=4, d=2), dict(
        m=[0], separation=[-0.1, INF], noise_std=[-0.1], copies=[1, -0.1], flips=[1.1, -0.1],
        closeness=[1.1], tail=[2], labels=["cluster", "clusters"], num_weights=[0],
        shares=[(-0.1, 1.1), (0.9,), (1.1,), (1 - 2e-6,), (np.nan, 1.0), ()]), dict(
        separation=[0], copies=[0], flips=[0, 1], closeness=[0, 1], tail=[2.1],
        num_weights=[1, "cluster"], shares=[(0.0, 1.0), (1 - 5e-7,)])),
    (PoolTask, dict(m=4, d=2, shares=(0.5, 0.5)), {}, dict(labels=["cluster"])),
    (pools.queries, dict(key=KEY, task=PoolTask(4, 3), population=pools.Population(I2, I2)),
     dict(count=[-4])),
    (estimators.ridge, dict(prompt=PROMPT), dict(penalty=[A[2,], "0.1"])),
    (estimators.ridge, dict(prompt=SINGLE), dict(penalty=[1e-39, 1e50])),
    (estimators.lasso, dict(prompt=FIVE), dict(penalty=[-0.1, jnp.nan]), dict(penalty=[0.0])),
    (estimators.gaussian_posterior_mean, dict(prompt=PROMPT, signal_var=1, noise_var=1), dict(
        noise_var=[0.0], signal_var=[0.0], prior_covariance=[-I2, SKEW])),
    (estimators.sparse_posterior_mean, dict(prompt=FIVE, signal_var=1.0, noise_var=1.0),
     dict(sparsity=[0, 3, 1.0]), dict(sparsity=[1, 2])),
    (estimators.sparse_posterior_mean,
     dict(prompt=SINGLE, sparsity=1, signal_var=1.0, noise_var=1.0),
     dict(signal_var=[1e-50], noise_var=[0.0])),
    (estimators.discrete_posterior_means, dict(prompt=SINGLE, tasks=SINGLE.x, noise_var=1.0),
     dict(tasks=[jnp.zeros((0, 2))], noise_var=[0.0, 1e-50])),
    (estimators.mixed_gradient_descent, dict(prompt=PROMPT, step_sizes=A[3,]),
     dict(raw_step_sizes=[A[2,]])),
    (estimators.gradient_descent, dict(prompt=PROMPT, step_sizes=A[2,]),
     dict(step_sizes=[A[()], [0.1, np.inf]], preconditioners=[A[2, 2]])),
    (estimators.gradient_descent_plus_plus, dict(prompt=PROMPT, step_sizes=A[2,]),
     dict(gammas=[A[3,]])),
    (estimators.preprocessed_gradient_descent, dict(prompt=FIVE, step_size=0.1, num_steps=3),
     dict(step_size=[0.0], num_steps=[-1, 1.0]), dict(num_steps=[0])),
    (partial(estimators.descent_predictions, A[2,], A[2,]), dict(step_sizes=[0.1], num_steps=[4]),
     dict(step_sizes=[[np.nan]], num_steps=[np.array([-4])])),
    (linear_attention.init, dict(key=KEY, num_layers=1, num_heads=1, d=2),
     dict(num_layers=[0], num_heads=[0], scale=[jnp.nan])),
    (forward, dict(params=WEIGHTS, tokens=TOKENS),
     dict(head_mask=[A[2,], A[2, 2] * jnp.nan], keys=["none"])),
    (constructions.gradient_descent, dict(d=2), dict(step_sizes=[A[2, 1]])),
    (constructions.preconditioned, {}, dict(preconditioners=[A[2, 2]])),
    (constructions.prior_attention, dict(step_sizes=A[2,]), dict(prior_mean=[A[2, 1]])),
    (constructions.one_step_optimum, dict(covariance=I2, n=3, noise_var=0.1),
     dict(covariance=[A[2, 3]], noise_var=[-50])),
    (constructions.preprocess_then_optimise, dict(d=5, num_heads=5, step_sizes=A[2,]),
     dict(num_heads=[0, 6], step_sizes=[A[3, 1]], raw_step_sizes=[A[1,]])),
    (constructions.scale_skip, dict(params=WEIGHTS), dict(weight=[0.0])),
    (sparse_constructions.coordinate_groups, dict(d=3),
     dict(num_heads=[0, 4]), dict(num_heads=[1, 3])),
    (transformer.Config, dict(token_width=3, num_layers=2, heads=2, key_width=2), dict(
        token_width=[1], num_layers=[0, 2.5], heads=[0, (2, 0), (8,), [2, 2]], key_width=[0],
        width=[0], mlp_width=[0], keys=["none"], kernel=["relu"], layout=["flat", "interleaved"],
        normalise=[False], init_scale=[0, INF], final_norm=[True], num_positions=[0]),
     dict(init_scale=[0.1])),
    (forward, dict(params=WEIGHTS), dict(tokens=[TOKENS[:1]]), dict(tokens=[TOKENS[:2]])),
    (read, dict(layout="merged"), dict(tokens=[ROWS[:1, :2], ROWS[:4, :2]]),
     dict(tokens=[ROWS[:2, :2], ROWS[:3, :2]])),
    (read, dict(layout="interleaved"), dict(tokens=[ROWS[:2, :2], ROWS[:4, :2], ROWS[:5, :2]]),
     dict(tokens=[ROWS[:1, :2], ROWS[:3, :2]])),
    (transformer.forward, dict(params=FACTORS, tokens=TOKENS, config=CONFIG),
     dict(tokens=[NARROW], head_mask=[A[2,]], params=[BIASED])),
    (recurrent.Config, dict(kind="delta", token_width=3), dict(
        kind=["relu"], inner=[2], largest_step=[2.5], diagonal=[True], layout=["causal"],
        key_width=[2.5], init_scale=[0], num_layers=[0])),
    (recurrent.forward, dict(params=DELTA_PARAMS, config=DELTA),
     dict(tokens=[TOKENS, A[0, 5]])),
    (optimum.one_layer, dict(covariance=A[2, 2], task_covariance=I2, n=3, noise_var=0.0),
     dict(task_covariance=[A[2, 1]], covariance=[BIG_ENDIAN])),
    (optimum.one_layer_risk, dict(covariance=I2, task_covariance=I2, n=3, noise_var=0.1),
     dict(A=[A[3, 3]])),
    (optimum.rank_limited_risk, dict(covariance=I2, n=3, noise_var=0.1),
     dict(task_covariance=[A[3, 3]])),
    (risk.ols, dict(n=9, d=8, noise_var=0.5), dict(n=[8, 7, True])),
    (risk.min_norm, dict(n=9, d=8, noise_var=0.5), dict(n=[8])),
    (risk.rotation_invariant_bound, dict(n=400, d=5, noise_var=0.5),
     dict(signal_norm_sq=[0.0], d=[301])),
    (risk.gradient_descent, dict(step_sizes=A[2,], n=3, noise_var=0.1),
     dict(eigenvalues=[A[2, 2]])),
    (asymptotics.ridgeless_risk, dict(alpha=A[2,], tau=2.0, noise_var=1.0), dict(kappa=[A[3,]])),
    (asymptotics.ridge_risk, dict(alpha=1.0, kappa=1.0, tau=2.0, noise_var=0.1),
     dict(penalty=[0.0])),
    (aligned_risk, dict(test=A[2,], alpha=1.0, kappa=0.5, tau=2.0, noise_var=0.1),
     dict(train=[[1.0, -1.0], [0.0, 0.0]])),
    (depth.best_descent, dict(alpha=1.0, noise_var=0.1), dict(depth=[-1]), dict(depth=[0])),
    (depth.best_descent_at, dict(n=4, d=3, noise_var=0.1, depth=2), dict(n=[0], depth=[10_000])),
    (rotating_covariance.best_descent, dict(depth=2), dict(eigenvalues=[[1.0, -0.1]])),
    (rotating_covariance.moving_inverse, {}, dict(eigenvalues=[[0.0, 0.0]])),
    (depth.iterated, dict(n=16, d=8, noise_var=0.1), dict(steps=[400])),
    (drift.lms, dict(d=4, noise_var=0.1), dict(rho=[1.1])),
    (drift.best_weights, dict(d=2, noise_var=0.0), dict(task_covariance=[0 * I2, -I2])),
    (correlated_prompts.additive, dict(n=4, d=3, noise_var=0.1), dict(correlation=[[0.9]])),
    (learning_curves.additive, dict(n=4, d=3, noise_var=0.1), dict(drift=[-0.1])),
    (learning_curves.delta_rule, dict(n=4, d=3), dict(noise_var=[np.ones(3)])),
    (learning_curves.delta, dict(n=4, d=3, noise_var=0.1), dict(drift=[0.9], d=[2], step=[2.0])),
    (learning_curves.gated_delta, dict(n=4, d=3, noise_var=0.1, step=0.5, gate=1.0),
     dict(scale=[np.nan])),
    (learning_curves.lms, dict(n=3, d=4, noise_var=0.3), dict(step=[0.0])),
    (learning_curves.ridge, dict(n=4, d=3, noise_var=0.1), dict(penalty=[0.0])),
    (training_dynamics.loss, dict(u=1.0, U=I2, covariance=I2, n=3),
     dict(u=[A[2,]], covariance=[SKEW])),
    (training_dynamics.solve, dict(times=A[2,], covariance=I2, n=3, initial_u=0.1, initial_U=I2),
     dict(times=[A[()], A[0,]], n=[2.5])),
    (training_dynamics.isotropic_step, dict(t=1.0, d=2, n=3, eigenvalue=1.0),
     dict(initial_step=[-A[2,]])),
    (flows.geometric_gain, dict(coupling=jnp.array(-1.0)), dict(num_layers=[-4])),
    (generalization.trajectory_bound, dict(updates=A[2, 3, 3], subgaussian=1.0, n=3),
     dict(noise_cov=[A[3, 3]])),
    (generalization.trajectory_bound, dict(noise_cov=1.0, subgaussian=1.0, n=3),
     dict(updates=[A[3, 3]])),
    (generalization.summands, dict(updates=I2[None], noise_cov=0.1),
     dict(centred=[True], noise_cov=[0.0, jnp.eye(4).at[0, 1].set(0.5), 0 * jnp.eye(4)])),
    (matching.least_squares_gap, dict(x=I2, y=A[2,]), dict(objective=[-0.1])),
    (amplification.amplification_ratio, {},
     dict(flow=[A[3, 3], jnp.ones((1, 1, 2))]), dict(flow=[A[1, 2, 3]])),
    (amplification.amplification_ratio, dict(flow=A[1, 4, 2]),
     dict(spans=[[(0, 1), span] for span in ((2, 2), (-1, 2), (3, 5), (3, 2))]),
     dict(spans=[[(0, 1), span] for span in ((1, 2), (3, 4), (0, 4))])),
    (clipping.singular_values, {}, {}, dict(matrix=[ROWS])),
    (disparity.summarise, {}, dict(log_ratios=[A[2, 1]]), dict(log_ratios=[A[2, 2]])),
    (heads.importance, dict(loss=jnp.sum, num_layers=1, num_heads=1), dict(num_heads=[1]),
     dict(num_layers=[2], num_heads=[2])),
    (heads.prune, {}, dict(importance=[A[2,], INF * A[2, 3]])),
    (heads.prune, dict(importance=A[3, 3]), dict(head_counts=[(3, 1), (2, 1, 1), (3, 0, 1)])),
    (clipping.kept_rank, dict(full_rank=4, rate=0.5), dict(
        full_rank=[0, np.nan], rate=[-0.1, 1, "drop"]), dict(full_rank=[1], rate=[0, 0.99])),
    (probes.fit, dict(states=MANY, targets=MANY), dict(penalty=[-0.9], targets=[jnp.nan * MANY])),
    (probes.descend, dict(features=MANY[:5], labels=A[4,], num_steps=2),
     dict(num_steps=[2.5], share=[1.5])),
    (scores.flow_norm, {}, dict(flow=[A[2, 3, 3, 3], A[1, 4, 2]])),
    (scores.contribution, dict(pool=A[5, 3]), dict(query=[A[2, 1]])),
    (scores.similarity, dict(query=A[2,]), dict(pool=[A[2,], BIG_ENDIAN])),
    (scores.residual, dict(pool=A[5, 3], query=A[2,]), dict(prior_mean=[A[3,]])),
    (scores.select, dict(scores=A[3,], size=2), dict(scores=[A[5, 3]], size=[0, 4]),
     dict(size=[1, 3])),
    (diversity.determinantal, dict(points=jnp.asarray(ROWS), size=4, ridge=0.1),
     dict(ridge=[0.0, -0.1, INF]), dict(ridge=[0.1])),
    (diversity.determinantal, dict(points=jnp.asarray(ROWS), size=3), {}, dict(ridge=[0.0])),
    (diversity.determinantal, dict(points=SINGLE.x[:, :1], size=2), dict(ridge=[1e-50])),
    (baselines.random_subsets, dict(key=KEY, m=3, count=1), dict(size=[0, 4]), dict(size=[1, 3])),
    (baselines.stratified, dict(key=KEY, size=1), dict(labels=[I2])),
    (oracles.pick_greedily, dict(score=jnp.square, chosen=jnp.zeros(3)),
     dict(size=[0, 4]), dict(size=[1, 3])),
    (gradient_matching.match, dict(gradients=ROWS, size=2), dict(
        gradients=[A[3,], HOLES, INF * A[4, 3], np.ones((4, 2), int)], size=[0, 6],
        max_swaps=[-1]), dict(size=[1, 5])),
    (gradient_matching.gap, dict(gradients=ROWS),
     dict(indices=[np.array(i) for i in ([5], [-1], [1, 1])] + [[True, False]]),
     dict(indices=[np.array([0]), np.array([4, 0])])),
    (decoder_of, {}, dict(norm=["foo"], norm_epsilon=[jnp.nan], rotary_width=[3],
                          rotary_scaling=[(8.0, 4.0, 4.0, 64.0)])),
    (partial(replace, WORDS), {}, dict(num_groups=[3], num_layers=[2.0])),
    (token_flow, dict(layers=(1,)), dict(layers=[(0,), (2, 1)], place=[3, -4])),
    (fit, {}, dict(
        params=[{}, {"w": jnp.nan * A[3,]}, {"w": jnp.arange(3)}, {"w": "a"}],
        key=[0, KEYS[None], KEYS[:0]], optimizer=["adam", optax.adam], steps=[0, 1e3], chunk=[0],
        files=["fit.ckpt"], progress=[True], per_run=[A[()]])),
    (fit, dict(key=KEYS), dict(params=[A[3,], {"w": A[5, 3]}])),
    (fit, dict(optimizer=optax.sgd), dict(per_run=[KEY])),
]  # fmt: skip

CALLS = [  # a call that is refused, and words of the message
    *((partial(rule, COLUMN), "y") for rule in (prompts.tokens, prompts.interleaved_tokens)),
    *((lambda leaf=leaf: prompts.tokens(PROMPT.replace(**leaf)), next(iter(leaf)))
      for leaf in ({"x_query": A[1, 2]}, {"y_query": A[1,]}, {"x": A[3,]})),
    (lambda: prompts.second_moments(PROMPT), "x"),
    *((partial(rule, HALF), "no matrix is factored in it")
      for rule in (estimators.ols, partial(estimators.ridge, penalty=0.1),
                   partial(estimators.lasso, penalty=0.1), estimators.descent_modes,
                   lambda p: estimators.largest_step(p.x))),
    *((lambda leaf=leaf: estimators.ols(PROMPT.replace(**leaf)), words)
      for leaf, words in (({"x": HOLES}, r"x holds 1 .*\(2, 1\)"), ({"y": A[3, 1]}, "y"),
                          ({"y": INF * A[3,]}, r"y holds 3 .*\(0,\)"),
                          ({"x": A[3, 2].astype(int)}, "one floating dtype"))),
    (lambda: estimators.ols(EMPTY), "at least one demonstration"),
    (lambda: estimators.sparse_posterior_mean(BROAD, 8, 1.0, 0.1), "735471 supports of 8 among 24"),
    *((partial(linear.sample_moments, KEY, LinearTask(4, 2, **option)), next(iter(option)))
      for option in ({"drift": 0.5}, {"labels": "signs"})),
    (lambda: tables.sample(KEY, tables.Table(A[5, 3], A[3,]), 3), "label"),
    *((partial(tables.standardise, values, ["a", "b", "c"]), "needs two rows and two columns")
      for values in (ROWS[:1], ROWS[:, :1], ROWS[0])),
    (lambda: pools.take(POOL, POOL.y > 0), "flatnonzero"),
    (lambda: pools.take(POOL, np.array([-1, 2])), "0 to 3"),
    (lambda: pools.take(POOL.replace(y=np.ones(3)), np.array([3])), "label"),
    (lambda: forward(WEIGHTS, TOKENS[None]), "prompt"),
    *((lambda params=params: forward(params, TOKENS), "weights") for params in (LAYER, UNEQUAL)),
    (lambda: forward(WEIGHTS, NARROW), "weights"),
    *((lambda dtype=dtype: forward(WEIGHTS, np.asarray(TOKENS).astype(dtype)), name)
      for dtype, name in ((int, "int64"), ("float32", "float32"), (">f8", ">f8"))),
    (lambda: moments.layer_maps(WEIGHTS, A[3,]), "S_0"),
    *((lambda moment=moment: moments.layer_maps(WEIGHTS, moment), word) for moment, word in (
        (I3.at[0, 1].set(0.5), "symmetric"), (I3.at[1, 1].set(-0.1), "eigenvalue"),
        (I3.at[1, 1].set(jnp.nan), "NaN"), (A[2, 2], "S_0"))),
    (lambda: moments.layer_maps(FACTORS, A[3, 3]), "merge"),
    (lambda: prefixes.predictions(forward, WEIGHTS, PROMPT, "causal"), "layout"),
    (lambda: constructions.gradient_descent_plus_plus(A[2,], A[3,], 2), "γ"),
    *((lambda params=params: constructions.scale_skip(params, 0.5), word) for params, word in (
        (NORMED, "homogen"), (WITH_MLP, "not homogeneous"), (BIASED, "bias"))),
    (lambda: transformer.forward(FACTORS, TOKENS, replace(CONFIG, width=3)), "params"),
    (lambda: transformer.predict_prefixes(FACTORS, TOKENS, CONFIG), "layout"),
    (lambda: recurrent.forward(DELTA_PARAMS, jnp.ones((4, 5), int), DELTA), "floats"),
    (lambda: recurrent.forward(DELTA_PARAMS, jnp.ones((1, 4, 5)), DELTA), "batch"),
    *((lambda arrays=arrays: effective.states(values=A[4, 3], **arrays), words)
      for arrays, words in (
        (dict(keys=A[5, 3], values_per_token=2), "keys have 5 rows"),
        (dict(keys=A[4, 3], written=A[4, 3]), "written without removed"),
        (dict(keys=A[4, 3], step=A[3,]), "step has shape"),
        (dict(keys=A[4, 3], gate=A[2, 3]), "gate has shape"))),
    (lambda: flows.one_shot_jacobian(A[3, 3], A[3, 3], A[3, 1], A[3,]), "token"),
    (lambda: risk.ols(7, 9, 0.5), "min_norm"),
    (lambda: risk.min_norm(10, 8, 0.5), "ols"),
    (lambda: optimum.one_layer(I2, 0 * I2, 3, 0.0), "label"),
    (lambda: plateaus.plateaus(0 * A[2,], 5), "σ² = 0"),
    (lambda: generalization.measured_gap(A[2,], A[2,], 2.0, 2.0), "low"),
    (lambda: matching.moment_spread(I2[:1]), "x has 1 rows"),
    (lambda: implicit_gd.trajectory(RUNS, PROMPT), "weights"),
    (lambda: implicit_gd.trajectory(WEIGHTS, PROMPT, keys="causal"), "no common layer map"),
    (lambda: implicit_gd.trajectory(FACTORS, PROMPT), r"not .*transformer.*\.Params"),
    (lambda: implicit_gd.implied_weights(unread, WEIGHTS, PROMPT), r"label slot.*flow\(read"),
    (lambda: amplification.demonstration_flow(unread, WEIGHTS, PROMPT), "not the Trace .*flow"),
    (lambda: amplification.moment_flow(FACTORS, PROMPT), "moment form exists for"),
    (lambda: amplification.flow(lambda x: x, TOKENS), "one number for each layer"),
    (lambda: heads.losses(lambda mask: mask.sum(1), A[2, 2, 2]), "loss"),
    (lambda: heads.losses(jnp.sum, jnp.zeros((2, 2, 2))), "head_mask 0 of 2 is all zero"),
    (lambda: heads.effective_heads(jnp.array([[1.0, jnp.nan]])), r"1 NaN.*\(0, 1\)"),
    (lambda: heads.mask_heads(FACTORS, ("w_q", "w_o"), A[2, 2]), "one of them"),
    (lambda: heads.mask_heads(WITH_MLP, "mlp_in", A[2, 2]), "have no heads"),
    *((lambda matrix=matrix: clipping.truncate(matrix, 0.5), word) for matrix, word in (
        (A[2,], "matrices"), (jnp.nan * I2, "NaN or infinity"), (BIG_ENDIAN, "astype"))),
    (lambda: clipping.singular_values(ROWS.astype(int)), "matrices"),
    (lambda: clipping.truncate(I2, A[2,]), "vmap"),
    (lambda: clipping.Edit(0, "w_q", 1.0), r"lies in \[0, 1\); for rank 0 use 'drop'"),
    *((lambda params=params, layers=layers, name=name: clipping.clip(params, layers, name, 0.5),
       words) for params, layers, name, words in (
        (WEIGHTS, [True], "w_kq", "layer"), (WEIGHTS, 0, "mlp", "called 'mlp': this model has w_"),
        (FACTORS, (0, 5), "w_q", "has 0 to 1"), (FACTORS, -1, "w_q", "has 0 to 1"),
        (RUNS, 0, "w_kq", "an axis of runs, use jax.vmap"))),
    (lambda: probes.fit(MANY[:79], MANY[:79]), "79 prompts for a probe of width 4.*80 or more"),
    (lambda: probes.fit(MANY, MANY[:79]), "one row for each of states"),
    (lambda: probes.r_squared(MANY[:4, :1], MANY[:3], MANY[:3, 0]), "a row for each of states"),
    (lambda: probes.r_squared(MANY[:4, :1], MANY[:3], 0 * MANY[:3, :1]), "nothing to explain"),
    (lambda: probes.descend(MANY[:4], A[4,], 3), "and one for the query"),
    (lambda: probes.embed_as_queries(forward, WEIGHTS, PROMPT, layer=3), "that after 0 to"),
    (lambda: probes.head_contributions(unread(WEIGHTS, TOKENS)), "needs a label slot"),
    (lambda: best_common_map(A[3, 3], A[2, 3, 3]), "3 tokens of width 3 always have a common map"),
    (lambda: best_common_map(A[5, 4], A[2, 3, 3]), "T as in tokens"),
    (lambda: best_common_map(A[3, 3].astype("float16"), A[2, 3, 3][:1]), "float16"),
    (lambda: scores.grads(scores.encode(A[3, 3], A[3, 3], A[5, 3]), A[2,]), "token"),
    (lambda: fit(A[2, 3], KEYS, per_run=A[2,]), "optimizer is no function"),
    *((lambda rows=rows, labels=labels: readings.accuracy(rows, labels), words)
      for rows, labels, words in (
        (np.zeros((3, 2)), [0, 1], r"shapes \(3, 2\) and \(2,\); expected"),
        (np.zeros((3, 2)), [0, 1, 2], "whole numbers from 0 to C - 1"),
        ([[0, np.nan]], [0], "1 scores are NaN or infinite"))),
    (lambda: readings.auc(np.zeros((3, 2)), [1, 1, 1]), "none of class 0: take queries of every"),
    (lambda: readings.best_threshold_shift(np.zeros((3, 3)), [0, 1, 2]), "3 labels: .* needs two"),
    (lambda: readings.shift_scores(np.ones((2, 3)), 1.0), "B, 2"),
    (lambda: readings.shift_scores(np.ones((2, 2)), np.nan), "finite"),
    (lambda: readings.affine_share([1, 2, np.nan], [1, 2, 3]), "answers before or after are NaN"),
    (lambda: SENTENCES.select_classes("bad", "bad"), "two or more"),
    (lambda: SENTENCES.take([True, False, False, True]), "flatnonzero"),
    (lambda: TEMPLATE.find_label_ids(None), "tokenizer"),
    (lambda: text.ask(TEMPLATE, SENTENCES, SENTENCES, None, 9), "None"),
    *((lambda ids=ids: decoder.embed(DECODER, ids, WORDS), words) for ids, words in (
        (jnp.zeros(6, int), "6 tokens, .* context is 5"), (jnp.zeros((1, 3), int), "one prompt"),
        (np.array([1, 10]), "words are numbers from 0"),
        (np.array([1.0]), "expected whole numbers"))),
    (lambda: decoder.logits(DECODER, jnp.ones(8), WORDS, np.array([10])), "are numbers from 0"),
    (lambda: check_params(DECODER.replace(mlp_gate=None), WORDS), "params lacks mlp_gate"),
    (lambda: check_params(DECODER, decoder_of(gated=False)), "has mlp_gate"),
    (lambda: cached_stream.resume(DECODER, None, WORDS, 0, DECODER), "without the axis L"),
    (lambda: cached_stream.resume(DECODER, None, WORDS, 2), "of 2 layers are numbers from 0 to 1"),
    (lambda: cached_stream.embed_questions(DECODER, np.zeros(2, int), np.array([[10]]), WORDS),
     "words are numbers from"),
    (lambda: lm_prefix.init(KEY, DECODER, 0), "one row at least"),
    (lambda: lm_prefix.loss(A[1, 2], DECODER, None, config=WORDS, label_ids=jnp.array([1, 2])),
     r"a prefix is \[k, D\]"),
]  # fmt: skip


def refuse(call, words):
    with pytest.raises((ValueError, TypeError, AssertionError), match=words) as raised:
        call()
    assert len(str(raised.value).splitlines()) <= 3


def expand(column):
    """Return the calls of a column of ARGUMENTS, each with an argument's name and value."""
    return [
        (partial(function, **arguments | {name: value}), name, value)
        for function, arguments, *columns in ARGUMENTS
        for name, values in (*columns, {})[column].items()
        for value in values
    ]


@pytest.mark.parametrize(("call", "name", "value"), expand(0))
def test_an_argument_is_refused_by_name(call, name, value):
    refuse(call, rf"\b{name.removesuffix('s')}")


@pytest.mark.parametrize(("call", "name", "value"), expand(1))
def test_an_argument_at_the_edge_is_accepted(call, name, value):
    jax.eval_shape(lambda: [call()][:0])  # traced: all is checked, and nothing is compiled


@pytest.mark.parametrize(("call", "words"), CALLS)
def test_a_wrong_call_is_refused_in_a_sentence(call, words):
    refuse(call, words)


def test_finite_arrays_are_accepted_at_any_size_and_inside_a_compiled_function():
    large = jnp.ones((1025, 1024), jnp.float32)

    @jax.jit
    def scale(factor):
        check_finite(large, "large")
        return factor

    assert scale(2.0) == 2
    check_finite(np.full(4, 3e38, np.float32), "values with an infinite sum")
    for array in large, large[:1]:
        for wrong in np.nan, np.inf:
            with pytest.raises(
                ValueError, match=r"1 NaN or infinite entries, the first at \(0, 4\)"
            ):
                check_finite(array.at[0, 4].set(wrong), "large")
