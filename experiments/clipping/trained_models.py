"""The trained models that the experiments on clipping share, each trained once."""

from dataclasses import replace

import jax
import numpy as np

from experiments.models import stacks


def transformers(config, label, progress=None):  # -> Stack, params [R', looks+1, ...], statuses [R]
    """The models of a ``TransformerConfig`` at every checkpoint; those that diverged left out."""
    stack = stacks.clipped_stack(config)
    run = stacks.trained(
        stack, config.runs, config.training_seed, label, progress, looks=config.looks
    )
    well = np.array([status.kind != "diverged" for status in run.status])
    watched = jax.tree.map(lambda leaf: np.asarray(leaf)[well], run.history["watch"])
    return stack, watched, [str(status) for status in run.status]


def final(watched):  # [R', looks+1, ...] -> [R', ...]
    """The params after the last step."""
    return jax.tree.map(lambda leaf: leaf[:, -1], watched)


def squared_error(stack):
    """(params, prompts [B]) -> the excess error of each [B]; built once, it is compiled once."""
    predicted = stacks.predictions(stack)
    return lambda params, batch: (predicted(params, batch) - batch.y_query) ** 2


def linear_stacks(config, progress=None):  # -> Stack, params [R', ...], statuses [R]
    """The models of a ``LinearConfig`` in float64; those that diverged left out."""
    stack = replace(stacks.stack_of("linear", config), noise_std=config.noise_std, clip=config.clip)
    run = stacks.trained(stack, config.runs, config.training_seed, "linear stacks", progress)
    well = np.array([status.kind != "diverged" for status in run.status])
    params = jax.tree.map(lambda leaf: np.asarray(leaf, float)[well], run.params)
    return stack, params, [str(status) for status in run.status]
