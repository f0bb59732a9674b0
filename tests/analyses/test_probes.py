"""Probes find what the construction holds, nothing in a control task, and refuse to guess."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab import estimators, prompts
from lsa_lab.analyses import probes
from lsa_lab.models import constructions, transformer
from lsa_lab.models import trace as traces
from lsa_lab.tasks.linear import LinearTask, sample

D, N, ALPHAS, BETAS = 3, 12, jnp.array([0.3, 0.2]), jnp.array([0.4, 0.3])
PARAMS, CONFIG = constructions.preprocess_then_optimise(D, D, BETAS, ALPHAS)
X, X_TILDE = slice(0, D), slice(D, 2 * D)  # where the construction keeps them


def forward(params, tokens):
    return transformer.forward(params, tokens, CONFIG)


@functools.cache
def batch(count=400, seed=0):
    keys = jax.random.split(jax.random.key(seed), count)
    many = jax.jit(jax.vmap(lambda key: sample(key, LinearTask(N, D, weight_std=0.5))))(keys)
    run = jax.jit(jax.vmap(lambda prompt: forward(PARAMS, prompts.tokens(prompt))))
    return jax.device_get((many, run(many)))


def one(index=0):
    return jax.tree.map(lambda leaf: leaf[index], batch())


fit, explained = jit_numpy(probes.fit), jit_numpy(probes.explained)
descend = jit_numpy(probes.descend, static_argnums=2)
preprocessed = jit_numpy(probes.preprocessed)
of_each = jit_numpy(jax.vmap(probes.preprocessed))
predictions = jit_numpy(jax.vmap(traces.predict))


@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_a_probe_is_ridge_regression_and_the_shortest_without_penalty(penalty):
    rng = np.random.default_rng(0)
    states, targets = rng.normal(size=(80, 3)), rng.normal(size=(80, 2))
    states = states @ rng.normal(size=(3, 4))  # rank 3 of 4
    if penalty:
        gram = states.T @ states / 80 + penalty * np.eye(4)
        stated = np.linalg.solve(gram, states.T @ targets / 80)
    else:
        stated = np.linalg.pinv(states) @ targets
    found = probes.fit(jnp.asarray(states), jnp.asarray(targets), penalty=penalty)
    np.testing.assert_allclose(found, stated, atol=1e-10)


@jit_numpy
def layer_errors(states, targets, fresh_states, fresh_targets):  # [L+1, C]
    """The squared error of the best linear reader of each layer, on fresh prompts."""

    def layer(states, fresh_states):
        probe = probes.fit(states, targets[:, None])
        return probes.squared_errors(probe, fresh_states, fresh_targets[:, None])[:, 0]

    return jax.vmap(layer, in_axes=1)(states, fresh_states)


def test_the_layer_probe_finds_a_label_that_a_layer_holds():
    """The last layer's slot is -ŷ: a probe for ŷ misses nothing there, and a random one all."""
    (_, learn), (_, fresh) = batch(), batch(200, 1)
    targets, others = map(predictions, (learn, fresh))
    states, fresh_states = (trace.stream[:, :, -1] for trace in (learn, fresh))
    errors = layer_errors(states, targets, fresh_states, others)
    assert errors.shape == (CONFIG.num_layers + 1, 200)
    assert errors[-1].max() < 1e-16
    assert errors[0].mean() > 0.5 * (others**2).mean()  # x_query alone, before any layer
    control = probes.control_targets(jax.random.key(2), targets[:, None])[:, 0]
    assert set(np.asarray(control)) == set(targets)
    learned = layer_errors(states, control, fresh_states, others)
    assert learned[-1].mean() > 0.5 * (others**2).mean()


def test_layer_one_holds_the_preprocessed_covariates_and_the_control_task_does_not():
    (many, trace), (others, fresh) = batch(), batch(200, 1)
    targets, fresh_targets = (of_each(p)[:, -1] for p in (many, others))
    r = many.x[0].T @ many.y[0] / N
    np.testing.assert_allclose(targets[0], r * many.x_query[0], atol=1e-12)
    control = probes.control_targets(jax.random.key(0), targets)
    for layer, low, high in ((1, 1 - 1e-10, 1.1), (0, -0.5, 0.5)):
        states, fresh_states = trace.stream[:, layer, -1], fresh.stream[:, layer, -1]
        share = explained(fit(states, targets), fresh_states, fresh_targets)
        assert ((share > low) & (share < high)).all()
        share = explained(fit(states, control), fresh_states, fresh_targets)
        assert (share < 0.5).all()


@pytest.mark.parametrize("name", ["raw", "preprocessed"])
def test_descent_on_given_features_is_the_algorithm_of_that_name(name):
    prompt, _ = one()
    if name == "raw":
        features = np.concatenate([prompt.x, prompt.x_query[None]])
        step = 0.5 * 2 * N / np.linalg.norm(prompt.x, ord=2) ** 2
        stated = jit_numpy(estimators.gradient_descent)(prompt, np.full(6, step)) @ prompt.x_query
    else:
        features = preprocessed(prompt)
        run = jit_numpy(estimators.preprocessed_gradient_descent, static_argnums=2)
        stated = run(prompt, 0.5 * jit_numpy(estimators.preprocessed_step_limit)(prompt), 6)
    np.testing.assert_allclose(descend(features, prompt.y, 6), stated, atol=1e-10)
    np.testing.assert_allclose(descend(1e3 * features, prompt.y, 6), stated, atol=1e-10)


