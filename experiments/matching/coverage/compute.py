"""Choose from pools with a minority, and let a stack learn from the chosen."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.matching import checkpoints as matching
from experiments.matching import subsets
from experiments.matching.coverage import proxies, several
from experiments.matching.coverage.config import GROUPS, KINDS, PROXIES, RULES, Config, shares
from lsa_lab.selection import baselines, gradient_matching
from lsa_lab.store import parts
from lsa_lab.tasks import pools

AXES = ("kind", "run", "n", "rule")


def sample(config, key):  # -> Pool, leaves [K·R, m, ...], and queries [K·R, 2 Q, ...]
    batches = []
    for tag, words in enumerate(KINDS.values()):
        words = {"noise_std": config.noise_std} | words
        task = pools.PoolTask(config.m, config.d, shares(config), config.separation, **words)
        keys = jax.random.split(jax.random.fold_in(key, tag), config.runs)
        batches.append(matching.sample_pools(task, config.queries, keys))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *batches)


@partial(jax.jit, static_argnums=(0, 1))
def choose(config, size, pool, features, random, keys):  # of K·R runs -> indices [.., 3 + 2 S, n]
    """The choices of the first three rules, random subsets, and random ones within the clusters."""
    labels = np.repeat(np.arange(2), pools.counts(shares(config), config.m))

    def choose_run(row):
        pool, features, random, key = row
        keys = jax.random.split(key, config.random_draws)
        by_cluster = jnp.argsort(pool.cluster, stable=True)
        matched = jax.vmap(lambda part: gradient_matching.match(part, size).indices)(features)
        strata = jax.vmap(lambda key: by_cluster[baselines.stratified(key, labels, size)])(keys)
        return jnp.concatenate([matched, random[:, :size], strata])

    return jax.lax.map(choose_run, (pool, features, random, keys))


@partial(jax.jit, static_argnums=0)
def judge(config, pool, queries, chosen):  # [S, m] of one run
    """Each group's error after every subset, and the minority's share of it."""
    (squares,) = subsets.squared_errors(config, pool, chosen, queries)  # [S, 2 Q]
    return {
        "error": squares.reshape(-1, 2, config.queries).mean(2),
        "share": chosen @ (pool.cluster == 1).astype(chosen.dtype) / chosen.sum(1),
    }


def divergence(config, share):
    """That of a subset with this share of the minority."""
    return several.divergence(np.stack([share, 1 - share], -1), np.array(shares(config)[::-1]))


def expected_divergence(config, size):
    """The mean KL of all subsets of a size, whose share of the minority is hypergeometric."""
    from scipy.stats import hypergeom

    minority = int(pools.counts(shares(config), config.m)[1])
    numbers = np.arange(size + 1)
    probabilities = hypergeom(config.m, minority, size).pmf(numbers)
    return probabilities @ divergence(config, numbers / size)


def compute(config: Config, *, progress=None, checkpoints=None):
    root = jax.random.key(config.seed)
    pool, queries = sample(config, jax.random.fold_in(root, 0))
    count, draws = len(pool.y), config.random_draws
    keys = [jax.random.split(jax.random.fold_in(root, tag), count) for tag in (1, 2, 3)]
    starts = [len(PROXIES), len(PROXIES) + draws]  # of random subsets, and of stratified ones
    features = proxies.features(config, pool, keys[0], progress)
    random = partial(baselines.random_subsets, m=config.m, size=config.m, count=draws)
    orders = jax.jit(jax.vmap(random))(keys[1])
    of_runs = jax.jit(jax.vmap(partial(judge, config)))
    judged = partial(of_runs, pool, queries)
    by_size = []
    for size in config.sizes:
        chosen = choose(config, size, pool, features, orders, keys[2])
        values = jax.device_get(judged(subsets.members(chosen, config.m)))
        values["divergence"] = divergence(config, values.pop("share"))
        by_size.append({name: subsets.means_of_draws(v, starts) for name, v in values.items()})

    def stack_sizes(name):
        values = np.stack([values[name] for values in by_size], axis=1)
        return values.reshape(len(KINDS), config.runs, *values.shape[1:])

    data = {
        "error": ((*AXES, "group"), stack_sizes("error")),
        "divergence": (AXES, stack_sizes("divergence")),
        "expected": ("n", [expected_divergence(config, size) for size in config.sizes]),
    }
    places = {"kind": list(KINDS), "n": list(config.sizes), "rule": list(RULES)}
    main = xr.Dataset(data, places | {"group": list(GROUPS)})
    return parts.join(main, several=several.measure(config.several, progress))
