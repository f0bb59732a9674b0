"""Choose subsets of many pools by every rule, and let descents of several depths learn."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.matching import subsets
from experiments.matching.subsets import scale
from experiments.matching.whitened_matching import cases
from experiments.matching.whitened_matching.config import CASES, FEW, MATCHING, RULES, Config
from lsa_lab.selection import diversity, gradient_matching, rivals
from lsa_lab.tasks import pools
from lsa_lab.theory import matching


def matched_subsets(size, gradients):  # [m, p] -> indices [3, n], whitened rows [m, p]
    """The choice of each of ``MATCHING``."""
    white = gradient_matching.whitened(gradients, size)
    rows = jnp.stack([white, gradients, scale(gradients)])
    return jax.lax.map(lambda rows: gradient_matching.match(rows, size).indices, rows), white


def random_subsets(config, size, key):  # -> [draws, n]
    return rivals.random_subsets(key, config.m, size, config.random_draws)


def rival_subsets(config, size, pool, key):  # -> [2 + 2 draws, n]
    """The choice of each of ``RIVALS``, of the last two several."""
    key_means, key_random, key_strata = jax.random.split(key, 3)
    rows, labels = pools.tokens(pool), np.arange(config.m) * config.strata // config.m
    by_label, keys = jnp.argsort(pool.y), jax.random.split(key_strata, config.random_draws)
    diverse = [
        diversity.medoids(rows, size, key_means),
        diversity.determinantal(rows, size, ridge=1.0),
    ]
    strata = jax.vmap(lambda key: by_label[rivals.stratified(key, labels, size)])(keys)
    return jnp.concatenate([jnp.stack(diverse), random_subsets(config, size, key_random), strata])


def checkpoint_subsets(config, gradients):  # of one run -> indices [most, 2, n]
    """Whitened and plain matching of the first 1, 2, ... checkpoints."""
    most = jnp.arange(1, config.most + 1)[:, None]
    keep = jnp.arange(gradients.shape[1])[None] < config.d * most

    def match_part(part):
        rows = jnp.stack([gradient_matching.whitened(part, config.n), part])
        match = gradient_matching.match
        return jax.lax.map(lambda rows: match(rows, config.n).indices, rows)

    return jax.lax.map(match_part, jnp.where(keep[:, None], gradients[None], 0))


ONCE = len(MATCHING)


@partial(jax.jit, static_argnums=(0, 1))
def compare(config, size, pool, queries, gradients, keys):  # of R runs
    """Gaps and errors [R, rule, D] of ``FEW``; objectives of the random subsets, whitened and
    plain, beside their gaps; and the whitened subset's objective and distance from the pool."""

    def run_values(row):
        pool, queries, gradients, key = row
        indices, white = matched_subsets(size, gradients)
        every = jnp.concatenate([indices, random_subsets(config, size, key)])
        chosen = subsets.members(every, config.m)
        gap, error, weights, whole = cases.measure_subsets(config, pool, queries, chosen)
        return {
            "gap": jnp.concatenate([gap[:ONCE], jnp.median(gap[ONCE:], axis=0)[None]]),
            "error": jnp.concatenate([error[:ONCE], jnp.median(error[ONCE:], axis=0)[None]]),
            "objective": jnp.stack(
                [subsets.gaps(rows, chosen[ONCE:]) for rows in (white, gradients)]
            ),
            "random_gap": gap[ONCE:],
            "reached": subsets.gaps(white, chosen[:1])[0],
            "distance": jnp.linalg.norm(weights[0] - whole, axis=-1),
        }

    return jax.lax.map(run_values, (pool, queries, gradients, keys))


@partial(jax.jit, static_argnums=0)
def compare_rivals(config, pool, queries, keys):  # of R runs -> gaps [R, 4, D] of ``RIVALS``
    def run_gaps(row):
        pool, queries, key = row
        chosen = rival_subsets(config, config.n, pool, key)
        gap = cases.measure_subsets(config, pool, queries, subsets.members(chosen, config.m))[0]
        several = gap[2:].reshape(2, config.random_draws, -1)
        return jnp.concatenate([gap[:2], jnp.median(several, axis=1)])

    return jax.lax.map(run_gaps, (pool, queries, keys))


