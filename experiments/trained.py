"""The small linear and softmax transformers that several experiments train and then look into.

A config for them has d, n, depth, heads, learning_rate, and {name}_steps, {name}_batch for each.
"""

from functools import partial

import jax
import jax.numpy as jnp
import optax

from lsa_lab.models import linear_attention, moments, transformer
from lsa_lab.models.trace import predict
from lsa_lab.prompts import tokens
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.training import fit

MODELS = ("linear", "softmax")


def model(name, config):
    """(init, forward, predictions of a batch); without a read-in, so that layers can be read.

    A linear layer has one head of merged weights, a softmax layer heads as wide as a token.
    """
    if name == "linear":
        init = partial(linear_attention.init, num_layers=config.depth, num_heads=1, d=config.d)
        init = partial(init, scale=0.1, dtype=jnp.float32)
        return init, linear_attention.forward, moments.predictions
    e = config.d + 1
    shape = transformer.Config(e, config.depth, config.heads, e, init_scale=1.0)
    forward = partial(transformer.forward, config=shape)

    def predictions(params, batch):
        return jax.vmap(lambda prompt: predict(forward(params, tokens(prompt))))(batch)

    return partial(transformer.init, config=shape, dtype=jnp.float32), forward, predictions


def draw(key, noise_std, config, size, n=None):
    """Prompts [size] of n demonstrations, by default as many as in training."""
    task = LinearTask(n or config.n, config.d, noise_std=noise_std, dtype=jnp.float32)
    return jax.vmap(partial(sample, task=task))(jax.random.split(key, size))


def train(name, config, noise, key, label, progress=None, checkpoints=None, chunk=100, watch=None):
    """One run for each noise level [R], in float32: Adam on fresh prompts, warm-up then cosine."""
    init, _, predictions = model(name, config)
    steps, batch = (getattr(config, f"{name}_{what}") for what in ("steps", "batch"))
    rate = config.learning_rate
    schedule = optax.warmup_cosine_decay_schedule(0.0, rate, steps // 20, steps, rate / 100)
    key_init, key_data = jax.random.split(key)
    return fit(
        lambda params, batch, _: ((predictions(params, batch) - batch.y_query) ** 2).mean(),
        jax.jit(jax.vmap(init))(jax.random.split(key_init, len(noise))),
        lambda _: optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule)),
        lambda key, noise_std: draw(key, noise_std, config, batch),
        jax.random.split(key_data, len(noise)),
        steps,
        settings=noise,
        chunk=chunk,
        watch=watch,
        progress=progress,
        label=f"{label}: {name}",
        checkpoint=checkpoints and checkpoints / f"{name}.ckpt",
        identity=repr(config),
    )
