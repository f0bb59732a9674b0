"""Do subsets that match gradients on a small model teach larger ones better than random ones?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching.matching_transfer.config import Config
from experiments.matching.matching_transfer.transferring import (
    RULES,
    choose,
    descents,
    draw,
    errors,
    names,
    prefixes,
    targets,
)
from experiments.models import stacks


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr
    from scipy.stats import rankdata

    root = jax.random.key(config.seed)
    keys = [jax.random.fold_in(root, tag) for tag in range(3)]
    pool, asked = jax.jit(partial(draw, config))(keys[0])
    learners = jnp.asarray(prefixes(config, pool, keys[1], progress))
    chosen = np.asarray(choose(config, pool, learners, jax.random.split(keys[2], len(pool.y))))
    rows, split = np.arange(len(chosen))[:, None, None], (config.runs, config.pools)

    def by_run(values, dtype=float):
        return jnp.asarray(np.asarray(values).reshape(*split, *np.shape(values)[1:]), dtype)

    picked = [np.asarray(part)[rows, chosen] for part in (pool.x, pool.y)]
    parts = [*picked, asked.x, asked.clean]
    found, status = [], {}
    x, y, *queries = map(by_run, parts)
    found.extend(np.asarray(descents(config, x, y, queries)))
    x, y, *queries = (by_run(part, jnp.float32) for part in parts)
    for name, stack in targets(config).items():
        label = f"matching_transfer: {name}"
        run = stacks.trained(stack, config.runs, config.seed, label, progress)
        found.append(
            np.asarray(errors(stacks.predictions(stack), run.params, x, y, queries), float)
        )
        status[name] = [one.kind for one in run.status]
    error = np.stack(found)  # [targets, R, P, S]
    ranks = rankdata(error, axis=-1)
    alone = rankdata(error[..., len(RULES) :], axis=-1)
    correlations = [np.einsum("trps,urps->turp", a, a) for a in map(_standard, (ranks, alone))]
    axes = ("target", "run", "pool")
    return xr.Dataset(
        {
            "chosen": ((*axes, "rule"), error[..., : len(RULES)]),
            "random": ((*axes, "subset"), error[..., len(RULES) :]),
            "spearman": (("subsets", "target", "other", "run"), np.array(correlations).mean(-1)),
            "status": (("trained", "run"), np.array(list(status.values()))),
        },
        {
            "target": names(config),
            "other": names(config),
            "trained": list(status),
            "rule": list(RULES),
            "subsets": ["all", "random"],
        },
    )


def _standard(ranks):  # [..., S] -> of mean 0 and, with unequal ranks, length 1
    centred = ranks - ranks.mean(-1, keepdims=True)
    return centred / np.maximum(np.linalg.norm(centred, axis=-1, keepdims=True), 1e-12)
