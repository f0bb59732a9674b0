"""Spoil the pools, choose from them by each rule, and let the learners answer."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching import answers
from experiments.matching import checkpoints as matching
from experiments.matching.learners import learners
from experiments.matching.noisy_pools.config import KINDS, RULES, Config
from lsa_lab.selection import gradient_matching, prefix, rivals
from lsa_lab.tasks import pools

CHOSEN = len(RULES) - 1  # rules with one subset of each size; then random draws


def sample(config, kind, keys):
    """Pools [N, m, ...] of a kind, their outliers [N, m], and Gaussian queries [N, Q, ...]."""
    few, many = config.flips
    spoilt = {
        "few flipped": {"flips": few},
        "many flipped": {"flips": many},
        "heavy covariates": {"tail": config.tail},
    }
    clean = pools.PoolTask(config.m, config.d, noise_std=config.noise_std)
    task = clean.replace(**spoilt.get(kind, {}))

    def draw(key):
        key_pool, key_noise, key_queries = jax.random.split(key, 3)
        pool = pools.sample(key_pool, task)
        queries = pools.queries(key_queries, clean, pool.population, config.queries)
        if kind == "heavy noise":
            scale = config.noise_std * (1 - 2 / config.tail) ** 0.5
            noise = scale * jax.random.t(key_noise, config.tail, (config.m,))
            pool = pool.replace(y=pool.clean + noise)
        sizes = jnp.abs(pool.y - pool.clean)
        if kind == "heavy covariates":
            sizes = jnp.linalg.norm(pool.x, axis=1)
        outliers = sizes >= jnp.quantile(sizes, 1 - config.outliers)
        return pool, outliers, queries

    pool, outliers, queries = jax.jit(jax.vmap(draw))(keys)
    if kind.endswith("flipped"):  # the labels before the noise have the other sign
        outliers = wrong(config, keys, task, clean)
    return pool, outliers, queries


def wrong(config, keys, task, clean):  # -> [N, m]
    """Whose label differs from that in the same pool without flips."""
    labels = jax.jit(jax.vmap(lambda key, task: pools.sample(key, task).y, (0, None)))
    first = jax.vmap(lambda key: jax.random.split(key, 3)[0])(keys)
    return labels(first, task) != labels(first, clean)


@partial(jax.jit, static_argnums=(0, 1))
def choose(config, size, gradients, keys):  # [N, m, p], [N] -> [N, S, n]
    def of_pool(row):
        gradients, key = row
        match = partial(gradient_matching.match, gradients, size)
        chosen = [match(), match(whiten=True), match(reverse=True)]
        random = rivals.random_subsets(key, config.m, size, config.random_draws)
        return jnp.concatenate([jnp.stack([each.indices for each in chosen]), random])

    return jax.lax.map(of_pool, (gradients, keys))


@jax.jit
def prompts_of(pool, chosen, queries):  # of N pools -> leaves [N, S·Q, ...]
    def of_pool(pool, chosen, queries):
        over_queries = jax.vmap(pools.prompt, (None, None, 0, 0))
        over_subsets = jax.vmap(over_queries, (None, 0, None, None))
        batch = over_subsets(pool, chosen, queries.x, queries.clean)
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), batch)

    return jax.vmap(of_pool)(pool, chosen, queries)


def risks(config, models, pool, chosen, queries):  # -> [learners, R, P, S]
    batch = prompts_of(pool, chosen, queries)
    batch = jax.tree.map(lambda x: x.reshape(config.runs, -1, *x.shape[2:]), batch)
    squared = answers.squared_errors(config, models, batch)
    return squared.reshape(len(squared), config.runs, config.pools, chosen.shape[1], -1).mean(-1)


def by_rule(values):  # [..., S] -> [..., rule]
    """Random subsets by their geometric mean: descent explodes on rare ones."""
    random = np.exp(np.log(values[..., CHOSEN:]).mean(-1, keepdims=True))
    return np.concatenate([values[..., :CHOSEN], random], axis=-1)


def over_pools(errors, axis):
    """Geometric means over the pools of each run, of which all that is judged is made."""
    return np.exp(np.log(errors).mean(axis))


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    models = answers.models(config, models)
    root = jax.random.key(config.seed)
    keys = [
        jax.random.split(jax.random.fold_in(root, tag), config.runs * config.pools)
        for tag in range(3)
    ]
    saves = {name: getattr(config, name) for name in ("epochs", "batch", "saves", "learning_rate")}
    errors, shares, whole, marks = [], [], [], []
    for kind in KINDS:
        pool, outliers, queries = sample(config, kind, keys[0])
        recipe = prefix.Recipe(**saves)
        path = matching.linear_checkpoints(
            pool.replace(population=None), recipe, keys[1], "noisy_pools", progress
        )
        gradients = jax.jit(jax.vmap(prefix.linear_gradients))(path, pool)
        everyone = np.tile(np.arange(config.m), (len(pool.y), 1, 1))
        whole.append(over_pools(risks(config, {}, pool, everyone, queries)[0, ..., 0], -1))
        marks.append(np.asarray(outliers).reshape(config.runs, -1).mean(1))
        by_size = []
        for size in config.sizes:
            chosen = choose(config, size, gradients, keys[2])
            answering = models if size == config.model_size else {}
            values = over_pools(by_rule(risks(config, answering, pool, chosen, queries)), -2)
            lacking = ((0, len(learners(config)) - len(values)), *[(0, 0)] * 2)
            by_size.append(np.pad(values, lacking, constant_values=np.nan))
            marked = np.take_along_axis(np.asarray(outliers)[:, None], np.asarray(chosen), 2)
            share = marked.mean(2)
            share = np.concatenate([share[:, :CHOSEN], share[:, CHOSEN:].mean(1)[:, None]], 1)
            shares.append(share.reshape(config.runs, config.pools, -1).mean(1))
        errors.append(np.stack(by_size, axis=2))
    axes = ("run", "n", "rule")
    share = np.stack(shares).reshape(len(KINDS), len(config.sizes), *shares[0].shape)
    return xr.Dataset(
        {
            "error": (("learner", "kind", *axes), np.stack(errors, axis=1)),
            "outliers": (("kind", *axes), np.moveaxis(share, 1, 2)),
            "pool_outliers": (("kind", "run"), np.stack(marks)),
            "pool_error": (("kind", "run"), np.stack(whole)),
        },
        {
            "learner": learners(config),
            "kind": list(KINDS),
            "n": list(config.sizes),
            "rule": list(RULES),
        },
    )
