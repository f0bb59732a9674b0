"""How many matched checkpoints make a set equal to its pool, and for which models?"""

import operator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching import checkpoints as matching
from experiments.matching.matching_is_exact.config import PATHS, SQUARES, Config
from experiments.matching.matching_is_exact.twins import (
    bound_of,
    gaps,
    linear_stacks,
    subsets,
    twins,
)
from experiments.models import stacks
from lsa_lab import estimators, prompts
from lsa_lab.models import linear_attention
from lsa_lab.selection import prefix
from lsa_lab.tasks import pools


def softmax_stacks(config, progress):  # -> Params [R, ...] twice, a few of them in turn
    """Before and after training."""
    stack, label = stacks.stack_of("softmax", config), "matching_is_exact: softmax"
    run = stacks.trained(stack, config.trained, config.seed, label, progress)
    turns = np.arange(config.runs) % config.trained
    watched = jax.tree.map(lambda leaf: np.asarray(leaf[turns], float), run.history["watch"])
    return [jax.tree.map(operator.itemgetter((slice(None), look)), watched) for look in (0, -1)]


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    root = jax.random.key(config.seed)
    keys = [jax.random.split(jax.random.fold_in(root, tag), config.runs) for tag in range(5)]
    covariance = jnp.diag(jnp.linspace(*config.spectrum, config.d))
    task = pools.PoolTask(
        config.m + config.n, config.d, covariances=covariance[None], noise_std=config.noise_std
    )
    both, queries = matching.sample_pools(task, config.queries, keys[0])
    pool = jax.tree.map(lambda leaf: leaf[:, : config.m], both)
    recipe = prefix.Recipe(batch=config.batch, learning_rate=config.rate, saves=config.most)
    label = "matching_is_exact"
    proxy = matching.linear_checkpoints(pool, recipe, keys[1], label, progress)

    @jax.jit
    def make(both, pool, proxy, keys):  # -> [R, P, C+1, 2, n, e], [R, m, e]
        def one(both, pool, proxy, key):
            whole = prompts.Prompt(pool.x, pool.y, pool.x[0], pool.y[0])
            steps = jnp.full(config.most - 1, config.step)
            paths = (proxy, estimators.gradient_descent(whole, steps))
            others = pools.tokens(both)[config.m :]
            sets = [twins(config, pools.tokens(pool), others, path, key) for path in paths]
            return jnp.stack(sets), pools.tokens(pool)

        return jax.vmap(one)(both, pool, proxy, keys)

    sets, rows = make(both, pool, proxy, keys[2])
    if not np.isfinite(sets).all():
        raise ValueError("a twin's second moment is not positive definite: raise n")
    linear = linear_stacks(config, keys[3][0])
    flat = sets.reshape(config.runs, -1, *sets.shape[-2:])
    run = partial(gaps, linear_attention.forward)
    by_linear = np.stack([run(weights, flat, rows, queries.x) for weights in linear.values()])
    forward, proxied = stacks.forward(stacks.stack_of("softmax", config)), sets[:, 0, :, 1]
    by_softmax = np.stack(
        [gaps(forward, some, proxied, rows, queries.x) for some in softmax_stacks(config, progress)]
    )
    chosen = jax.vmap(partial(subsets, config))(pool, proxy, keys[4])
    picked = jax.vmap(lambda rows, indices: rows[indices])(rows, chosen)
    deep = linear[f"descent, {max(config.depths)}"]
    of_subsets = run(deep, picked, rows, queries.x)
    one_layer = jax.vmap(partial(bound_of, config, covariance))(pool, chosen, queries.x)
    shape = (len(linear), config.runs, len(PATHS), config.most + 1, len(SQUARES))
    counts = np.arange(config.most + 1)
    picked_dims = ("run", "pick")
    return xr.Dataset(
        {
            "linear": (("model", "run", "path", "matched", "square"), by_linear.reshape(shape)),
            "softmax": (("weights", "run", "matched"), by_softmax),
            "subset": (picked_dims, np.asarray(of_subsets)),
            "tight": (picked_dims, np.asarray(one_layer[0])),
            "one_layer": (picked_dims, np.asarray(one_layer[1])),
            "bound": (picked_dims, np.asarray(one_layer[2])),
        },
        {
            "model": list(linear),
            "path": list(PATHS),
            "square": list(SQUARES),
            "matched": counts,
            "weights": ["random", "trained"],
        },
    )
