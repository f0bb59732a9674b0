"""Prompts of a Spec's task, to train on and to evaluate on."""

import jax
import jax.numpy as jnp

from experiments.models.specs import Task
from lsa_lab import prompts
from lsa_lab.prompts import Prompt
from lsa_lab.tasks import linear
from lsa_lab.tasks.linear import LinearTask


def distribution(task: Task, n: int | None = None, *, noise_std=None, dtype=None) -> LinearTask:
    """Return the task with n demonstrations, by default as many as the longest in training."""
    return LinearTask(
        max(task.lengths) if n is None else n,
        task.d,
        sparsity=task.sparsity,
        noise_std=task.noise_std if noise_std is None else noise_std,
        weight_std=task.weight_std,
        labels=task.labels,
        dtype=dtype,
    )


def draw(key, task: LinearTask, size: int) -> Prompt:  # [size]
    """Draw prompts of a task."""
    return linear.sample_batch(key, task, size)


def training_batch(key, task: Task, size: int) -> Prompt:  # [size]
    """Draw prompts of the task's lengths, in float32: a short one is a long one, repeated."""
    longest = distribution(task, dtype=jnp.float32)
    if len(task.lengths) == 1:
        return draw(key, longest, size)
    key_prompts, key_lengths = jax.random.split(key)
    batch = draw(key_prompts, longest, size)
    lengths = jax.random.choice(key_lengths, jnp.asarray(task.lengths), (size,))
    return jax.vmap(prompts.repeat_demonstrations)(batch, lengths)
