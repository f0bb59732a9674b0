"""The loss and the optimiser of a decoder's training; the steps are those of ``training.fit``.

training = Training(
    loss=lambda params, batch: learning.loss(params, *batch, config),
    sample=sample,  # key -> ids [B, T], importance [B, T]
    optimizer=learning.make_optimizer(3e-3, steps),
    steps=steps,
)
run = fit(training, lm.init(key, config), key, files=Files("mine.ckpt"))
lm.save("mine", lm.Decoder(config, run.params, tokenizer))
"""

import chex
import jax
import jax.numpy as jnp
import optax
from jax import Array

from lsa_lab.lm.config import Config
from lsa_lab.lm.decoder import embed, last_stream, logits
from lsa_lab.lm.weights import Params, check_params


def last_rows(params: Params, ids: Array, config: Config) -> Array:  # [T] -> [T, D]
    """Return the stream after the last layer."""
    check_params(params, config)
    return last_stream(params, embed(params, ids, config), config)


def loss(params: Params, ids: Array, importance: Array, config: Config) -> Array:  # []
    """Return Σ w_t (-log p(id_t | the ids before)) / Σ w_t over prompts, in nats.

    ids and importance w, numbers or truth values, are [B, T]; a first token is not predicted, and
    its w is not read.
    """
    chex.assert_equal_shape([ids, importance])
    rows = jax.vmap(last_rows, (None, 0, None))(params, ids, config)
    scores = jax.nn.log_softmax(logits(params, rows[:, :-1], config))
    log_likelihoods = jnp.take_along_axis(scores, ids[:, 1:, None], axis=-1)[..., 0]
    importance = importance[:, 1:].astype(log_likelihoods.dtype)
    return -(importance * log_likelihoods).sum() / importance.sum()


def make_optimizer(rate: float, steps: int) -> optax.GradientTransformation:
    """Return AdamW of clipped gradients, whose rate rises for a twentieth of the steps, then falls
    as a cosine to a tenth (Loshchilov and Hutter 2019)."""
    rates = optax.warmup_cosine_decay_schedule(0.0, rate, max(steps // 20, 1), steps, rate / 10)
    adam = optax.adamw(rates, b2=0.98, weight_decay=0.01)
    return optax.chain(optax.clip_by_global_norm(1.0), adam)
