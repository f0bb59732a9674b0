"""Prompts of a Spec's task, to train on and to judge on."""

from functools import partial

import jax
import jax.numpy as jnp

from experiments.models.specs import Task
from lsa_lab.prompts import Prompt
from lsa_lab.tasks import curricula, linear, polynomial
from lsa_lab.tasks.linear import LinearTask
from lsa_lab.tasks.polynomial import PolynomialTask


def distribution(
    task: Task, n: int | None = None, *, noise_std=None, dtype=None
) -> LinearTask | PolynomialTask:
    """Prompts of n demonstrations, by default as many as the longest in training."""
    n = max(task.lengths) if n is None else n
    noise_std = task.noise_std if noise_std is None else noise_std
    rest = dict(
        sparsity=task.sparsity, noise_std=noise_std, weight_std=task.weight_std, dtype=dtype
    )
    if task.degree > 1:
        return PolynomialTask(n, task.d, task.degree, **rest)
    return LinearTask(n, task.d, labels=task.labels, **rest)


def draw(key, task: LinearTask | PolynomialTask, size: int) -> Prompt:  # [size]
    if isinstance(task, LinearTask):
        return linear.sample_batch(key, task, size)
    return jax.vmap(partial(polynomial.sample, task=task))(jax.random.split(key, size))


def training_batch(key, task: Task, size: int, noise_std) -> Prompt:  # [size]
    """Prompts of the task's lengths, in float32: a short one is a long one that repeats itself."""
    longest = distribution(task, noise_std=noise_std, dtype=jnp.float32)
    if len(task.lengths) == 1:
        return draw(key, longest, size)
    key_prompts, key_lengths = jax.random.split(key)
    batch = draw(key_prompts, longest, size)
    lengths = jax.random.choice(key_lengths, jnp.asarray(task.lengths), (size,))
    return jax.vmap(curricula.repeated)(batch, lengths)
