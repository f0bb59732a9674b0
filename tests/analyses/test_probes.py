"""Probes find the features of the construction, and nothing in a control task."""

import functools

import jax
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab import estimators, prompts
from lsa_lab.analyses import probes
from lsa_lab.models import constructions, trace, transformer
from lsa_lab.tasks.linear import LinearTask, sample

D, N, ALPHAS, BETAS = 3, 12, np.array([0.3, 0.2]), np.array([0.4, 0.3])
PARAMS, CONFIG = constructions.preprocess_then_optimise(D, D, BETAS, ALPHAS)
X, X_TILDE = slice(0, D), slice(D, 2 * D)  # where the construction keeps them
fit, r_squared = jit_numpy(probes.fit), jit_numpy(probes.r_squared)
descend = jit_numpy(probes.descend, static_argnums=2)
preprocess, project_out = jit_numpy(probes.preprocess), jit_numpy(probes.project_out)
preprocess_all = jit_numpy(jax.vmap(probes.preprocess))


def forward(params, tokens):
    return transformer.forward(params, tokens, CONFIG)


@jit_numpy
@jax.vmap
def draw_one(key):
    prompt = sample(key, LinearTask(N, D, weight_std=0.5))
    return prompt, forward(PARAMS, prompts.tokens(prompt))


@functools.cache
def draw_batches():
    """400 prompts to fit a probe to, and 200 others."""
    drawn = draw_one(jax.random.split(jax.random.key(0), 600))
    return [jax.tree.map(lambda leaf, s=s: leaf[s], drawn) for s in (slice(400), slice(400, 600))]


PROMPT, TRACE = jax.tree.map(lambda leaf: leaf[0], draw_batches()[0])


@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_a_probe_is_ridge_regression_and_the_shortest_without_penalty(penalty):
    rng = np.random.default_rng(0)
    states, targets = rng.normal(size=(80, 3)), rng.normal(size=(80, 2))
    states = states @ rng.normal(size=(3, 4))  # rank 3 of 4
    gram = states.T @ states / 80 + penalty * np.eye(4)
    stated = np.linalg.pinv(gram, rcond=1e-10) @ states.T @ targets / 80
    np.testing.assert_allclose(fit(states, targets, penalty=penalty), stated, atol=1e-10)


def test_layer_one_holds_the_preprocessed_covariates_and_the_control_task_does_not():
    (batch, walk), (fresh_batch, fresh) = draw_batches()
    targets, fresh_targets = (preprocess_all(p)[:, -1] for p in (batch, fresh_batch))
    r = PROMPT.x.T @ PROMPT.y / N
    np.testing.assert_allclose(targets[0], r * PROMPT.x_query, atol=1e-12)
    control = np.random.default_rng(0).permutation(targets)
    for layer, low, high in ((1, 1 - 1e-10, 1.1), (0, -0.5, 0.5)):
        states, fresh_states = walk.stream[:, layer, -1], fresh.stream[:, layer, -1]
        shares = r_squared(fit(states, targets), fresh_states, fresh_targets)
        assert ((shares > low) & (shares < high)).all()
        assert (r_squared(fit(states, control), fresh_states, fresh_targets) < 0.5).all()
        errors = probes.squared_errors(fit(states, targets), fresh_states, fresh_targets)
        np.testing.assert_allclose(1 - errors.sum(0) / (fresh_targets**2).sum(0), shares)


def test_descent_on_features_is_the_algorithm_of_that_name():
    """The first layer's tokens are [x | x̃] besides the label: descent on both is the mixture."""
    raw, query = np.vstack([PROMPT.x, PROMPT.x_query]), PROMPT.x_query
    directions = np.stack([np.asarray(PARAMS.read_in)[:, -1], PARAMS.read_out])
    mixed = project_out(TRACE.stream[1], directions)
    rules = (
        (raw, lambda step: estimators.gradient_descent(PROMPT, step) @ query),
        (
            preprocess(PROMPT),
            lambda step: estimators.preprocessed_gradient_descent(PROMPT, step[0], 6),
        ),
        (mixed, lambda step: estimators.mixed_gradient_descent(PROMPT, step, step) @ query),
    )
    for features, rule in rules:
        size = 0.5 * 2 * N / np.linalg.norm(features[:-1], ord=2) ** 2
        stated = rule(np.full(6, size))
        for scale in (1, 1e3):
            np.testing.assert_allclose(descend(scale * features, PROMPT.y, 6), stated, atol=1e-10)
        assert not descend(0 * features, PROMPT.y, 6).any()
    # Control: with its label left in, a token is fitted by itself.
    own_label = descend(TRACE.stream[1], PROMPT.y, 6)
    assert np.abs(own_label - descend(mixed, PROMPT.y, 6)).max() > 1e-2


def test_a_token_that_is_a_query_does_not_hold_its_label():
    tokens = jit_numpy(lambda prompt: probes.embed_as_queries(forward, PARAMS, prompt))(PROMPT)
    np.testing.assert_allclose(tokens[:, X], np.vstack([PROMPT.x, PROMPT.x_query]), atol=1e-12)
    np.testing.assert_allclose(tokens[:, X_TILDE], preprocess(PROMPT), atol=1e-12)
    np.testing.assert_allclose(tokens[:, -1], 0, atol=1e-12)
    np.testing.assert_allclose(TRACE.stream[1][:-1, -1], PROMPT.y)  # Control: in the stream


def test_the_projection_removes_the_span_and_nothing_else():
    rng = np.random.default_rng(0)
    features, pair = rng.normal(size=(6, 5)), rng.normal(size=(2, 5))
    directions = np.stack([pair[0], 2 * pair[0], pair[1], 0 * pair[1]])  # dependent, and zero
    basis = np.linalg.qr(pair.T)[0]
    stated = features - features @ basis @ basis.T
    np.testing.assert_allclose(project_out(features, directions), stated, atol=1e-12)
    directions[0, 0] = np.nan
    assert np.isnan(project_out(features, directions)).all()


def test_the_contributions_of_heads_sum_to_the_prediction():
    contributions = np.asarray(probes.head_contributions(TRACE))
    np.testing.assert_allclose(contributions.sum(), trace.predict(TRACE), atol=1e-12)
    assert not contributions[0].any()
    assert contributions[1:, 0].all()
    merged = TRACE.replace(read_out=None)  # the label slot is last here
    np.testing.assert_array_equal(probes.head_contributions(merged), contributions)
