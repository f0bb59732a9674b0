"""The stacks that `demonstration_order` asks, random, constructed and trained, under two masks."""

from functools import partial

import jax
import jax.numpy as jnp

from experiments.models import stacks
from lsa_lab.models import constructions, linear_attention, transformer

MASKS = ("causal", "demonstrations")  # in the second, every token reads all demonstrations


def stack_of(config, kernel):
    sizes = (config.d, config.n, config.depth, config.steps, config.batch)
    return stacks.Stack(
        "softmax" if kernel == "softmax" else "linear heads",
        *sizes,
        config.learning_rate,
        heads=config.heads,
        noise_std=config.noise_std,
        init_scale=0.5,
        keys="causal",
    )


def by_name(
    config, progress
):  # -> {model: ({mask: forward}, params [R, ...])}, {model: status [R]}
    """All models, and how the training of those that are trained ended."""
    key = jax.random.fold_in(jax.random.key(config.seed), 1)
    models, status = {"descent": descent(config)}, {}
    for kernel in config.kernels:
        stack = stack_of(config, kernel)
        label = f"demonstration_order: {kernel}"
        run = stacks.trained(stack, config.runs, config.seed, label, progress)
        shapes = {mask: shape(stack, keys=mask) for mask in MASKS}
        forward = {mask: partial(transformer.forward, config=shapes[mask]) for mask in MASKS}
        scaled = shape(stack, keys="causal", init_scale=config.random_scale)
        init = jax.jit(jax.vmap(partial(transformer.init, config=scaled)))
        models[f"random {kernel}"] = forward, init(jax.random.split(key, config.runs))
        params = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), run.params)
        models[f"trained {kernel}"] = forward, params
        status[f"trained {kernel}"] = [end.kind for end in run.status]
    return models, status


def descent(config):  # -> {mask: forward}, params [R, ...]
    """The best single step again and again, the same for all runs."""
    step = 1 / (1 + (1 + config.d + config.noise_std**2) / config.n)
    stack = constructions.gradient_descent(jnp.full(config.depth, step), config.d)
    params = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], config.runs, 0), stack)
    return {mask: partial(linear_attention.forward, keys=mask) for mask in MASKS}, params


def shape(stack, **changes):
    return transformer.Config(**(vars(stacks.shape(stack)) | changes))
