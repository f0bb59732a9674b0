"""What experiments that look into trained models share: runs that have finished, and prompts."""

import functools

import jax
import numpy as np

from experiments.models import sparse_models, sparse_training
from experiments.models.specs import Family
from lsa_lab.prompts import Prompt


def weights(made: sparse_training.Trained, a: int, seeds: np.ndarray):  # leaves [R, ...]
    """Of one architecture, the seeds that are asked for."""
    return jax.tree.map(lambda leaf: leaf[a, seeds], made.params)


def drawn(family: Family, seed: int, tag: int, n: int, size: int, runs: int) -> Prompt:
    """Prompts for each run, leaves [R, B, ...]; all families of one task get the same."""
    return _drawn(_law(family), seed, tag, n, size, runs)


def run(tree, r: int):
    """One run of arrays [R, ...]."""
    return jax.tree.map(lambda leaf: leaf[r], tree)


def _law(family: Family) -> Family:
    """The family with all that prompts do not depend on left out."""
    kept = ("task", "d", "sparsity", "noise_std")
    return Family(((1,),), **{name: getattr(family, name) for name in kept})


@functools.lru_cache(maxsize=16)
def _drawn(family: Family, seed: int, tag: int, n: int, size: int, runs: int) -> Prompt:
    key = jax.random.fold_in(jax.random.key(seed), tag)
    law = sparse_models.law(family, n)
    return jax.tree.map(np.asarray, _sample(jax.random.split(key, runs), law, size))


@functools.partial(jax.jit, static_argnums=2)
def _sample(keys, law, size: int) -> Prompt:  # leaves [R, B, ...]
    """The noise is an argument: laws that differ in nothing else share a program."""
    return jax.vmap(lambda key: sparse_models.draw_from(law, key, size))(keys)
