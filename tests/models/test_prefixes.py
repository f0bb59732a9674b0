"""Predictions of prefixes and of batches are those of single prompts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import prompts
from lsa_lab.interop import as_forward
from lsa_lab.models import linear_attention, moments, prefixes, recurrent, transformer
from lsa_lab.models.trace import predict
from lsa_lab.prompts import Prompt, bound_tokens
from lsa_lab.tasks.linear import LinearTask, sample

N, D = 4, 2
DRAWS = np.random.default_rng(0)
PROMPT = Prompt(*(np.asarray(DRAWS.normal(size=s)) for s in ((N, D), (N,), (D,), ())))
predictions = jax.jit(prefixes.predictions, static_argnums=(0, 3))


def cut(t):
    asked = PROMPT.x[t] if t < N else PROMPT.x_query
    return PROMPT.replace(x=PROMPT.x[:t], y=PROMPT.y[:t], x_query=asked)


def last_of_two_prefixes(forward, params, layout):
    every = [predictions(forward, params, cut(t), layout) for t in (1, N)]
    return np.array([np.asarray(answers)[-1] for answers in every])


def test_one_pass_of_bound_tokens_is_all_prefixes():
    config = recurrent.Config("gated_delta", 2 * D + 1, num_layers=2, width=6, layout="bound")
    params = jax.jit(recurrent.init, static_argnums=1)(jax.random.key(0), config)

    def forward(params, tokens):
        return recurrent.forward(params, tokens, config)

    both = jax.jit(
        lambda prompt: (
            prefixes.predictions(forward, params, prompt),
            recurrent.predict_prefixes(params, bound_tokens(prompt), config),
        )
    )
    whole, same = jax.device_get(both(PROMPT))
    np.testing.assert_array_equal(whole, same)
    alone = last_of_two_prefixes(forward, params, "bound")
    np.testing.assert_allclose(whole[[1, N]], alone, atol=1e-12)
    error = jax.jit(prefixes.loss, static_argnums=0)(forward, params, PROMPT)
    labels = np.append(PROMPT.y, PROMPT.y_query)
    np.testing.assert_allclose(error, ((whole - labels) ** 2).mean(), rtol=1e-12)


def test_interleaved_and_merged_layouts_are_those_of_the_models():
    config = transformer.Config(D + 1, 1, 2, 3, width=5, keys="causal", layout="interleaved")
    params = jax.jit(transformer.init, static_argnums=1)(jax.random.key(1), config)

    def forward(params, tokens):
        return transformer.forward(params, tokens, config)

    whole = np.asarray(predictions(forward, params, PROMPT, "interleaved"))
    alone = last_of_two_prefixes(forward, params, "interleaved")
    np.testing.assert_allclose(whole[[1, N]], alone, atol=1e-12)
    linear = linear_attention.Params(*np.random.default_rng(2).normal(size=(2, 1, 1, 3, 3)) / 2)
    merged = np.asarray(predictions(linear_attention.forward, linear, PROMPT, "merged"))
    assert merged[0] == 0
    alone = last_of_two_prefixes(linear_attention.forward, linear, "merged")
    np.testing.assert_allclose(merged[[1, N]], alone, atol=1e-12)


def test_any_causal_function_has_predictions_of_prefixes():
    def running_mean(tokens):  # of the labels so far
        return jnp.cumsum(tokens[:, -1]) / jnp.maximum(jnp.arange(len(tokens)), 1).astype(float)

    found = prefixes.predictions(as_forward(running_mean, causal=True), None, PROMPT)
    expected = [0.0, *(np.asarray(PROMPT.y)[:t].mean() for t in range(1, N + 1))]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"a prediction of shape \(\); expected one for each"):
        prefixes.predictions(as_forward(jnp.sum, causal=True), None, PROMPT)
    with pytest.raises(ValueError, match="query"):
        prefixes.predictions(as_forward(jnp.sum), None, PROMPT)


PARAMS = linear_attention.Params(np.full((2, 1, 3, 3), 0.1), np.full((2, 1, 3, 3), 0.1))


def test_a_second_moment_may_be_in_half_precision():
    half = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.bfloat16), PARAMS)
    maps = moments.layer_maps(half, jnp.eye(3, dtype=jnp.bfloat16))
    assert maps.dtype == jnp.bfloat16
    expected = moments.layer_maps(PARAMS, jnp.eye(3))
    np.testing.assert_allclose(maps.astype(float), expected, atol=0.02)


@pytest.mark.parametrize(("version", "drops"), [((0, 11, 9), True), ((0, 12), False)])
def test_barriers_are_kept_where_the_compiler_would_drop_them(version, drops, monkeypatch):
    monkeypatch.setattr(jax, "__version_info__", version)
    assert bool(moments.compiler_options()) == (drops and jax.default_backend() == "cpu")


init = jax.jit(linear_attention.init, static_argnums=(1, 2, 3))
WIDE = moments._NARROW  # covariates of the narrowest tokens that are wide


# Narrow tokens: batch axis last; wide and few: the tokens; wide and many: one map a prompt.
@pytest.mark.parametrize(("d", "n"), [(3, 7), (WIDE, 7), (WIDE, moments._LONG * (WIDE + 1))])
def test_batched_predictions_are_those_of_the_tokens(d, n):
    keys = jax.random.split(jax.random.key(d), 5)
    batch = jax.jit(jax.vmap(lambda key: sample(key, LinearTask(n, d, noise_std=0.3))))(keys)
    params = init(jax.random.key(0), 3, 2, d, scale=0.1)

    def from_tokens(prompt):
        return predict(linear_attention.forward(params, prompts.tokens(prompt)))

    expected = jax.jit(jax.vmap(from_tokens))(batch)
    batched = jax.jit(moments.predictions)(params, batch)
    np.testing.assert_allclose(batched, expected, rtol=1e-10, atol=1e-12)
    second_moments = jax.jit(prompts.second_moments)(batch)
    from_moments = jax.jit(moments.predictions_from_moments)
    batched = from_moments(params, second_moments, np.asarray(batch.x_query).T)
    np.testing.assert_allclose(batched, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("num_layers", [1, 3])
def test_gradients_of_batched_predictions_are_those_of_the_tokens(num_layers):
    keys = jax.random.split(jax.random.key(1), 5)
    batch = jax.jit(jax.vmap(lambda key: sample(key, LinearTask(6, 3, noise_std=0.2))))(keys)
    params = init(jax.random.key(2), num_layers, 2, 3, scale=0.2)

    def from_tokens(params):
        def one(prompt):
            return predict(linear_attention.forward(params, prompts.tokens(prompt)))

        return (jax.vmap(one)(batch) ** 2).sum()

    def from_moments(params):
        return (moments.predictions(params, batch) ** 2).sum()

    expected, found = (
        jax.jit(jax.grad(from_tokens))(params),
        jax.jit(jax.grad(from_moments))(params),
    )
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-10)
