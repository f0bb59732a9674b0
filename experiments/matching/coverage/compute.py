"""Does gradient matching keep a pool's minority, and better than strata do?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching import checkpoints as matching
from experiments.matching import subsets
from experiments.matching.coverage.config import GROUPS, KINDS, METHODS, Config
from lsa_lab.models import constructions
from lsa_lab.selection import diversity, gradient_matching, prefix, rivals
from lsa_lab.tasks import pools


def shares_of(config):
    return (1 - config.minority, config.minority)


def draw(config, key):  # -> Pool, leaves [K·R, m, ...], and queries [K·R, 2 Q, ...]
    drawn = []
    for tag, words in enumerate(KINDS.values()):
        task = pools.PoolTask(
            config.m,
            config.d,
            shares_of(config),
            config.separation,
            noise_std=config.noise_std,
            **words,
        )
        keys = jax.random.split(jax.random.fold_in(key, tag), config.runs)
        pool, queries = matching.sample_pools(task, config.queries, keys)
        drawn.append((pool, queries.replace(law=None)))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *drawn)


@partial(jax.jit, static_argnums=(0, 1))
def choose(config, size, pool, features, random, keys):  # of K·R runs -> indices [.., 4 + 2 S, n]
    """By the four rules, then at random, then at random within the clusters."""
    labels = np.repeat(np.arange(2), pools.counts(shares_of(config), config.m))

    def one(row):
        pool, features, random, key = row
        rows, keys = pools.tokens(pool), jax.random.split(key, 1 + config.random_draws)
        by_cluster = jnp.argsort(pool.cluster, stable=True)
        matched = jax.vmap(lambda some: gradient_matching.match(some, size).indices)(features)
        diverse = [
            diversity.medoids(rows, size, keys[0]),
            diversity.determinantal(rows, size, ridge=1.0),
        ]
        strata = jax.vmap(lambda key: by_cluster[rivals.stratified(key, labels, size)])(keys[1:])
        return jnp.concatenate([matched, jnp.stack(diverse), random[:, :size], strata])

    return jax.lax.map(one, (pool, features, random, keys))


@partial(jax.jit, static_argnums=0)
def judge(config, pool, queries, gradients, chosen):  # [S, m] of one run
    """Of every subset: the error of each group, the share of the minority, and the objective."""
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


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    root = jax.random.key(config.seed)
    pool, queries = draw(config, jax.random.fold_in(root, 0))
    count, draws = len(pool.y), config.random_draws
    keys = [jax.random.split(jax.random.fold_in(root, tag), count) for tag in (1, 2, 3)]
    recipe = prefix.Recipe(
        epochs=config.epochs,
        batch=config.batch,
        learning_rate=config.learning_rate,
        saves=config.saves,
    )
    path = matching.linear_checkpoints(pool, recipe, keys[0], "coverage", progress)

    @jax.jit
    def features(pool, path):  # padded to one width: zeros change no distance
        linear = jax.vmap(prefix.linear_gradients)(path, pool)
        oracle = jax.vmap(rivals.moment_features)(jax.vmap(pools.tokens)(pool))
        width = max(linear.shape[2], oracle.shape[2])
        padded = [jnp.pad(f, ((0, 0), (0, 0), (0, width - f.shape[2]))) for f in (linear, oracle)]
        return jnp.stack(padded, axis=1)

    both = features(pool, path)
    draw_orders = partial(rivals.random_subsets, m=config.m, size=config.m, count=draws)
    orders = jax.jit(jax.vmap(draw_orders))(keys[1])
    # Means of a few draws are not a subset's own: each is judged, and then the mean is taken.
    weighed = jax.jit(jax.vmap(partial(judge, config)))
    everyone = weighed(pool, queries, both[:, 0], np.ones((count, 4 + 2 * draws, config.m)))
    found = {name: [] for name in ("error", "divergence", "gap")}
    for size in config.sizes:
        chosen = choose(config, size, pool, both, orders, keys[2])
        members = subsets.members(chosen, config.m)
        judged = jax.device_get(weighed(pool, queries, both[:, 0], members))
        judged["divergence"] = divergence(judged.pop("share"), config.minority)
        for name, values in judged.items():
            parts = np.split(values, [4, 4 + draws], axis=1)
            drawn = [part.mean(1, keepdims=True) for part in parts[1:]]
            found[name].append(np.concatenate([parts[0], *drawn], axis=1))
    axes, groups = ("kind", "run", "n", "rule"), {"error": ("group",)}
    shape = (len(KINDS), config.runs)
    data = {}
    for name, values in found.items():
        stacked = np.stack(values, axis=1)
        data[name] = ((*axes, *groups.get(name, ())), stacked.reshape(*shape, *stacked.shape[1:]))
    data["pool_error"] = (
        ("kind", "run", "group"),
        np.reshape(everyone["error"][:, 0], (*shape, 2)),
    )
    return xr.Dataset(
        data,
        {
            "kind": list(KINDS),
            "n": list(config.sizes),
            "rule": list(METHODS),
            "group": list(GROUPS),
        },
    )
