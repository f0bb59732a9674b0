"""Biases, learned positions and a final norm; predictions are those of the full trace."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.analyses import probes
from lsa_lab.models import constructions, transformer
from lsa_lab.models.trace import label_slots
from lsa_lab.models.transformer import Config

PLAIN = Config(
    3, 2, (2, 1), 2, width=5, keys="causal", norm=True, mlp_width=4, layout="interleaved"
)
EXTRAS = dataclasses.replace(PLAIN, biases=True, final_norm=True, num_positions=9)
TOKENS = np.random.default_rng(1).normal(size=(7, 3))
init = jit_numpy(transformer.init, static_argnums=1)
forward, predict = jit_numpy(transformer.forward), jit_numpy(transformer.predict)
NAMES = {"b_q", "b_k", "b_v", "b_o", "read_in_bias", "read_out_bias", "positions"}
NAMES |= {"final_norm_scale", "final_norm_offset"}


def draw(config=EXTRAS, seed=0):
    """Weights with random numbers in every leaf that starts at a constant, absent heads left."""
    params, rng = init(jax.random.key(seed), config), np.random.default_rng(seed)
    present = transformer.present_heads(config)[:, :, None]
    for name in sorted(NAMES):
        leaf = getattr(params, name)
        leaf = leaf + 0.3 * rng.normal(size=leaf.shape)
        params = params.replace(
            **{name: np.where(present, leaf, 0) if name in ("b_q", "b_k", "b_v") else leaf}
        )
    return params


def close(first, second):
    np.testing.assert_allclose(first, second, rtol=1e-10, atol=1e-10)


def test_at_first_the_extras_are_neutral_but_for_the_norm():
    plain, params = (init(jax.random.key(0), each) for each in (PLAIN, EXTRAS))
    arrays = {name for name, leaf in vars(params).items() if leaf is not None}
    assert arrays - {name for name, leaf in vars(plain).items() if leaf is not None} == NAMES
    close(forward(params, TOKENS, EXTRAS).stream, forward(plain, TOKENS, PLAIN).stream)


def test_the_final_norm_stands_before_the_read_out_at_every_layer():
    params = draw()
    trace = forward(params, TOKENS, EXTRAS)
    rows = trace.stream
    rows = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
    rows = rows * params.final_norm_scale + params.final_norm_offset
    slots = rows @ params.read_out + params.read_out_bias
    close(label_slots(trace), slots)
    close(predict(params, TOKENS, EXTRAS), -slots[-1, -1])
    with pytest.raises(ValueError, match="a label slot that is linear in the stream"):
        probes.head_contributions(trace)


def test_a_prefix_with_positions_is_predicted_as_if_it_were_the_prompt():
    config, params = dataclasses.replace(EXTRAS, kernel="linear"), draw()
    prefixes = jit_numpy(transformer.predict_prefixes)(params, TOKENS, config)
    close(prefixes[1], predict(params, TOKENS[:3], config))


def test_scores_and_values_know_their_biases_and_one_bias_is_no_heads():
    attention_only = dataclasses.replace(EXTRAS, mlp_width=None)
    params = draw()
    mlp = ("mlp_in", "mlp_in_bias", "mlp_out", "mlp_out_bias", "mlp_norm_scale", "mlp_norm_offset")
    params = params.replace(**dict.fromkeys(mlp))
    trace = forward(params, TOKENS, attention_only)
    close(trace.stream[1:] - trace.stream[:-1], trace.heads.sum(1) + params.b_o[:, None])
    rows = trace.stream[0]
    rows = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
    rows = rows * params.attention_norm_scale[:1] + params.attention_norm_offset[:1]
    values = np.einsum("hkd,id->hik", params.w_v[0], rows) + params.b_v[0][:, None]
    weights = jit_numpy(transformer.attention)(params, trace, attention_only)[0]
    close(trace.heads[0], np.einsum("hti,hik,hdk->htd", weights, values, params.w_o[0]))


def test_every_leaf_has_a_gradient_and_absent_heads_none():
    params = draw()
    gradient = jit_numpy(jax.grad(transformer.predict))(params, TOKENS, EXTRAS)
    for name in NAMES - {"b_k"}:  # all keys of a softmax share b_k
        assert np.abs(getattr(gradient, name)).max() > 1e-6, name
    close(gradient.b_k, 0)
    assert not gradient.b_q[1, 1].any()
    assert not gradient.b_v[1, 1].any()
    assert not gradient.positions[7:].any()  # seven tokens, nine positions


def test_extras_that_the_config_lacks_are_refused():
    biased = Config(3, 1, 1, 2, kernel="linear", biases=True)
    params = init(jax.random.key(0), biased)
    with pytest.raises(ValueError, match="bias"):
        constructions.scale_skip(params, 0.5)
    with pytest.raises(AssertionError, match="config"):
        transformer.forward(params, jnp.ones((3, 3)), dataclasses.replace(biased, biases=False))


BASE = Config(token_width=3, num_layers=2, heads=2, key_width=2, init_scale=1.0)
WIDE = dataclasses.replace(
    BASE, width=5, norm=True, mlp_width=7, biases=True, final_norm=True, num_positions=9
)
SHAPES = {
    "wide": WIDE,
    "prefixes": dataclasses.replace(WIDE, layout="interleaved", keys="causal"),
    "uneven": dataclasses.replace(BASE, num_layers=3, heads=(3, 1, 1), keys="all", mlp_width=2),
    "linear": dataclasses.replace(WIDE, kernel="linear"),
}


@functools.partial(jax.jit, static_argnums=(0, 1))
def draw_many(config, dtype):
    params = transformer.init(jax.random.key(0), config, dtype)
    params = jax.tree.map(lambda w: (1.1 * w + 0.1).astype(dtype), params)  # norms and biases too
    key_tokens, key_gates = jax.random.split(jax.random.key(1))
    tokens = jax.random.normal(key_tokens, (4, 7, config.token_width), dtype)
    return (
        params,
        tokens,
        jax.random.uniform(key_gates, (config.num_layers, config.num_heads), dtype),
    )


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, jnp.float64) for name in SHAPES), ("wide", jnp.float32)]
)
def test_predictions_are_those_of_the_full_trace(name, dtype):
    """The last layer of ``predict`` runs for few tokens: same values and gradients."""
    config, tolerance = SHAPES[name], 1e-10 if dtype == jnp.float64 else 1e-5
    interleaved = config.layout == "interleaved"
    predict = transformer.predict_prefixes if interleaved else transformer.predict
    read = slice(None, None, 2) if interleaved else -1

    def read_trace(params, tokens, config, gates):
        return -label_slots(transformer.forward(params, tokens, config, gates))[-1, read]

    def value_and_grads(form):
        def loss(params, tokens, gates):
            predicted = jax.vmap(form, (None, 0, None, None))(params, tokens, config, gates)
            return (predicted**2).sum(), predicted

        run = jax.jit(jax.value_and_grad(loss, (0, 1, 2), has_aux=True))
        return run(*draw_many(config, dtype))

    def close(fast, slow):
        assert fast.dtype == slow.dtype
        scale = max(1, np.abs(slow).max())
        np.testing.assert_allclose(fast / scale, slow / scale, rtol=0, atol=tolerance)

    jax.tree.map(close, *jax.device_get((value_and_grads(predict), value_and_grads(read_trace))))
