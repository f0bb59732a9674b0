"""Every prefix of a prompt gets the answer that it would get alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import estimators
from lsa_lab.interop import as_forward
from lsa_lab.models import linear_attention, prefixes, recurrent, transformer
from lsa_lab.prompts import Prompt, bound_tokens

N, D = 4, 2
DRAWS = np.random.default_rng(0)
PROMPT = Prompt(*(np.asarray(DRAWS.normal(size=s)) for s in ((N, D), (N,), (D,), ())))
predictions = jax.jit(prefixes.predictions, static_argnums=(0, 3))


def cut(t):
    asked = PROMPT.x[t] if t < N else PROMPT.x_query
    return PROMPT.replace(x=PROMPT.x[:t], y=PROMPT.y[:t], x_query=asked)


def last_of_every_prefix(forward, params, layout):
    every = [predictions(forward, params, cut(t), layout) for t in range(1, N + 1)]
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
    np.testing.assert_allclose(
        whole[1:], last_of_every_prefix(forward, params, "bound"), atol=1e-12
    )
    error = jax.jit(prefixes.loss, static_argnums=0)(forward, params, PROMPT)
    labels = np.append(PROMPT.y, PROMPT.y_query)
    np.testing.assert_allclose(error, ((whole - labels) ** 2).mean(), rtol=1e-12)


def test_interleaved_and_merged_layouts_are_those_of_the_models():
    config = transformer.Config(D + 1, 1, 2, 3, width=5, keys="causal", layout="interleaved")
    params = jax.jit(transformer.init, static_argnums=1)(jax.random.key(1), config)

    def forward(params, tokens):
        return transformer.forward(params, tokens, config)

    whole = np.asarray(predictions(forward, params, PROMPT, "interleaved"))
    alone = last_of_every_prefix(forward, params, "interleaved")
    np.testing.assert_allclose(whole[1:], alone, atol=1e-12)
    linear = linear_attention.init(jax.random.key(2), 1, 1, D, scale=0.5)
    merged = np.asarray(predictions(linear_attention.forward, linear, PROMPT, "merged"))
    assert merged[0] == 0
    alone = last_of_every_prefix(linear_attention.forward, linear, "merged")
    np.testing.assert_allclose(merged[1:], alone, atol=1e-12)


def test_any_causal_function_has_predictions_of_prefixes():
    def running_mean(tokens):  # of the labels so far
        return jnp.cumsum(tokens[:, -1]) / jnp.maximum(jnp.arange(len(tokens)), 1).astype(float)

    found = prefixes.predictions(as_forward(running_mean, causal=True), None, PROMPT)
    expected = [0.0, *(np.asarray(PROMPT.y)[:t].mean() for t in range(1, N + 1))]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"a prediction of shape \(\) for 5 tokens"):
        prefixes.predictions(as_forward(jnp.sum, causal=True), None, PROMPT)
    with pytest.raises(ValueError, match="answers the query alone"):
        prefixes.predictions(as_forward(jnp.sum), None, PROMPT)
    with pytest.raises(ValueError, match="layout is 'causal'"):
        prefixes.predictions(as_forward(jnp.sum), None, PROMPT, "causal")


def test_recursive_ridge_is_ridge_on_every_prefix():
    every = estimators.prefixes(lambda p: estimators.ridge(p, 0.7 / p.x.shape[0]), PROMPT)
    np.testing.assert_allclose(estimators.recursive_ridge(PROMPT, 0.7), every, atol=1e-12)
    assert not every[0].any()
    with pytest.raises(ValueError, match="penalty = 0"):
        estimators.recursive_ridge(PROMPT, 0.0)
