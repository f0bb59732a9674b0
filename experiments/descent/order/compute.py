"""Predictions of each layer for one prompt in many orders, and for other demonstrations; with the
relevant demonstration in every place; and with demonstrations sorted by rules."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.descent.order.config import KINDS, Config
from experiments.descent.order.places import move_relevant
from experiments.descent.order.rules import causal_descent, sort_demonstrations
from lsa_lab import prompts
from lsa_lab.models import linear_attention, transformer
from lsa_lab.models.trace import layer_predictions
from lsa_lab.store import parts
from lsa_lab.tasks.linear import LinearTask, sample, sample_weights


def draw(key, config):  # -> Params [R, ...], tokens [R, B, O, T, e] twice
    """Random weights, prompts in many orders, and prompts with other demonstrations of the same
    task and the same query. The first order is the one that was drawn."""
    runs, count, orders = config.runs, config.prompts, config.orders
    keys = [jax.random.fold_in(key, tag) for tag in range(4)]
    init = partial(transformer.init, config=attention(config, "softmax"))
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
    shuffle = jax.vmap(jax.vmap(jax.vmap(shuffled, (0, None))))
    permuted = shuffle(jax.random.split(keys[3], (runs, count, orders - 1)), fresh[:, :, 0])
    ordered = jnp.concatenate([fresh[:, :, :1], permuted], axis=2)
    return jax.vmap(init)(jax.random.split(keys[0], runs)), ordered, fresh


def attention(config, kernel):
    rest = dict(kernel=kernel, keys="causal", init_scale=config.scale)
    return transformer.Config(config.d + 1, config.depth, config.heads, config.key_width, **rest)


def predictions(params, tokens, config, kind):  # [T, e] -> [L]
    """ŷ after each layer. The descent is one stack for all runs."""
    if kind != "descent":
        trace = transformer.forward(params, tokens, attention(config, kind))
    else:
        stack = causal_descent(config.d, config.n, config.noise_std, config.depth)
        trace = linear_attention.forward(stack, tokens, keys="causal")
    return layer_predictions(trace)[1:]


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    @partial(jax.jit, static_argnums=3)
    def spread_ratios(params, ordered, fresh, kind):  # -> [R, L]
        """The spread over orders beside that over other demonstrations."""
        answer = partial(predictions, config=config, kind=kind)
        over_prompts = jax.vmap(jax.vmap(jax.vmap(answer, (None, 0)), (None, 0)))
        both = over_prompts(params, jnp.concatenate([ordered, fresh], axis=2))  # [R, B, 2 O, L]
        halves = both[:, :, : config.orders], both[:, :, config.orders :]
        spread = [layers.std(2, ddof=1) for layers in halves]  # [R, B, L]
        return jnp.median(spread[0] / spread[1], axis=1)

    batch = jax.jit(partial(draw, config=config))(jax.random.key(config.seed))
    shares = np.array([spread_ratios(*batch, kind) for kind in KINDS])
    whole = xr.Dataset(
        {"share": (("kind", "run", "depth"), shares)},
        {"kind": list(KINDS), "depth": np.arange(1, config.depth + 1)},
    )
    place = move_relevant(config.place, models)
    return parts.join(whole, place=place, rules=sort_demonstrations(config.rules, models))
