"""Trained models run by run: prompts of its own for each, and programs that take one at a time."""

import dataclasses
import functools

import jax
import numpy as np

from experiments.models import tasks
from experiments.models.specs import Task
from lsa_lab.prompts import Prompt


def prompts_of(task: Task, seed: int, tag: int, n: int, size: int, runs: int) -> Prompt:
    """Prompts for each run, leaves [R, B, ...]; all models of one task get the same."""
    return _prompts_of(dataclasses.replace(task, lengths=(n,)), seed, tag, size, runs)


def run(tree, r: int):
    """One run of arrays [R, ...]."""
    return jax.tree.map(lambda leaf: leaf[r], tree)


def map_runs(program, *trees) -> np.ndarray:  # leaves [R, ...] -> [R, ...]
    """The program's answer for one run after the other."""
    runs = len(jax.tree.leaves(trees)[0])
    return np.stack([program(*run(trees, r)) for r in range(runs)])


@functools.lru_cache(maxsize=16)
def _prompts_of(task: Task, seed: int, tag: int, size: int, runs: int) -> Prompt:
    key = jax.random.fold_in(jax.random.key(seed), tag)
    keys = jax.random.split(key, runs)
    return jax.tree.map(np.asarray, _sample(keys, tasks.distribution(task), size))


@functools.partial(jax.jit, static_argnums=2)
def _sample(keys, task, size: int) -> Prompt:  # leaves [R, B, ...]
    """The noise is an argument: tasks that differ in nothing else share a program."""
    return jax.vmap(lambda key: tasks.draw(key, task, size))(keys)
