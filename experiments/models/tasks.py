"""Prompts of a Spec's task, to train on and to evaluate on."""

from functools import partial

import jax
import jax.numpy as jnp

from experiments.models.specs import Task
from lsa_lab import estimators, prompts
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
    return linear.sample_batch(key, task, size)


@partial(jax.jit, static_argnums=(2, 3))
def draw_runs(key, task: LinearTask, runs: int, size: int):  # -> Prompt [R, B]
    """Draw other prompts for each run: an interval over runs is then one over prompts too."""
    return jax.vmap(partial(draw, task=task, size=size))(jax.random.split(key, runs))


@partial(jax.jit, static_argnums=1)
def ridge_risks(batch, penalty):  # Prompt [R, B] -> [R]
    """Return the risk of ridge regression; with the right penalty it is the Bayes rule."""

    def error(prompt):
        return (estimators.ridge(prompt, penalty) @ prompt.x_query - prompt.y_query) ** 2

    return jax.vmap(jax.vmap(error))(batch).mean(1)


def training_batch(key, task: Task, size: int) -> Prompt:  # [size]
    """Draw prompts of the task's lengths, in float32: a short one is a long one, repeated."""
    longest = distribution(task, dtype=jnp.float32)
    if len(task.lengths) == 1:
        return draw(key, longest, size)
    key_prompts, key_lengths = jax.random.split(key)
    batch = draw(key_prompts, longest, size)
    lengths = jax.random.choice(key_lengths, jnp.asarray(task.lengths), (size,))
    return jax.vmap(prompts.repeat_demonstrations)(batch, lengths)
