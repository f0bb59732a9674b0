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
def errors(forward, *rows):  # params, [n, e], [Q, d], [Q] of R -> [R]
    """The mean squared error on the queries of each run, after its set."""

    def run_error(row):
        return ((answers(forward, *row[:3]) - row[3]) ** 2).mean()

    return jax.lax.map(run_error, rows)


def descents(config):  # -> Params [R, L, 1, e, e] by name
    """Constructed; after a stack's last layer come layers that write 0."""
    most = max(config.depths)
    steps = constructions.gradient_descent(jnp.full(most, config.step), config.d)

    def cut(depth):
        kept = jnp.arange(most) < depth
        params = jax.tree.map(lambda w: jnp.where(kept[:, None, None, None], w, 0), steps)
        return jax.tree.map(lambda w: jnp.broadcast_to(w, (config.runs, *w.shape)), params)

    return {f"descent, {depth}": cut(depth) for depth in config.depths}


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
    keys = matching.keys_of(root, runs, 3)
    _, pool, queries, proxy = sample(config, keys, progress)
    depth = max(config.depths)
    stack = constructions.gradient_descent(jnp.full(depth, config.step), config.d)
    stacks = jax.tree.map(lambda w: jnp.broadcast_to(w, (runs, *w.shape)), stack)
    rows, chosen = jax.vmap(pools.tokens)(pool), chosen_sets(config, pool, proxy, keys[2])
    measure = partial(gaps, linear_attention.forward, stacks)
    plain, others = (np.asarray(measure(sets, rows, queries.x)) for sets in chosen)
    whitened, scaled = others.T
    data = {"whitened": ("run", whitened), "scaled": ("run", scaled)}
    return xr.Dataset({"subset": (("run", "pick"), plain)} | data)


def compute(config: Config, models, *, progress=None, checkpoints=None):
    root = jax.random.key(config.seed)
    keys = matching.keys_of(root, config.runs, 5)
    both, pool, queries, proxy = sample(config, keys, progress)
    sets, rows = twins_of_pools(config, both, pool, proxy, keys[2])
    if not np.isfinite(sets).all():
        raise ValueError("a twin's second moment is not positive definite: raise n")
    linear = descents(config)
    plain, others = chosen_sets(config, pool, proxy, keys[4])
    random = plain[:, config.most :]
    matched = jnp.concatenate([plain[:, config.d][:, None], others], axis=1)
    flat = sets.reshape(config.runs, -1, *sets.shape[-2:])
    run = partial(gaps, linear_attention.forward)
    linear_gaps = [run(stack, flat, rows, queries.x) for stack in linear.values()]
    shape = (len(linear), config.runs, config.most + 1, len(SQUARES))
    data = {"linear": (("model", "run", "matched", "square"), np.stack(linear_gaps).reshape(shape))}
    data |= softmax_gaps(config, models["brief softmax"], sets, rows, random, matched, queries)
    places = {"model": list(linear), "square": list(SQUARES), "gradients": list(MATCHING)}
    places |= {"matched": np.arange(config.most + 1), "weights": ["random", "trained"]}
    main = xr.Dataset(data, places)
    return parts.join(main, subsets=subset_gaps(config, progress))


def softmax_gaps(config, runs, sets, rows, random, matched, queries):
    """Gaps of twins with y² matched, after subsets that plain, whitened and scaled
    gradients choose, and after random ones; errors after the first of these, and the best."""
    run = forward(runs.spec)  # with weights before and after training, of the runs that have them
    path = jax.tree.map(lambda leaf: np.asarray(leaf, float), runs.path)
    ends = [jax.tree.map(operator.itemgetter((slice(None), end)), path) for end in (0, -1)]
    every = sets[:, :, 1], matched, random, rows, queries.x, queries.clean
    sets, matched, random, rows, *test = (part[: config.trained] for part in every)
    first, axes = random[:, 0], ("weights", "pair")

    def end_gaps(sets):
        return np.stack([gaps(run, params, sets, rows, test[0]) for params in ends])

    bayes = jax.vmap(partial(bayes_error, config))(first[..., :-1], first[..., -1], *test)
    return {
        "softmax": ((*axes, "matched"), end_gaps(sets)),
        "softmax_subset": ((*axes, "gradients"), end_gaps(matched)),
        "softmax_random": ((*axes, "draw"), end_gaps(random)),
        "error": (axes, np.stack([errors(run, params, first, *test) for params in ends])),
        "bayes": ("pair", np.asarray(bayes)),
    }
