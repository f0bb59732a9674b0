"""Subsets that match one or ten checkpoints, early in the proxy's training, late, or along it."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching import checkpoints as matching
from experiments.matching import subsets
from experiments.matching.gradient_matching.config import CHECKPOINTS
from lsa_lab.models import constructions
from lsa_lab.selection import gradient_matching, prefix
from lsa_lab.tasks import pools


def measure(config, progress):
    """The error after each of ``CHECKPOINTS`` on pools of their own."""
    import xarray as xr

    root, runs = jax.random.key(config.curriculum.seed), config.curriculum.runs
    keys = [jax.random.split(jax.random.fold_in(root, tag), runs) for tag in range(2)]
    task = pools.PoolTask(config.m, config.d, noise_std=config.noise_std)
    pool, queries = matching.sample_pools(task, config.queries, keys[0])
    recipe = partial(
        prefix.Recipe, epochs=config.epochs, batch=config.batch, learning_rate=config.linear_rate
    )
    steps = recipe(saves=config.saves).steps(config.m)
    every = recipe(saves=steps)
    path = matching.linear_checkpoints(pool, every, keys[1], "gradient_matching", progress)
    error = jax.lax.map(partial(errors, config, steps), (pool, queries, path))
    return xr.Dataset(
        {"error": (("run", "matched"), np.asarray(error))}, {"matched": list(CHECKPOINTS)}
    )


def errors(config, steps, row):  # of one run -> [5]
    pool, queries, path = row
    few, every = config.saves, np.arange(steps)
    kept = jnp.array([every < 1, every >= steps - 1, every < few, every >= steps - few])
    kept = jnp.concatenate([kept, (every % (steps // few) == 0)[None]])
    gradients = prefix.linear_gradients(path, pool)

    def choose(keep):  # zeros change no distance
        part = jnp.where(jnp.repeat(keep, config.d)[None], gradients, 0)
        return gradient_matching.match(part, config.ablation_size).indices

    chosen = subsets.members(jax.lax.map(choose, kept), config.m)
    stack = constructions.gradient_descent(jnp.full(config.depth, config.step), config.d)
    weights = subsets.taught_weights(stack, pools.tokens(pool), chosen)
    return ((weights @ queries.x.T - queries.y[None]) ** 2).mean(1)
