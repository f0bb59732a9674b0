"""A batch's predictions are those of ``forward``, prompt by prompt, and so are their gradients."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.models import transformer
from lsa_lab.models.transformer import Config

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
def draw(config, dtype):
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
def test_a_batch_is_predicted_and_differentiated_as_its_prompts_are(name, dtype):
    config, tolerance = SHAPES[name], 1e-10 if dtype == jnp.float64 else 1e-5
    batched, single = transformer.predictions, transformer.predict
    if config.layout == "interleaved":
        batched, single = transformer.prefix_predictions, transformer.predict_prefixes
    alone = jax.vmap(single, (None, 0, None, None))

    def value_and_grads(form):
        def loss(params, tokens, gates):
            predicted = form(params, tokens, config, gates)
            return (predicted**2).sum(), predicted

        run = jax.jit(jax.value_and_grad(loss, (0, 1, 2), has_aux=True))
        return run(*draw(config, dtype))

    def close(fast, slow):
        assert fast.dtype == slow.dtype
        scale = max(1, np.abs(slow).max())
        np.testing.assert_allclose(fast / scale, slow / scale, rtol=0, atol=tolerance)

    jax.tree.map(close, *jax.device_get((value_and_grads(batched), value_and_grads(alone))))


def test_impossible_batches_are_refused():
    params, tokens, _ = draw(BASE, jnp.float64)
    with pytest.raises(ValueError, match="tokens are 2 wide"):
        transformer.predictions(params, tokens[..., :2], BASE)
    with pytest.raises(ValueError, match="only the query has a prediction; use predictions"):
        transformer.prefix_predictions(params, tokens, BASE)
