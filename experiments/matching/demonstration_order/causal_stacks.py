"""The causal stacks that `demonstration_order` asks: random, constructed and trained."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp

from experiments.models import model
from lsa_lab.models import constructions, linear_attention, transformer


def stacks(config, trained):  # -> {name: (forward, params [R, ...])}, {name: status [R]}
    """All stacks, and how the training of those that are trained ended."""
    key = jax.random.fold_in(jax.random.key(config.seed), 1)
    every, status = {"descent": descent(config)}, {}
    for name, runs in trained.items():
        shape = model.shape(runs.spec)
        forward = partial(transformer.forward, config=shape)
        scaled = dataclasses.replace(shape, init_scale=config.random_scale)
        init = jax.jit(jax.vmap(partial(transformer.init, config=scaled)))
        random = name.replace("trained", "random")
        every[random] = forward, init(jax.random.split(key, config.runs))
        seeds = slice(config.runs)
        every[name] = forward, runs.models(seeds=seeds).in_float64().params
        ends = [end.kind for end in runs.status]  # none of weights that were read
        ends = ends or ["finished" if done else "diverged" for done in runs.finished[-1]]
        status[name] = ends[seeds]
    return every, status


def descent(config):  # -> forward, params [R, ...]
    """The best single step again and again, the same for all runs."""
    step = 1 / (1 + (1 + config.d + config.noise_std**2) / config.n)
    stack = constructions.gradient_descent(jnp.full(config.depth, step), config.d)
    params = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], config.runs, 0), stack)
    return partial(linear_attention.forward, keys="causal"), params
