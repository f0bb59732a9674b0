"""Streams of random transformers, and what the best map common to their tokens misses."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.descent.common_map.config import MODELS, Config
from lsa_lab import prompts
from lsa_lab.analyses.common_map import best_common_map
from lsa_lab.models import transformer
from lsa_lab.tasks.linear import LinearTask, sample

RANDOM = ("w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_out")  # the rest is zero, or one


def architecture(config: Config, parts: dict) -> transformer.Config:
    """Linear attention but for these parts; an MLP has the width that the config says."""
    parts = {"kernel": "linear", **parts}
    if "mlp_width" in parts:
        parts["mlp_width"] = config.mlp_width
    return transformer.Config(
        config.d + 1, config.layers, config.heads, config.key_width, init_scale=1.0, **parts
    )


def draw(key, config):  # -> Params [R, S, ...], Prompt [R, B, ...], queries [R, B, m, d]
    """Weights of the largest model, at every scale, and prompts: the same for all models."""
    tags = [jax.random.fold_in(key, tag) for tag in range(3)]
    each = (config.runs, config.prompts)
    keys = [jax.random.split(*pair) for pair in zip(tags, (each[:1], each, each), strict=True)]
    model = architecture(config, MODELS["softmax, norm, MLP"])
    weights = jax.vmap(partial(transformer.init, config=model))(keys[0])

    def scaled(factor):
        return weights.replace(**{name: factor * getattr(weights, name) for name in RANDOM})

    task = LinearTask(config.n, config.d, noise_std=config.noise_std)
    batch = jax.vmap(jax.vmap(partial(sample, task=task)))(keys[1])
    normal = partial(jax.random.normal, shape=(config.queries, config.d))
    many = jax.vmap(scaled, out_axes=1)(jnp.asarray(config.scales))
    return many, batch, jax.vmap(jax.vmap(normal))(keys[2])


def only(params: transformer.Params, model: transformer.Config) -> transformer.Params:
    """The weights that this model has."""
    expected = jax.eval_shape(partial(transformer.init, config=model), jax.random.key(0))
    names = (field.name for field in dataclasses.fields(params))
    return params.replace(**{name: None for name in names if getattr(expected, name) is None})


def streams(params, batch, queries, model):  # -> [R, S, B, 1 + m, L+1, T, e]
    """The prompts with their own query, and with each of the others."""

    def stream(params, prompt, x_query):
        tokens = prompts.tokens(prompt.replace(x_query=x_query))
        return transformer.forward(params, tokens, model).stream

    queries = jnp.concatenate([batch.x_query[:, :, None], queries], axis=2)
    forward = jax.vmap(stream, (None, None, 0))
    forward = jax.vmap(jax.vmap(forward, (None, 0, 0)), (0, None, None))
    return jax.vmap(forward)(only(params, model), batch, queries)


def measure(stream):  # [1 + m, L+1, T, e] -> [3, L]
    """Residual over tokens and, as in ``best_common_query_map``, over queries asked alone; and the
    share of the tokens' move that no map explains."""
    tokens = best_common_map(stream[0, 0], stream[0])
    queries = best_common_map(stream[1:, 0, -1], stream[1:, :, -1].swapaxes(0, 1))
    return jnp.stack([tokens.residual, queries.residual, tokens.unexplained])[:, 1:]


def compute(config: Config, *, progress=None, checkpoints=None):
    run = jax.jit(streams, static_argnums=3)

    @jax.jit
    def measure_all(many):  # -> [R, S, 3, L]
        return jax.vmap(jax.vmap(jax.vmap(measure)))(many).mean(2)

    inputs = jax.jit(partial(draw, config=config))(jax.random.key(config.seed))
    models = [architecture(config, parts) for parts in MODELS.values()]
    measured = np.stack([measure_all(run(*inputs, model)) for model in models])
    axes = ("model", "run", "scale", "layer")
    names, layers = ("residual", "query_residual", "unexplained"), np.arange(config.layers) + 1
    return xr.Dataset(
        {name: (axes, measured[..., i, :]) for i, name in enumerate(names)},
        {"model": list(MODELS), "scale": list(config.scales), "layer": layers},
    )
