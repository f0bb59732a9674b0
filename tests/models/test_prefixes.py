"""Predictions of prefixes and of batches are those of single prompts."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_prompt, draw_stack, jit_numpy
from lsa_lab import prompts
from lsa_lab.interop import as_forward
from lsa_lab.models import linear_attention, moments, prefixes, recurrent, transformer
from lsa_lab.models.trace import predict
from lsa_lab.prompts import bound_tokens
from lsa_lab.tasks.linear import LinearTask, sample_batch

N, D = 4, 2
PROMPT = draw_prompt(np.random.default_rng(0), N, D)
LABELS = np.append(PROMPT.y, PROMPT.y_query)
predictions = jit_numpy(prefixes.predictions, static_argnums=(0, 3))
loss = jit_numpy(prefixes.loss, static_argnums=(0, 3))
BOUND = recurrent.Config("gated_delta", 2 * D + 1, num_layers=2, width=6, layout="bound")
INTERLEAVED = transformer.Config(
    *(D + 1, 2, 2, 3), width=5, kernel="linear", keys="causal", layout="interleaved", norm=True
)
MODELS = {
    "bound": (recurrent, BOUND),
    "interleaved": (transformer, INTERLEAVED),
    "merged": (linear_attention, None),
}


@pytest.mark.parametrize("layout", MODELS)
def test_one_call_predicts_at_every_prefix_as_if_it_were_the_prompt(layout):
    module, config = MODELS[layout]
    forward, params = module.forward, draw_stack(np.random.default_rng(2), 1, 1, D + 1, 0.5)
    if config is not None:
        forward = functools.partial(forward, config=config)
        params = jit_numpy(module.init, static_argnums=1)(jax.random.key(0), config)
    whole = predictions(forward, params, PROMPT, layout)
    for t in (1, N):
        asked = np.vstack([PROMPT.x, PROMPT.x_query])[t]
        cut = PROMPT.replace(x=PROMPT.x[:t], y=PROMPT.y[:t], x_query=asked)
        alone = predictions(forward, params, cut, layout)[-1]
        np.testing.assert_allclose(whole[t], alone, atol=1e-12)
    assert (whole[0] == 0) == (layout == "merged")
    error = loss(forward, params, PROMPT, layout)
    np.testing.assert_allclose(error, ((whole - LABELS) ** 2).mean(), rtol=1e-12)
    if layout == "bound":
        run = jit_numpy(recurrent.predict_prefixes, static_argnums=2)
        np.testing.assert_allclose(run(params, bound_tokens(PROMPT), config), whole, rtol=1e-12)


def test_any_causal_function_has_predictions_of_prefixes():
    def running_mean(tokens):  # of the labels so far
        return jnp.cumsum(tokens[:, -1]) / jnp.maximum(jnp.arange(len(tokens)), 1).astype(float)

    found = predictions(as_forward(running_mean, causal=True), None, PROMPT, "bound")
    expected = [0.0, *(PROMPT.y[:t].mean() for t in range(1, N + 1))]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"a prediction of shape \(\); expected one for each"):
        prefixes.predictions(as_forward(jnp.sum, causal=True), None, PROMPT)
    with pytest.raises(ValueError, match="query"):
        prefixes.predictions(as_forward(jnp.sum), None, PROMPT)


def test_a_second_moment_may_be_in_half_precision():
    params = linear_attention.Params(*np.full((2, 2, 1, 3, 3), 0.1))
    half = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.bfloat16), params)
    maps = moments.layer_maps(half, jnp.eye(3, dtype=jnp.bfloat16))
    assert maps.dtype == jnp.bfloat16
    expected = moments.layer_maps(params, np.eye(3))
    np.testing.assert_allclose(maps.astype(float), expected, atol=0.02)


@pytest.mark.parametrize(("version", "drops"), [((0, 11, 9), True), ((0, 12), False)])
def test_barriers_are_kept_where_the_compiler_would_drop_them(version, drops, monkeypatch):
    monkeypatch.setattr(jax, "__version_info__", version)
    assert bool(moments.compiler_options()) == (drops and jax.default_backend() == "cpu")


WIDE = moments._NARROW  # covariates of the narrowest tokens that are wide


# Narrow tokens: batch axis last; wide and few: the tokens; wide and many: one map a prompt.
@pytest.mark.parametrize(
    ("num_layers", "d", "n"),
    [(3, 3, 7), (1, 3, 7), (2, WIDE, 7), (2, WIDE, moments._LONG * (WIDE + 1))],
)
def test_batched_predictions_and_their_gradients_are_those_of_the_tokens(num_layers, d, n):
    task = LinearTask(n, d, noise_std=0.3)
    batch = jit_numpy(lambda key: sample_batch(key, task, 5))(jax.random.key(d))
    params = draw_stack(np.random.default_rng(0), num_layers, 2, d + 1, 0.1)

    def from_tokens(params, batch):
        run = functools.partial(linear_attention.forward, params)
        return jax.vmap(lambda prompt: predict(run(prompts.tokens(prompt))))(batch)

    def differentiate(function):
        def loss(params):
            answers = function(params, batch)
            return (answers**2).sum(), answers

        return jit_numpy(jax.grad(loss, has_aux=True))(params)

    same = functools.partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)
    jax.tree.map(same, differentiate(moments.predictions), differentiate(from_tokens))
