"""Arrays of a wrong shape are refused in a sentence, and before anything is compiled."""

import re

import jax
import jax.numpy as jnp
import optax
import pytest

from lsa_lab import estimators, prompts, training
from lsa_lab.analyses import amplification, clipping, heads, implicit_gd
from lsa_lab.models import constructions, head_gauge, linear_attention, moments, transformer
from lsa_lab.prompts import Prompt
from lsa_lab.selection import gradient_matching, scores
from lsa_lab.tasks import linear as tasks
from lsa_lab.theory import amplification as flows
from lsa_lab.theory import asymptotics, generalization, optimum, plateaus, risk, training_dynamics

# n = 3, d = 2, e = 3, L = H = 2, m = 5; one array of every shape, so that no call makes one.
SHAPES = [(), (1,), (2,), (3,), (4,), (2, 1), (3, 1), (1, 2), (2, 2), (3, 3), (2, 3), (5, 3)]
SHAPES += [(4, 3), (5, 4), (1, 2, 3), (2, 2, 1), (2, 2, 2), (2, 3, 3), (2, 3, 3, 3)]
A = {shape: jnp.ones(shape) for shape in SHAPES}
KEY = jax.random.key(0)
KEYS = jax.random.split(KEY, 2)
PROMPT = Prompt(jnp.ones((3, 2)), A[3,], A[2,], A[()])
COLUMN = PROMPT.replace(y=A[3, 1])
BATCH = jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), PROMPT)
WIDE = BATCH.replace(y=BATCH.y[..., None])
TOKENS = jnp.ones((4, 3))
NARROW, STACKED = TOKENS[:, :2], TOKENS[None]
WEIGHTS = linear_attention.init(KEY, 2, 2, 2)
LAYER = jax.tree.map(lambda leaf: leaf[0], WEIGHTS)
RUNS = jax.tree.map(lambda leaf: leaf[None], WEIGHTS)
UNEQUAL = WEIGHTS.replace(w_pv=WEIGHTS.w_pv[:1])
CONFIG = transformer.Config(3, 2, 2, 2)
FACTORS = transformer.init(KEY, CONFIG)
TASK = tasks.LinearTask(3, 2)
ENCODED = scores.encode(A[3, 3], A[3, 3], A[5, 3])
forward = linear_attention.forward
equivariant_mean = estimators.rotation_equivariant_posterior_mean
mixed_descent = estimators.mixed_gradient_descent


def fit(params, key):
    steps = training.Training(lambda p, _: p.sum(), lambda _: A[()], optax.sgd(0.1), 2)
    return training.fit(steps, params, key)


