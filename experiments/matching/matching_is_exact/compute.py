"""Build twins of each pool, choose subsets of it, and measure the gaps of many models."""

import operator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.matching import checkpoints as matching
from experiments.matching.matching_is_exact.config import MATCHING, SQUARES, Config
from experiments.matching.matching_is_exact.twins import rescaled_subsets, subsets, twins
from experiments.matching.subsets import bayes_error
from experiments.models.model import forward
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.selection import prefix
from lsa_lab.store import parts
from lsa_lab.tasks import pools


def answers(forward, params, rows, queries):  # [n, e], [Q, d] -> [Q]
    padded = jnp.pad(queries, ((0, 0), (0, 1)))
    return jax.vmap(lambda q: predict(forward(params, jnp.concatenate([rows, q[None]]))))(padded)


@partial(jax.jit, static_argnums=0)
def gaps(forward, params, sets, pool, queries):  # [S, n, e], [m, e], [Q, d] of R -> [R, S]
    """The root mean square over queries of ŷ(set) - ŷ(pool), over that of ŷ(pool)."""

    def run_gaps(row):
        params, sets, pool, queries = row
        whole = answers(forward, params, pool, queries)
        each = jax.lax.map(lambda rows: answers(forward, params, rows, queries), sets)
        return jnp.sqrt(((each - whole[None]) ** 2).mean(1) / (whole**2).mean())

    return jax.lax.map(run_gaps, (params, sets, pool, queries))


@partial(jax.jit, static_argnums=0)
def errors(forward, params, sets, queries, clean):  # [n, e], [Q, d], [Q] of R -> [R]
    """The mean squared error on the queries of each run, after its set."""

    def run_error(row):
        params, rows, queries, clean = row
        return ((answers(forward, params, rows, queries) - clean) ** 2).mean()

    return jax.lax.map(run_error, (params, sets, queries, clean))


def descents(config):  # -> Params [R, L, 1, e, e] by name
    """Constructed; after a stack's last layer come layers that write 0."""
    most = max(config.depths)
    steps = constructions.gradient_descent(jnp.full(most, config.step), config.d)

    def cut(depth):
        kept = jnp.arange(most) < depth
        params = jax.tree.map(lambda w: jnp.where(kept[:, None, None, None], w, 0), steps)
        return jax.tree.map(lambda w: jnp.broadcast_to(w, (config.runs, *w.shape)), params)

    return {f"descent, {depth}": cut(depth) for depth in config.depths}


def softmax_stacks(runs):  # -> forward, Params [R, ...] twice
    """Weights before and after training, of the runs that have them."""
    path = jax.tree.map(lambda leaf: np.asarray(leaf, float), runs.path)
    ends = [jax.tree.map(operator.itemgetter((slice(None), end)), path) for end in (0, -1)]
    return forward(runs.spec), ends


@partial(jax.jit, static_argnums=0)
def twins_of_pools(config, both, pool, proxy, keys):  # -> [R, C+1, 2, n, e], [R, m, e]
    """Twins along the proxy's path, and the pool's own tokens; what is free is another set's."""

    def run_twins(both, pool, proxy, key):
        rows, others = pools.tokens(pool), pools.tokens(both)[config.m :]
        return twins(config, rows, others, proxy, key), rows

    return jax.vmap(run_twins)(both, pool, proxy, keys)


def sample(config, keys, progress):  # -> sets of m + n, pools of m, queries, proxies
    """Pools, each with n others that are no part of it, and the linear proxy along its training."""
    covariance = jnp.diag(jnp.linspace(*config.spectrum, config.d))
    sizes, noise_std = (config.m + config.n, config.d), config.noise_std
    task = pools.PoolTask(*sizes, covariances=covariance[None], noise_std=noise_std)
    both, queries = matching.sample_pools(task, config.queries, keys[0])
    pool = jax.tree.map(lambda leaf: leaf[:, : config.m], both)
    recipe = prefix.Recipe(batch=config.batch, learning_rate=config.rate, saves=config.most)
    proxy = matching.linear_checkpoints(pool, recipe, keys[1], "matching_is_exact", progress)
    return both, pool, queries, proxy