@partial(jax.jit, static_argnums=0)
def checkpoint_gaps(config, pool, queries, gradients):  # of R runs -> gaps [R, C, 2, D]
    """After whitened and plain matching of the first checkpoints."""

    def run_gaps(row):
        pool, queries, gradients = row
        chosen = checkpoint_subsets(config, gradients)
        flat = subsets.members(chosen.reshape(-1, config.n), config.m)
        gap = cases.measure_subsets(config, pool, queries, flat)[0]
        return gap.reshape(*chosen.shape[:2], -1)

    return jax.lax.map(run_gaps, (pool, queries, gradients))


@partial(jax.jit, static_argnums=0)
def bounds(config, pool, reached):  # of R runs -> [R, D]
    steps = jnp.full(max(config.depths), config.step, reached.dtype)
    bound = partial(matching.descent_gap, step_sizes=steps)
    limits = jax.vmap(lambda x, y, objective: bound(x=x, y=y, objective=objective))
    return limits(pool.x, pool.y, reached)[:, jnp.array(config.depths)]


def compute(config: Config, *, progress=None, checkpoints=None):
    root, runs = jax.random.key(config.seed), config.runs
    unusual, by_size = case_values(config, root, progress)
    by_d = dimension_gaps(config, jax.random.fold_in(root, 1), progress)
    axes, few = ("run", "rule", "depth"), ("run", "few_rule", "depth")
    by_case = {
        name: unusual[name].reshape(len(CASES), runs, *unusual[name].shape[1:])
        for name in ("gap", "error")
    }
    return xr.Dataset(
        {
            "used_gap": (("run", "used", "matched", "depth"), unusual["by_checkpoints"]),
            "n_gap": (("n", *few), by_size),
            "d_gap": (("d", *axes), by_d),
            "case_gap": (("case", *few), by_case["gap"]),
            "case_error": (("case", *few), by_case["error"]),
            "bound": (("run", "depth"), unusual["bound"]),
            "distance": (("run", "depth"), unusual["distance"][:runs]),
            "objective": (("run", "matched", "draw"), unusual["objective"][:runs]),
            "random_gap": (("run", "draw", "depth"), unusual["random_gap"][:runs]),
        },
        {
            "used": np.arange(1, config.most + 1),
            "matched": list(MATCHING[:2]),
            "rule": list(RULES),
            "few_rule": list(FEW),
            "d": list(config.dims),
            "n": list(config.sizes),
            "case": list(CASES),
            "depth": list(config.depths),
        },
    )


def case_values(config, root, progress):
    """``compare`` for every case [K·R, ...] with the usual pools' bounds and their gaps by
    checkpoints, and the usual pools' gaps by size [N, R, ...]."""
    runs, d = config.runs, config.d
    keys = [jax.random.split(jax.random.fold_in(root, tag), runs * len(CASES)) for tag in (2, 3, 4)]
    parts = []
    for i, case in enumerate(CASES.values()):
        both = (case.spectrum, case.queried or case.spectrum)
        rows = (np.tile(cases.variances(spectrum, d, d), (runs, 1)) for spectrum in both)
        parts.append(cases.sample(config, case, *rows, keys[0][i * runs : (i + 1) * runs]))
    pool, queries = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)
    gradients = cases.gradients(config, pool, config.most, keys[1], progress)
    rows = (pool, queries, gradients, keys[2])
    usual = jax.tree.map(lambda leaf: leaf[:runs], rows)
    values = jax.device_get(compare(config, config.n, *rows))
    values["by_checkpoints"] = np.asarray(checkpoint_gaps(config, *usual[:3]))
    values["bound"] = np.asarray(bounds(config, usual[0], values["reached"][:runs]))
    return values, np.stack([compare(config, size, *usual)["gap"] for size in config.sizes])


def dimension_gaps(config, root, progress):  # -> gaps [dims, R, rule, D]
    """Usual pools of fewer covariates are padded to the most: one computation."""
    runs, width = config.runs, max(config.dims)
    keys = [
        jax.random.split(jax.random.fold_in(root, tag), runs * len(config.dims)) for tag in range(4)
    ]
    case = CASES["usual"]
    rows = np.repeat([cases.variances(case.spectrum, d, width) for d in config.dims], runs, axis=0)
    pool, queries = cases.sample(config, case, rows, rows, keys[0])
    gradients = cases.gradients(config, pool, width + 1, keys[1], progress)
    matched = compare(config, config.n, pool, queries, gradients, keys[2])["gap"][:, :ONCE]
    gap = np.concatenate([matched, compare_rivals(config, pool, queries, keys[3])], axis=1)
    return gap.reshape(len(config.dims), runs, *gap.shape[1:])
