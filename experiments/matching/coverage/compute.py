"""Choose from pools with a minority, and let a stack learn from the chosen."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching import checkpoints as matching
from experiments.matching import subsets
from experiments.matching.coverage import learners, rules
from experiments.matching.coverage.config import GROUPS, KINDS, RULES, Config, shares
from lsa_lab.models import constructions
from lsa_lab.selection import rivals
from lsa_lab.tasks import pools

SINGLE = len(RULES) - 2  # rules with one subset of each size
AXES = ("kind", "run", "n", "rule")


def sample(config, key):  # -> Pool, leaves [K·R, m, ...], and queries [K·R, 2 Q, ...]
    batches = []
    for tag, words in enumerate(KINDS.values()):
        words = {"noise_std": config.noise_std} | words
        task = pools.PoolTask(config.m, config.d, shares(config), config.separation, **words)
        keys = jax.random.split(jax.random.fold_in(key, tag), config.runs)
        batches.append(matching.sample_pools(task, config.queries, keys))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *batches)


@partial(jax.jit, static_argnums=0)
def judge(config, pool, queries, gradients, chosen):  # [S, m] of one run
    """Each group's error after every subset, the minority's share of it, and the objective."""
    stack = constructions.gradient_descent(jnp.full(config.depth, config.step), config.d)
    weights = subsets.taught_weights(stack, pools.tokens(pool), chosen)
    squares = (weights @ queries.x.T - queries.y[None]) ** 2  # [S, 2 Q]
    return {
        "error": squares.reshape(-1, 2, config.queries).mean(2),
        "share": chosen @ (pool.cluster == 1).astype(chosen.dtype) / chosen.sum(1),
        "gap": subsets.gaps(gradients, chosen),
    }


def divergence(share, pool):
    """KL(subset | pool) of the shares of two clusters."""
    both = ((share, pool), (1 - share, 1 - pool))
    return sum(p * np.log(np.where(p > 0, p, 1) / q) for p, q in both)


def expected_divergence(config, size):
    """The mean KL of all subsets of a size, whose share of the minority is hypergeometric."""
    from scipy.stats import hypergeom

    minority = int(pools.counts(shares(config), config.m)[1])
    numbers = np.arange(size + 1)
    probabilities = hypergeom(config.m, minority, size).pmf(numbers)
    return probabilities @ divergence(numbers / size, config.minority)


def by_rule(config, values):  # [K·R, 7 + 2 S, ...] -> [K·R, 9, ...]
    """The mean over random subsets and over stratified ones beside the other rules' values: each
    subset is judged before the mean is taken, for a mean of draws is no subset's own."""
    parts = np.split(values, [SINGLE, SINGLE + config.random_draws], axis=1)
    means = [part.mean(1, keepdims=True) for part in parts[1:]]
    return np.concatenate([parts[0], *means], axis=1)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    root = jax.random.key(config.seed)
    pool, queries = sample(config, jax.random.fold_in(root, 0))
    count, draws = len(pool.y), config.random_draws
    keys = [jax.random.split(jax.random.fold_in(root, tag), count) for tag in (1, 2, 3)]
    features = learners.features(config, pool, keys[0], progress)
    random = partial(rivals.random_subsets, m=config.m, size=config.m, count=draws)
    orders = jax.jit(jax.vmap(random))(keys[1])
    of_runs = jax.jit(jax.vmap(partial(judge, config)))
    judged = partial(of_runs, pool, queries, features[:, 0])
    by_size = []
    for size in config.sizes:
        chosen = rules.choose(config, size, pool, features, orders, keys[2])
        values = jax.device_get(judged(subsets.members(chosen, config.m)))
        values["divergence"] = divergence(values.pop("share"), config.minority)
        by_size.append({name: by_rule(config, value) for name, value in values.items()})

    def stacked(name):
        values = np.stack([values[name] for values in by_size], axis=1)
        return values.reshape(len(KINDS), config.runs, *values.shape[1:])

    data = {
        "error": ((*AXES, "group"), stacked("error")),
        "divergence": (AXES, stacked("divergence")),
        "expected": ("n", [expected_divergence(config, size) for size in config.sizes]),
        "gap": (AXES, stacked("gap")),
    }
    sizes = {"kind": list(KINDS), "n": list(config.sizes)}
    return xr.Dataset(data, sizes | {"rule": list(RULES), "group": list(GROUPS)})
