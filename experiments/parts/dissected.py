"""What experiments that look into trained models share: runs that have finished, and prompts."""

import functools

import jax
import numpy as np

from experiments.configs.sparse_models import Family
from experiments.parts import sparse_models, sparse_training
from lsa_lab.prompts import Prompt
from lsa_lab.tasks import linear, polynomial


def finished(made: sparse_training.Trained, architectures: list) -> np.ndarray:  # [S] bool
    """The seeds with which all of these architectures have been trained to the end."""
    rows = [made.family.architectures.index(one) for one in architectures]
    return (made.taken[rows] == made.family.steps).all(0)


def weights(made: sparse_training.Trained, architecture, seeds: np.ndarray):  # leaves [R, ...]
    row = made.family.architectures.index(architecture)
    return jax.tree.map(lambda leaf: leaf[row, seeds], made.params)


def gates(family: Family, architecture: tuple[int, ...]) -> np.ndarray:  # [L, H]
    return sparse_models.masks(family)[family.architectures.index(architecture)]


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
    kind = polynomial if family.task == "polynomial" else linear
    law = sparse_models.law(family, n)
    return jax.tree.map(np.asarray, _sample(jax.random.split(key, runs), law, kind, size))


@functools.partial(jax.jit, static_argnums=(2, 3))
def _sample(keys, law, kind, size: int) -> Prompt:  # leaves [R, B, ...]
    """The noise is an argument: laws that differ in nothing else share a program."""
    one = functools.partial(kind.sample, task=law)
    return jax.vmap(lambda key: jax.vmap(one)(jax.random.split(key, size)))(keys)
