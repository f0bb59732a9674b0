"""Decoders of one's own: their weights before the first step, and the loss that steps lower.

Rooms of one floor meet through arguments, so the steps are those of ``training.fit``:

    training = Training(
        loss=lambda params, batch: learning.loss(params, *batch, config),
        sample=sample,  # key -> ids [B, T], weights [B, T]
        optimizer=learning.optimizer(3e-3, steps),
        steps=steps,
    )
    run = fit(training, lm.init(key, config), key, files=Files("mine.ckpt"))
    lm.save("mine", lm.Decoder(config, run.params, tokenizer))
"""

import functools

import chex
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.typing import DTypeLike

from lsa_lab.lm import layers, weights
from lsa_lab.lm.config import Config
from lsa_lab.lm.decoder import embed, layers_of, logits
from lsa_lab.lm.weights import Params, check_params


def init(key: Array, config: Config, dtype: DTypeLike | None = None) -> Params:
    """Those of ``weights.init`` with norms at 1, biases at 0, and quieter writes.

    W_O and W_out are divided by √(2L): the stream's variance does not grow with the depth (Radford
    et al. 2019).
    """
    params = weights.init(key, config, dtype)
    changes = {}
    for name, leaf in vars(params).items():
        if leaf is None:
            continue
        if name.endswith("_scale"):
            scale = config.key_width**-0.5 if name == "q_norm_scale" else 1.0
            changes[name] = jnp.full_like(leaf, scale)
        elif name.startswith("b_") or name.endswith(("_bias", "_offset")):
            changes[name] = jnp.zeros_like(leaf)
        elif name in ("w_o", "mlp_out"):
            changes[name] = leaf / (2 * config.num_layers) ** 0.5
    return params.replace(**changes)


def last_rows(params: Params, ids: Array, config: Config) -> Array:  # [T] -> [T, D]
    """The stream after the last layer."""
    check_params(params, config)
    step = functools.partial(layers.after, config=config)
    return jax.lax.scan(step, embed(params, ids, config), layers_of(params, config))[0]


def loss(params: Params, ids: Array, importance: Array, config: Config) -> Array:  # []
    """Σ w_t (-log p(id_t | the ids before)) / Σ w_t over prompts, in nats.

    ids and importance w, numbers or truth values, are [B, T]; a first token is not predicted, and
    its w is not read.
    """
    chex.assert_equal_shape([ids, importance])
    rows = jax.vmap(last_rows, (None, 0, None))(params, ids, config)
    scores = jax.nn.log_softmax(logits(params, rows[:, :-1], config))
    own = jnp.take_along_axis(scores, ids[:, 1:, None], axis=-1)[..., 0]
    importance = importance[:, 1:].astype(own.dtype)
    return -(importance * own).sum() / importance.sum()


def optimizer(rate: float, steps: int) -> optax.GradientTransformation:
    """AdamW of clipped gradients, whose rate rises for a twentieth of the steps, then falls as a
    cosine to a tenth (Loshchilov and Hutter 2019)."""
    rates = optax.warmup_cosine_decay_schedule(0.0, rate, max(steps // 20, 1), steps, rate / 10)
    adam = optax.adamw(rates, b2=0.98, weight_decay=0.01)
    return optax.chain(optax.clip_by_global_norm(1.0), adam)
