"""Biases, learned positions and a final norm; predictions are those of the full trace."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.models import constructions, transformer
from lsa_lab.models.trace import label_slots
from lsa_lab.models.transformer import Config

PLAIN = Config(
    3, 2, (2, 1), 2, width=5, keys="causal", norm=True, mlp_width=4, layout="interleaved"
)
EXTRAS = dataclasses.replace(PLAIN, biases=True, final_norm=True, num_positions=9)
TOKENS = np.random.default_rng(1).normal(size=(7, 3))
init = jit_numpy(transformer.init, static_argnums=1)
forward = jit_numpy(transformer.forward)


def test_at_first_the_extras_are_neutral_but_for_the_norm():
    plain, params = (init(jax.random.key(0), each) for each in (PLAIN, EXTRAS))
    streams = forward(params, TOKENS, EXTRAS).stream, forward(plain, TOKENS, PLAIN).stream
    np.testing.assert_allclose(*streams, rtol=1e-10, atol=1e-10)


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
