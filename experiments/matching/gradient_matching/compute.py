"""Does a subset that matches the pool's gradients teach better than its rivals?"""

from functools import partial

import jax
import numpy as np

from experiments.matching import checkpoints as matching
from experiments.matching.gradient_matching.config import Config
from experiments.matching.gradient_matching.rules import (
    FIXED,
    OWN,
    ablate,
    by_rule,
    choose,
    exactly,
    judge,
    learned,
    rank_all,
)
from lsa_lab.selection import gradient_matching
from lsa_lab.tasks import pools


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    root = jax.random.key(config.seed)
    keys = [jax.random.split(jax.random.fold_in(root, tag), config.runs) for tag in range(5)]
    task = pools.PoolTask(config.m, config.d, noise_std=config.noise_std)
    pool, asked = matching.draw(task, config.queries + config.validation, keys[0])
    asked = asked.replace(law=None)
    queries = jax.tree.map(lambda leaf: leaf[:, : config.queries], asked)
    validation = jax.tree.map(lambda leaf: leaf[:, config.queries :], asked)
    noise = jax.random.normal(jax.random.fold_in(root, 5), validation.y.shape)
    validation = validation.replace(y=validation.y + config.noise_std * noise)
    linear, prefixes, features = learned(config, pool, keys, progress)
    weighed = jax.jit(jax.vmap(partial(judge, config)))

    def judged(indices):  # [R, S, n], filled up to one S for all
        chosen = matching.members(indices, config.m)
        most = len(FIXED) + config.tries + config.random_draws + config.queries
        full = np.concatenate([chosen, np.ones((config.runs, most - chosen.shape[1], config.m))], 1)
        found = jax.device_get(weighed(pool, queries, validation, features[:, 0], full))
        return [values[:, : chosen.shape[1]] for values in found]

    orders = jax.vmap(partial(rank_all, config))(pool, queries.x, keys[4])
    found = [
        by_rule(config, judged(choose(config, size, pool, features, orders, keys[3])))
        for size in config.sizes
    ]
    expected = jax.vmap(gradient_matching.random_expectation, (0, None))
    small = [jax.lax.map(partial(exactly, config, m), linear) for m in config.small_pools]
    squares, _, gap = judged(jax.vmap(partial(ablate, config))(linear, prefixes))
    parts = np.cumsum([len(config.used), len(config.prefix_lengths)])
    by_used, by_length, by_swaps = np.split(squares.mean(2), parts, axis=1)
    everyone = judged(np.tile(np.arange(config.m), (config.runs, 1, 1)))[0]
    dims = ("run", "n", "rule")
    return xr.Dataset(
        {
            "error": (dims, np.stack([error for error, _ in found], axis=1)),
            "gap": (dims, np.stack([gap for _, gap in found], axis=1)),
            "expected": (
                dims[:2],
                np.stack([np.sqrt(expected(features[:, 0], n)) for n in config.sizes], axis=1),
            ),
            "by_used": (("run", "used"), by_used),
            "by_length": (("run", "length"), by_length),
            "by_swaps": (("run", "swaps"), by_swaps),
            "gap_by_swaps": (("run", "swaps"), gap[:, parts[1] :]),
            "pool_error": ("run", everyone.mean((1, 2))),
            "small": (("run", "pool", "how"), np.stack(small, axis=1)),
        },
        {
            "n": list(config.sizes),
            "rule": [*FIXED, *OWN],
            "length": list(config.prefix_lengths),
            "used": list(config.used),
            "swaps": list(config.budgets),
            "pool": list(config.small_pools),
            "how": ["exact", "swaps", "greedy", "random"],
        },
    )