# What is said of which argument: a word for it, what was expected, what came; and the call.
REFUSED = [
    ("y", "(3)", "(3, 1)", lambda: prompts.tokens(COLUMN)),
    ("x_query", "(2)", "(1, 2)", lambda: prompts.tokens(PROMPT.replace(x_query=A[1, 2]))),
    ("y_query", "()", "(1,)", lambda: prompts.tokens(PROMPT.replace(y_query=A[1,]))),
    ("x", "jax.vmap", "(4, 3, 2)", lambda: prompts.tokens(BATCH)),
    ("y", "(3)", "(4,)", lambda: prompts.tokens(PROMPT.replace(y=A[4,]))),
    ("x", "[n, d]", "(3,)", lambda: prompts.tokens(PROMPT.replace(x=A[3,]))),
    ("y", "(3)", "(3, 1)", lambda: prompts.interleaved_tokens(COLUMN)),
    ("x", "[B, n, d]", "(3, 2)", lambda: prompts.second_moments(PROMPT)),
    ("y", "(4, 3)", "(4, 3, 1)", lambda: prompts.second_moments(WIDE)),
    ("y", "(3)", "(3, 1)", lambda: estimators.ols(COLUMN)),
    ("penalty", "one number", "(2,)", lambda: estimators.ridge(PROMPT, A[2,])),
    ("x", "jax.vmap", "(4, 3, 2)", lambda: equivariant_mean(BATCH, 1, 1.0, 0.1)),
    ("weights", "(2)", "(3,)", lambda: estimators.lasso_duality_gap(PROMPT, A[3,], 0.1)),
    ("raw_step_sizes", "(2,)", "(3,)", lambda: mixed_descent(PROMPT, A[2,], A[3,])),
    ("step_sizes", "[steps]", "()", lambda: estimators.gradient_descent(PROMPT, A[()])),
    (
        "preconditioners",
        "(2, 2, 2)",
        "(2, 2)",
        lambda: estimators.gradient_descent(PROMPT, A[2,], A[2, 2]),
    ),
    ("gammas", "(2,)", "(3,)", lambda: estimators.gradient_descent_plus_plus(PROMPT, A[2,], A[3,])),
    (
        "prior_mean",
        "(2)",
        "(2, 1)",
        lambda: estimators.gaussian_posterior_mean(PROMPT, A[()], A[()], prior_mean=A[2, 1]),
    ),
    ("y", "(3)", "(3, 1)", lambda: estimators.sparse_posterior_mean(COLUMN, 1, 1.0, 0.1)),
    ("covariates", "[n, d]", "(3,)", lambda: estimators.largest_step(A[3,])),
    ("covariance", "(2, 2)", "(3, 3)", lambda: tasks.LinearTask(3, 2, covariance=A[3, 3])),
    ("prior_mean", "(2,)", "(2, 1)", lambda: tasks.LinearTask(3, 2, prior_mean=A[2, 1])),
    ("key", "jax.vmap", "(2,)", lambda: tasks.sample(KEYS, TASK)),
    ("prompt", "jax.vmap", "(1, 4, 3)", lambda: forward(WEIGHTS, STACKED)),
    ("weights", "(2, 2, 2, 2)", "(2, 2, 3, 3)", lambda: forward(WEIGHTS, NARROW)),
    ("weights", "(2, 3, 3, 3)", "(2, 3, 3)", lambda: forward(LAYER, TOKENS)),
    ("weights", "(2, 2, 3, 3)", "(1, 2, 3, 3)", lambda: forward(UNEQUAL, TOKENS)),
    ("head_mask", "(2, 2)", "(2,)", lambda: forward(WEIGHTS, TOKENS, head_mask=A[2,])),
    ("head_mask", "(2, 2)", "(2, 2, 1)", lambda: forward(WEIGHTS, TOKENS, head_mask=A[2, 2, 1])),
    ("S_0", "(3, 3)", "(3,)", lambda: moments.layer_maps(WEIGHTS, A[3,])),
    ("S_0", "(3, 3)", "(2, 2)", lambda: moments.layer_maps(WEIGHTS, A[2, 2])),
    ("step_sizes", "1", "()", lambda: constructions.gradient_descent(A[()], 2)),
    ("step_sizes", "1", "(2, 1)", lambda: constructions.gradient_descent(A[2, 1], 2)),
    ("γ", "(2,)", "(3,)", lambda: constructions.gradient_descent_plus_plus(A[2,], A[3,], 2)),
    ("preconditioners", "[L, d, d]", "(2, 2)", lambda: constructions.preconditioned(A[2, 2])),
    ("prior_mean", "[d]", "(2, 1)", lambda: constructions.prior_attention(A[2,], A[2, 1])),
    ("covariance", "[d, d]", "(2, 3)", lambda: constructions.one_step_optimum(A[2, 3], 3, 0.1)),
    ("step_sizes", "1", "(3, 1)", lambda: constructions.preprocess_then_optimise(2, 2, A[3, 1])),
    ("prompt", "jax.vmap", "(1, 4, 3)", lambda: transformer.forward(FACTORS, STACKED, CONFIG)),
    ("tokens", "token_width is 3", "2 wide", lambda: transformer.forward(FACTORS, NARROW, CONFIG)),
    ("head_mask", "(2, 2)", "(2,)", lambda: transformer.forward(FACTORS, TOKENS, CONFIG, A[2,])),
    (
        "w_q",
        "(2, 2, 3, 3)",
        "(2, 2, 2, 3)",
        lambda: transformer.forward(FACTORS, TOKENS, transformer.Config(3, 2, 2, 3)),
    ),
    ("covariance", "[d, d]", "(2,)", lambda: optimum.one_layer(A[2,], A[2, 2], 3, 0.1)),
    ("task_covariance", "(2, 2)", "(2, 1)", lambda: optimum.one_layer(A[2, 2], A[2, 1], 3, 0.1)),
    ("noise_var", "()", "(2,)", lambda: optimum.one_layer(A[2, 2], A[2, 2], 3, A[2,])),
    ("A", "(2, 2)", "(3, 3)", lambda: optimum.one_layer_risk(A[3, 3], A[2, 2], A[2, 2], 3, 0.1)),
    ("steps", "1", "()", lambda: risk.gradient_descent(A[2,], A[()], 3, 0.1)),
    ("eigenvalues", "1", "(2, 2)", lambda: risk.gradient_descent(A[2, 2], A[2,], 3, 0.1)),
    ("kappa", "broadcast", "(3,)", lambda: asymptotics.ridgeless_risk(A[2,], A[3,], 2.0, 1.0)),
    ("U", "(2, 2)", "(3, 3)", lambda: training_dynamics.solve(A[2,], A[2, 2], 3, 0.1, A[3, 3])),
    ("times", "[m]", "()", lambda: training_dynamics.solve(A[()], A[2, 2], 3, 0.1, A[2, 2])),
    ("t", "broadcast", "(3,)", lambda: training_dynamics.isotropic_step(A[3,], 2, 3, A[2,], 0.1)),
    ("eigenvalues", "[d]", "(2, 2)", lambda: plateaus.plateaus(A[2, 2], 3)),
    ("token", "[e]", "(3, 1)", lambda: flows.one_shot_jacobian(A[3, 3], A[3, 3], A[3, 1], A[3,])),
    ("query", "(3)", "(2,)", lambda: flows.frozen_demonstration(A[3, 3], A[3, 3], A[3,], A[2,], 3)),
    ("weights", "(3, 3)", "(2, 2)", lambda: flows.self_coupling(A[3, 3], A[2, 2], A[3,])),
    ("κ", "()", "(3,)", lambda: flows.geometric_gain(A[3,], 3)),
    (
        "updates",
        "[L, e, e]",
        "(3, 3)",
        lambda: generalization.trajectory_bound(A[3, 3], 1.0, 1.0, 3),
    ),
    (
        "noise_cov",
        "(9, 9)",
        "(3, 3)",
        lambda: generalization.trajectory_bound(A[2, 3, 3], A[3, 3], 1.0, 3),
    ),
    ("flow", "[L, n, e]", "(3, 3)", lambda: amplification.amplification_ratio(A[3, 3])),
    ("weights", "[L, H, e, e]", "(1, 2, 2, 3, 3)", lambda: implicit_gd.trajectory(RUNS, PROMPT)),
    ("y", "(3)", "(3, 1)", lambda: implicit_gd.implied_weights(forward, WEIGHTS, COLUMN)),
    ("importance", "[L, H]", "(2,)", lambda: heads.prune(A[2,])),
    ("loss", "()", "(2,)", lambda: heads.losses(lambda mask: mask.sum(1), A[2, 2, 2])),
    ("head_masks", "[M, L, H]", "(2, 2)", lambda: heads.losses(jnp.sum, A[2, 2])),
    ("matrices", "[..., p, q]", "(2,)", lambda: clipping.truncate(A[2,], 0.5)),
    ("flow", "flow[layer]", "(2, 3, 3, 3)", lambda: scores.flow_norm(A[2, 3, 3, 3])),
    ("flow", "[m, e]", "(2, 3, 3)", lambda: scores.flow_times_input(A[2, 3, 3], A[5, 3])),
    ("query", "(2)", "(2, 1)", lambda: scores.contribution(A[5, 3], A[2, 1])),
    ("pool", "[m, e]", "(2,)", lambda: scores.similarity(A[2,], A[2,])),
    ("prior_mean", "(2,)", "(3,)", lambda: scores.residual(A[5, 3], A[2,], A[3,])),
    ("token", "(3)", "(2,)", lambda: scores.grads(ENCODED, A[2,])),
    ("scores", "[m]", "(5, 3)", lambda: scores.select(A[5, 3], 2)),
    ("gradients", "[m, p]", "(3,)", lambda: gradient_matching.match(A[3,], 2)),
    ("indices", "[size]", "(1, 2)", lambda: gradient_matching.gap(A[5, 4], A[1, 2])),
    ("mixing", "(2, 2, 2)", "(3, 3)", lambda: head_gauge.mix_heads(WEIGHTS, A[3, 3])),
    ("params", "2 keys", "(3,)", lambda: fit(A[3,], KEYS)),
]


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


def test_a_wrong_shape_is_refused_by_name_before_anything_is_compiled(compiled):
    assert len(REFUSED) >= 60
    for argument, expected, got, call in REFUSED:
        before = len(compiled)
        with pytest.raises((ValueError, TypeError, AssertionError)) as raised:
            call()
        sentence = str(raised.value)
        assert len(sentence.splitlines()) <= 3, sentence
        assert re.search(rf"\b{argument}\b", sentence), (argument, sentence)
        assert expected in sentence, (expected, sentence)
        assert got in sentence, (got, sentence)
        assert len(compiled) == before, sentence


def test_what_has_the_right_shape_compiles(compiled):
    """The control: the listener hears a program."""
    before = len(compiled)
    jax.jit(lambda x: 3 * x)(A[3,])
    assert len(compiled) > before