def test_descent_on_the_first_layer_is_the_mixed_algorithm():
    """Its tokens are [x | x̃] besides the label: one kernel step on both is a mixed step on x."""
    prompt, trace = one()
    directions = np.stack([np.asarray(PARAMS.read_in)[:, -1], PARAMS.read_out])
    features = jit_numpy(probes.project_out)(trace.stream[1], directions)
    step = np.full(5, 0.5 * 2 * N / np.linalg.norm(features[:-1], ord=2) ** 2)
    stated = jit_numpy(estimators.mixed_gradient_descent)(prompt, step, step) @ prompt.x_query
    np.testing.assert_allclose(descend(features, prompt.y, 5), stated, atol=1e-10)
    # Control: with its label left in, a token is fitted by itself.
    assert np.abs(descend(trace.stream[1], prompt.y, 5) - stated).max() > 1e-2


def test_targets_of_another_shape_are_no_grid_of_errors():
    states = jnp.ones((60, 3))
    with pytest.raises(AssertionError, match="a row for each of states"):
        probes.explained(jnp.ones((3, 1)), states, jnp.ones(60))


def test_features_that_vanish_predict_nothing():
    np.testing.assert_array_equal(descend(jnp.zeros((5, 2)), jnp.ones(4), 3), 0)


def test_a_token_that_is_asked_does_not_know_its_own_label():
    prompt, trace = one()
    asked = jax.jit(lambda prompt: probes.as_queries(forward, PARAMS, prompt))(prompt)
    np.testing.assert_allclose(asked[:, X], np.vstack([prompt.x, prompt.x_query]), atol=1e-12)
    np.testing.assert_allclose(asked[:, X_TILDE], preprocessed(prompt), atol=1e-12)
    np.testing.assert_allclose(asked[:, -1], 0, atol=1e-12)
    np.testing.assert_allclose(
        trace.stream[1][:-1, -1], prompt.y
    )  # Control: it stands in the stream


def test_a_layer_that_the_stream_lacks_is_refused():
    prompt, trace = one()
    for layer in (len(trace.stream), -1):
        look = functools.partial(probes.as_queries, forward, PARAMS, layer=layer)
        with pytest.raises(ValueError, match=f"layer = {layer}: this stream is that after 0 to"):
            jax.eval_shape(look, prompt)


def test_the_projection_removes_the_span_and_nothing_else():
    rng = np.random.default_rng(0)
    features, pair = rng.normal(size=(6, 5)), rng.normal(size=(2, 5))
    directions = np.stack([pair[0], 2 * pair[0], pair[1], 0 * pair[1]])  # dependent, and zero
    found = np.asarray(probes.project_out(jnp.asarray(features), jnp.asarray(directions)))
    basis = np.linalg.qr(pair.T)[0]
    np.testing.assert_allclose(found, features - features @ basis @ basis.T, atol=1e-12)
    unknown = jnp.asarray(directions).at[0, 0].set(jnp.nan)
    assert jnp.isnan(probes.project_out(jnp.asarray(features), unknown)).all()


def test_contributions_of_heads_add_up_to_the_prediction():
    _, trace = one()
    shares = probes.contributions(trace)
    np.testing.assert_allclose(shares.sum(), traces.predict(trace), atol=1e-12)
    assert not shares[0].any()
    assert shares[1:, 0].all()
    merged = traces.Trace(stream=trace.stream, heads=trace.heads)  # the label slot stands last here
    np.testing.assert_array_equal(probes.contributions(merged), shares)


def test_too_few_prompts_for_the_width_are_refused_with_the_number_needed():
    with pytest.raises(ValueError, match=r"79 prompts for a probe of width 4.*80 or more"):
        probes.fit(jnp.ones((79, 4)), jnp.ones((79, 1)))
    with pytest.raises(AssertionError, match="one row for each of states"):
        probes.fit(jnp.ones((80, 4)), jnp.ones((79, 1)))
    with pytest.raises(AssertionError, match="and one for the query"):
        probes.descend(jnp.ones((4, 2)), jnp.ones(4), 3)
    with pytest.raises(ValueError, match=r"num_steps = 2.5: it is a whole number"):
        probes.descend(jnp.ones((5, 2)), jnp.ones(4), 2.5)
    with pytest.raises(ValueError, match=r"share = 1.5: choose one between 0 and 1"):
        probes.descend(jnp.ones((5, 2)), jnp.ones(4), 2, 1.5)
    with pytest.raises(ValueError, match="there is nothing to explain"):
        probes.explained(jnp.ones((4, 1)), jnp.ones((3, 4)), jnp.zeros((3, 1)))
    with pytest.raises(ValueError, match="targets"):
        probes.fit(jnp.ones((80, 4)), jnp.full((80, 1), jnp.nan))
    batch = prompts.Prompt(jnp.ones((2, 3, 4)), jnp.ones((2, 3)), jnp.ones((2, 4)), jnp.ones(2))
    for call in (
        probes.preprocessed,
        functools.partial(probes.with_random_labels, jax.random.key(0)),
    ):
        with pytest.raises(AssertionError, match=r"use jax\.vmap for a batch"):
            call(batch)
