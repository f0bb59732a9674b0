"""Choose the fixed part once and the rest for each query, and let the learners answer."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.matching import checkpoints as matching
from experiments.matching.fixed_and_per_query import noisy
from experiments.matching.fixed_and_per_query.config import (
    KINDS,
    MATCHED,
    MIXED,
    RULES,
    TRAINED,
    Config,
)
from experiments.matching.subsets import means_of_draws
from lsa_lab.selection import baselines, gradient_matching, scores
from lsa_lab.store import parts
from lsa_lab.tasks import pools

ONCE = len(MATCHED)  # rules with one fixed part of each size; then random draws


def sample(config, key):
    """Pools [R·P, m, ...] and queries [R·P, K·Q, ...] whose clusters share no task, and the labels
    that one common task would give to either."""
    variance = 1 - config.separation**2 / config.d
    covariances = variance * jnp.broadcast_to(jnp.eye(config.d), (config.clusters, *[config.d] * 2))
    shares = (1 / config.clusters,) * config.clusters
    words = {"num_weights": "cluster", "noise_std": config.noise_std}
    task = pools.PoolTask(config.m, config.d, shares, config.separation, covariances, **words)
    key_pools, key_common = jax.random.split(key)
    keys = jax.random.split(key_pools, config.runs * config.pools)
    pool, queries = matching.sample_pools(task, config.queries, keys)
    common = jax.random.normal(key_common, (len(keys), config.d))
    return pool, queries, *(jnp.einsum("pmd,pd->pm", part.x, common) for part in (pool, queries))


def blend(share, pool, common):
    """The pool with weights √(1 - a) w_0 + √a w_c in cluster c: the same covariates and noise."""
    clean = (1 - share) ** 0.5 * common + share**0.5 * pool.clean
    return pool.replace(y=pool.y - pool.clean + clean, clean=clean)


@partial(jax.jit, static_argnums=(0, 1))
def prompts_of(config, size, pool, queries, gradients, key):  # of one pool -> leaves [S·Q, ...]
    """A prompt for each fixed part, of each rule and random ones, and each query."""
    random = baselines.random_subsets(key, config.m, config.n, config.random_draws)[:, :size]
    if size:
        chosen = [gradient_matching.match(gradients, size, whiten=w).indices for w in (0, 1)]
        parts = jnp.concatenate([jnp.stack(chosen), random])
    else:
        parts = jnp.zeros((ONCE + config.random_draws, 0), random.dtype)
    rows = pools.tokens(pool)
    like = jax.vmap(lambda x: scores.similarity(rows, x))(queries.x)  # [Q, m]

    def prompt(part, like, x, y):
        rest = like.at[part].set(-2.0)  # below every cosine: nobody is chosen twice
        own = scores.select(rest, config.m)[: config.n - size]
        return pools.prompt(pool, jnp.concatenate([part, own]), x, y)

    of_queries = jax.vmap(prompt, (None, 0, 0, 0))
    both = jax.vmap(of_queries, (0, None, None, None))(parts, like, queries.x, queries.clean)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), both)


def risks(config, models, pool, queries, gradients, keys):  # -> [learners, R, fixed, rule]
    """Mean squared errors on the queries of each pool, of random fixed parts their mean; geometric
    means over the pools of a run, of which all that is judged is made."""
    by_size = []
    for size in config.fixed:
        choose = jax.vmap(partial(prompts_of, config, size))
        batch = choose(pool, queries, gradients, keys)  # [R·P, S·Q, ...]
        errors = noisy.subset_errors(config, models, batch, ONCE + config.random_draws)
        by_size.append(noisy.geometric_mean(means_of_draws(errors, [ONCE], -1), 2))
    return np.stack(by_size, axis=-2)


def compute(config: Config, models, *, progress=None, checkpoints=None):
    # A seed for each run: leaves [R, ...].
    trained = {name: models[name].models(seeds=slice(config.runs)) for name in TRAINED}
    mixed = {name: trained[name] for name in MIXED if name in trained}
    root = jax.random.key(config.seed)
    keys = [jax.random.fold_in(root, tag) for tag in range(3)]
    pool, queries, *common = sample(config, keys[0])
    keys = [jax.random.split(key, len(pool.y)) for key in keys[1:]]
    by_kind = []
    for share in KINDS.values():
        here, queried = blend(share, pool, common[0]), blend(share, queries, common[1])
        gradients = noisy.proxy_gradients(config, here, keys[0], progress)
        by_kind.append(risks(config, mixed, here, queried, gradients, keys[1]))
    places = {"learner": list(MIXED), "kind": list(KINDS), "fixed": list(config.fixed)}
    error = {"error": (("learner", "run", "kind", "fixed", "rule"), np.stack(by_kind, axis=2))}
    main = xr.Dataset(error, places | {"rule": list(RULES)})
    return parts.join(main, noisy=noisy.measure(config, trained, progress))
