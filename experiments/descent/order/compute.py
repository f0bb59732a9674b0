"""Predictions of each layer for one prompt in many orders, and for other demonstrations."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.descent.order.config import KINDS, MASKS, Config
from lsa_lab import prompts
from lsa_lab.models import constructions, linear_attention, transformer
from lsa_lab.models.trace import layer_predictions
from lsa_lab.tasks.linear import LinearTask, sample, sample_weights


def draw(key, config):  # -> Params [R, ...], tokens [R, B, O, T, e] twice
    """Random weights, prompts in many orders, and prompts with other demonstrations of the same
    task and the same query. The first order is the one that was drawn."""
    runs, count, orders = config.runs, config.prompts, config.orders
    keys = [jax.random.fold_in(key, tag) for tag in range(4)]
    model = attention(config, "softmax", "demonstrations")
    init = partial(transformer.init, config=model)
    task = LinearTask(config.n, config.d, noise_std=config.noise_std)

    def similar(key_weights, key_prompts):  # prompts of one task that ask one thing
        same = task.replace(prior_mean=sample_weights(key_weights, task), weight_std=0.0)
        many = jax.vmap(partial(sample, task=same))(jax.random.split(key_prompts, orders))
        query = jnp.broadcast_to(many.x_query[:1], many.x_query.shape)
        return jax.vmap(prompts.tokens)(many.replace(x_query=query))

    def shuffled(key, tokens):
        return jnp.concatenate([jax.random.permutation(key, tokens[:-1]), tokens[-1:]])

    pairs = [jax.random.split(k, (runs, count)) for k in keys[1:3]]
    fresh = jax.vmap(jax.vmap(similar))(*pairs)
    first = fresh[:, :, :1]
    again = jnp.broadcast_to(first, (runs, count, orders - 1, *first.shape[3:]))
    shuffle = jax.vmap(jax.vmap(jax.vmap(shuffled)))
    permuted = shuffle(jax.random.split(keys[3], (runs, count, orders - 1)), again)
    ordered = jnp.concatenate([first, permuted], axis=2)
    return jax.vmap(init)(jax.random.split(keys[0], runs)), ordered, fresh


def attention(config, kernel, keys):
    return transformer.Config(
        config.d + 1,
        config.depth,
        config.heads,
        config.key_width,
        kernel=kernel,
        keys=keys,
        init_scale=config.scale,
    )


def predictions(params, tokens, config, kind, keys):  # [T, e] -> [L]
    """ŷ after each layer. The descent is one stack for all runs, with the one-layer best step."""
    if kind != "descent":
        trace = transformer.forward(params, tokens, attention(config, kind, keys))
    else:
        step = 1 / (1 + (1 + config.d + config.noise_std**2) / config.n)
        stack = constructions.gradient_descent(jnp.full(config.depth, step), config.d)
        trace = linear_attention.forward(stack, tokens, keys=keys)
    return layer_predictions(trace)[1:]


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    @partial(jax.jit, static_argnums=(3, 4))
    def measure(params, ordered, fresh, kind, keys):  # -> [2, R, L]
        of_prompt = partial(predictions, config=config, kind=kind, keys=keys)
        over_prompts = jax.vmap(jax.vmap(of_prompt, (None, 0)), (None, 0))
        # [R, B, 2 O, L]
        both = jax.vmap(over_prompts)(params, jnp.concatenate([ordered, fresh], axis=2))
        reordered, redrawn = both[:, :, : config.orders], both[:, :, config.orders :]
        size = jnp.sqrt((reordered[:, :, 0] ** 2).mean(1))
        change = jnp.abs(reordered - reordered[:, :, :1]).max((1, 2)) / size
        spread = [layers.std(2, ddof=1) for layers in (reordered, redrawn)]  # [R, B, L]
        return jnp.stack([change, jnp.median(spread[0] / spread[1], axis=1)])

    batch = jax.jit(partial(draw, config=config))(jax.random.key(config.seed))
    rows = np.array([[measure(*batch, kind, keys) for keys in MASKS.values()] for kind in KINDS])
    axes = ("kind", "mask", "run", "depth")
    return xr.Dataset(
        {name: (axes, rows[:, :, i]) for i, name in enumerate(("effect", "share"))},
        {"kind": list(KINDS), "mask": list(MASKS), "depth": np.arange(1, config.depth + 1)},
    )
