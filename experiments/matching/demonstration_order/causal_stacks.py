"""The causal stacks that `demonstration_order` asks: random, constructed and trained."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp

from experiments.models import model
from experiments.models.regression import dense
from experiments.models.specs import restored
from experiments.models.trained import trained
from lsa_lab.models import constructions, linear_attention, transformer


def spec_of(config, kernel):
    if kernel == "softmax" and config.shared:
        return restored(config.shared)
    training = {name: getattr(config, name) for name in ("steps", "batch", "learning_rate")}
    training |= dict(seeds=config.runs, seed=config.seed)
    heads = dict(heads=config.heads, key_width=config.d + 1, keys="causal", init_scale=0.5)
    sizes = (config.d, config.n, config.depth)
    return dense(kernel, *sizes, noise_std=config.noise_std, training=training, **heads)


def by_name(config, progress):  # -> {model: (forward, params [R, ...])}, {model: status [R]}
    """All models, and how the training of those that are trained ended."""
    key = jax.random.fold_in(jax.random.key(config.seed), 1)
    models, status = {"descent": descent(config)}, {}
    for kernel in config.kernels:
        spec = spec_of(config, kernel)
        runs = trained(spec, f"demonstration_order: {kernel}", progress=progress)
        shape = model.shape(spec)
        forward = partial(transformer.forward, config=shape)
        scaled = dataclasses.replace(shape, init_scale=config.random_scale)
        init = jax.jit(jax.vmap(partial(transformer.init, config=scaled)))
        models[f"random {kernel}"] = forward, init(jax.random.split(key, config.runs))
        seeds = slice(config.runs)
        models[f"trained {kernel}"] = forward, runs.models(seeds=seeds).in_float64().params
        ends = [end.kind for end in runs.status]  # none of weights that were read
        ends = ends or ["finished" if done else "diverged" for done in runs.finished[-1]]
        status[f"trained {kernel}"] = ends[seeds]
    return models, status


def descent(config):  # -> forward, params [R, ...]
    """The best single step again and again, the same for all runs."""
    step = 1 / (1 + (1 + config.d + config.noise_std**2) / config.n)
    stack = constructions.gradient_descent(jnp.full(config.depth, step), config.d)
    params = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], config.runs, 0), stack)
    return partial(linear_attention.forward, keys="causal"), params
