"""Choose subsets on the smallest models, teach all models by them, and compare ranks."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching import checkpoints as matching
from experiments.matching.matching_transfer.choices import choose, prefixes, stacks
from experiments.matching.matching_transfer.config import (
    GRADIENTS,
    RULES,
    SUBSETS,
    Config,
    targets,
)
from experiments.matching.matching_transfer.targets import (
    bayes_errors,
    constructed_errors,
    errors,
)
from lsa_lab.tasks import pools


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    root = jax.random.key(config.seed)
    keys = [jax.random.fold_in(root, tag) for tag in range(3)]
    x, y, *queries, gaps = teach(config, keys, progress)
    random = bayes_errors(config, x[:, :, len(RULES) :], y[:, :, len(RULES) :], *queries)
    by_target = [*np.asarray(constructed_errors(config, x, y, queries))]
    x, y, *queries = (jnp.asarray(part, jnp.float32) for part in (x, y, *queries))
    for runs in models.values():
        own = runs.models(seeds=slice(config.runs))
        by_target.append(np.asarray(errors(own, x, y, queries), float))
    error = np.stack(by_target)  # [targets, R, P, S]
    correlation = [rank_correlation(error), rank_correlation(error[..., len(RULES) :])]
    both = rank_correlation(np.concatenate([error[..., len(RULES) :], gaps]))
    by_gap = both[len(error) :, : len(error)].mean(-1)
    axes = ("target", "run", "pool")
    return xr.Dataset(
        {
            "chosen": ((*axes, "rule"), error[..., : len(RULES)]),
            "random": ((*axes, "subset"), error[..., len(RULES) :]),
            "bayes": ((*axes[1:], "subset"), np.asarray(random)),
            "spearman": (("subsets", "target", "other", "run"), np.array(correlation).mean(-1)),
            "by_gap": (("gradients", "target", "run"), by_gap),
        },
        {
            "target": targets(config),
            "other": targets(config),
            "gradients": list(GRADIENTS),
            "rule": list(RULES),
            "subsets": list(SUBSETS),
        },
    )


def teach(config, keys, progress):
    """The demonstrations of every subset, x [R, P, S, n, d] and y, the queries of its pool,
    x [R, P, Q, d] and y without noise, and the gaps [F, R, P, random ones]."""
    task = pools.PoolTask(config.m, config.d, noise_std=config.noise_std)
    keys_pools = jax.random.split(keys[0], config.runs * config.pools)
    pool, queries = matching.sample_pools(task, config.queries, keys_pools)
    learners = {
        rule: jnp.asarray(prefixes(config, params, pool, keys[1], rule, progress))
        for rule, params in stacks(config).items()
    }
    chosen, gaps = map(
        np.asarray, choose(config, pool, learners, jax.random.split(keys[2], len(pool.y)))
    )
    rows = np.arange(len(chosen))[:, None, None]
    parts = [np.asarray(pool.x)[rows, chosen], np.asarray(pool.y)[rows, chosen]]
    parts += [np.asarray(queries.x), np.asarray(queries.clean), gaps]
    *parts, gaps = (part.reshape(config.runs, config.pools, *part.shape[1:]) for part in parts)
    return *map(jnp.asarray, parts), np.moveaxis(gaps, 2, 0)


def rank_correlation(error):  # [targets, R, P, S] -> [targets, targets, R, P]
    """Spearman's correlation over subsets of the errors of every two targets."""
    from scipy.stats import rankdata

    ranks = rankdata(error, axis=-1)
    centred = ranks - ranks.mean(-1, keepdims=True)
    length = np.linalg.norm(centred, axis=-1, keepdims=True)
    units = centred / np.maximum(length, 1e-12)  # 0 where all ranks are equal
    return np.einsum("trps,urps->turp", units, units)