def chosen_sets(config, pool, proxy, keys):  # -> [R, most + draws, n, e], [R, 2, n, e]
    """Subsets of plain matching and random ones, and those of whitened and of scaled matching."""
    rows = jax.vmap(pools.tokens)(pool)
    plain = jax.vmap(partial(subsets, config))(pool, proxy, keys)
    others = jax.vmap(partial(rescaled_subsets, config))(pool, proxy)
    pick = jax.vmap(lambda rows, indices: rows[indices])
    return pick(rows, plain), pick(rows, others)


def subset_gaps(config, progress):
    """Gaps of the deepest descent after chosen and random subsets, of pools of their own."""
    root, runs = jax.random.key(config.subsets.seed), config.subsets.runs
    keys = [jax.random.split(jax.random.fold_in(root, tag), runs) for tag in range(3)]
    _, pool, queries, proxy = sample(config, keys, progress)
    depth = max(config.depths)
    stack = constructions.gradient_descent(jnp.full(depth, config.step), config.d)
    stacks = jax.tree.map(lambda w: jnp.broadcast_to(w, (runs, *w.shape)), stack)
    plain, others = (
        np.asarray(
            gaps(linear_attention.forward, stacks, sets, jax.vmap(pools.tokens)(pool), queries.x)
        )
        for sets in chosen_sets(config, pool, proxy, keys[2])
    )
    whitened, scaled = others.T
    data = {"subset": (("run", "pick"), plain), "whitened": ("run", whitened)}
    return xr.Dataset(data | {"scaled": ("run", scaled)})


def compute(config: Config, models, *, progress=None, checkpoints=None):
    root = jax.random.key(config.seed)
    keys = [jax.random.split(jax.random.fold_in(root, tag), config.runs) for tag in range(5)]
    both, pool, queries, proxy = sample(config, keys, progress)
    sets, rows = twins_of_pools(config, both, pool, proxy, keys[2])
    if not np.isfinite(sets).all():
        raise ValueError("a twin's second moment is not positive definite: raise n")
    linear = descents(config)
    plain, others = chosen_sets(config, pool, proxy, keys[4])
    random = plain[:, config.most :]
    matched = jnp.concatenate([plain[:, config.d][:, None], others], axis=1)
    softmax = models["brief softmax"]
    data = {"linear": linear_gaps(config, linear, sets, rows, queries.x)}
    data |= softmax_gaps(config, softmax, sets, rows, random, matched, queries)
    coordinates = {"model": list(linear), "square": list(SQUARES)}
    coordinates |= {"matched": np.arange(config.most + 1), "weights": ["random", "trained"]}
    coordinates["gradients"] = list(MATCHING)
    main = xr.Dataset(data, coordinates)
    return parts.join(main, subsets=subset_gaps(config, progress))


def linear_gaps(config, linear, sets, rows, x_queries):
    flat = sets.reshape(config.runs, -1, *sets.shape[-2:])
    run = linear_attention.forward
    values = [gaps(run, params, flat, rows, x_queries) for params in linear.values()]
    shape = (len(linear), config.runs, config.most + 1, len(SQUARES))
    return ("model", "run", "matched", "square"), np.stack(values).reshape(shape)


def softmax_gaps(config, runs, sets, rows, random, matched, queries):
    """Gaps of twins with y² matched, after subsets that plain, whitened and scaled
    gradients choose, and after random ones; errors after the first of these, and the best."""
    run, ends = softmax_stacks(runs)
    few = jax.tree.map(lambda leaf: leaf[: config.trained], (sets[:, :, 1], rows, queries.x))
    values = [gaps(run, params, *few) for params in ends]
    chosen, by_chance = (
        np.stack([gaps(run, params, part[: config.trained], *few[1:]) for params in ends])
        for part in (matched, random)
    )
    first = random[:, 0], queries.x, queries.clean
    test = jax.tree.map(lambda leaf: leaf[: config.trained], first)
    x, y = test[0][..., :-1], test[0][..., -1]
    bayes = jax.vmap(partial(bayes_error, config))(x, y, *test[1:])
    return {
        "softmax": (("weights", "pair", "matched"), np.stack(values)),
        "softmax_subset": (("weights", "pair", "gradients"), chosen),
        "softmax_random": (("weights", "pair", "draw"), by_chance),
        "error": (("weights", "pair"), np.stack([errors(run, p, *test) for p in ends])),
        "bayes": ("pair", np.asarray(bayes)),
    }
