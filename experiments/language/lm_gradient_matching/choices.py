"""The prefix that is learnt on a pool, its gradients, and the subsets that every rule chooses."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab import lm
from lsa_lab.lm import prefix
from lsa_lab.lm.prefix import Example
from lsa_lab.selection import baselines, diversity, gradient_matching
from lsa_lab.selection.prefix import Recipe, example_gradients, mean_loss
from lsa_lab.training import Training, fit
from lsa_lab.training.status import refuse_divergence

_TOGETHER = 8  # examples differentiated at a time


def gradients(config, model: lm.Decoder, examples: Example, label_ids, key):  # -> [m, C·k·D]
    """Every example's gradients by the prefix along its training on them."""
    keys, m = jax.random.split(key), len(examples.label)
    own = dict(epochs=config.epochs, batch=config.batch, saves=config.saves)
    recipe = Recipe(config.prefix_length, learning_rate=config.prefix_rate, **own)
    loss = functools.partial(prefix.loss, config=model.config, label_ids=jnp.asarray(label_ids))

    def batch_loss(rows, batch, own):
        return mean_loss(loss, own[0], rows, batch)

    def sample(key, own):
        places = jax.random.randint(key, (config.batch,), 0, m)
        return jax.tree.map(lambda leaf: leaf[places], own[1])

    # The save that nobody reads is not reached. Weights come as leaves of the run: as constants
    # they would be part of the program.
    training = Training(
        batch_loss, sample, lambda _: recipe.optimizer(m), recipe.steps(m) - recipe.chunk(m)
    )
    run = fit(
        training,
        prefix.init(keys[0], model.params, config.prefix_length)[None],
        keys[1][None],
        per_run=jax.tree.map(lambda leaf: np.asarray(leaf)[None], (model.params, examples)),
        watch=lambda rows: rows,
        chunk=recipe.chunk(m),
    )
    refuse_divergence(run.status, "lm_gradient_matching: prefix")
    checkpoints = jnp.asarray(run.history["watch"][0])
    rows = _gradients(model.params, checkpoints, examples, label_ids, config=model.config)
    return np.asarray(rows, float)


@functools.partial(jax.jit, static_argnames="config")
def _gradients(params, checkpoints, examples, label_ids, *, config):  # -> [m, C·k·D]
    loss = functools.partial(prefix.loss, config=config, label_ids=label_ids)
    return example_gradients(loss, params, checkpoints, examples, together=_TOGETHER)


def subsets(config, size: int, rows, points, labels: np.ndarray, key) -> np.ndarray:  # [S, size]
    """The choices of RULES, and the draws of DRAWN.

    ``rows`` are gradients [m, p], ``points`` [m, D] what k-means clusters.
    """
    keys = jax.random.split(key, 3)
    chosen = _chosen(rows, points, keys[0], size=size)
    draws = jax.random.split(keys[1], config.strata)
    shares = [baselines.stratified(own, labels, size) for own in draws]
    random = baselines.random_subsets(keys[2], len(rows), size, config.draws)
    return np.concatenate([chosen, random, np.stack(shares)])


@functools.partial(jax.jit, static_argnames="size")
def _chosen(rows, points, key, *, size: int):  # -> [4, size]
    chosen = [
        gradient_matching.match(rows, size, **how).indices
        for how in ({}, {"whiten": True}, {"reverse": True})
    ]
    return jnp.stack([*chosen, diversity.medoids(points, size, key)])


def take_turns(rng, members: np.ndarray, labels: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The members [size] in an order at random in which their classes take turns.

    The i-th of the k members of class c has the place (i + last_c) / k, ``last`` [C] in (0, 1).
    """
    order = rng.permutation(members)
    places = np.empty(len(order))
    for c, late in enumerate(last):
        own = labels[order] == c
        places[own] = (np.arange(own.sum()) + late) / max(own.sum(), 1)
    return order[np.argsort(places, kind="stable")]


@jax.jit
def gaps(rows, chosen):  # [m, p], [S, size] -> [S]
    """The gap of every subset over the root mean square of random ones."""
    found = jax.vmap(functools.partial(gradient_matching.gap, rows))(chosen)
    return found / gradient_matching.random_gap(rows, chosen.shape[1])
