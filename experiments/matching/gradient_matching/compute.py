"""Choose by every rule, let the stack learn from the chosen, and compare."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.matching import checkpoints as matching
from experiments.matching import subsets
from experiments.matching.gradient_matching import learners
from experiments.matching.gradient_matching.config import (
    CHECKPOINTS,
    MATCHING,
    OTHERS,
    RULES,
    Config,
)
from lsa_lab.selection import baselines, diversity, gradient_matching, prefix, scores
from lsa_lab.selection.whitening import whiten_gradients
from lsa_lab.store import parts
from lsa_lab.tasks import pools


@partial(jax.jit, static_argnums=0)
def rank_all(config, pool, x_queries, key):  # -> [1 + tries + draws + Q, m], of one run
    """What any size is the beginning of: by leverage, at random, and like each query."""
    rows, m = pools.tokens(pool), config.m
    like = jax.vmap(lambda x: scores.select(scores.similarity(rows, x), m))(x_queries)
    by_leverage = scores.select(diversity.leverage(rows), m)[None]
    random = baselines.random_subsets(key, m, m, config.tries + config.random_draws)
    return jnp.concatenate([by_leverage, random, like])


@partial(jax.jit, static_argnums=(0, 1))
def choose(config, size, pool, features, ranked, keys):  # of R runs -> indices [R, S, n]
    """The choices of ``MATCHING`` and ``OTHERS``, the tries of best-of-5, random subsets, and a
    choice for each query."""
    match = partial(gradient_matching.match, size=size)
    labels = np.arange(config.m) * config.strata // config.m

    def choose_run(row):
        pool, features, ranked, key = row
        keys, rows = jax.random.split(key), pools.tokens(pool)
        once = [
            match(features[0], max_swaps=0).indices,
            match(features[0], reverse=True).indices,
            diversity.medoids(rows, size, keys[0]),
            diversity.determinantal(rows, size, ridge=1.0),
            ranked[0, :size],
            jnp.argsort(pool.y)[baselines.stratified(keys[1], labels, size)],
        ]
        every = subsets.side_by_side(*features, whiten_gradients(features[0], size))
        matched = jax.vmap(lambda gradients: match(gradients).indices)(every)
        return jnp.concatenate([matched, jnp.stack(once), ranked[1:, :size]])

    return jax.lax.map(choose_run, (pool, features, ranked, keys))


@partial(jax.jit, static_argnums=0)
def ablate(config, linear, others):  # [m, p], [A, m, p'] of one run -> indices [A + budgets, n]
    """The choices from fewer checkpoints and other prefixes, and with fewer swaps."""
    match = partial(gradient_matching.match, size=config.ablation_size)
    cut = subsets.first_checkpoints(linear, config.used, config.d)
    every = subsets.side_by_side(*cut, *others)
    matched = jax.vmap(lambda gradients: match(gradients).indices)(every)
    swapped = [match(linear, max_swaps=swaps).indices for swaps in config.budgets]
    return jnp.concatenate([matched, jnp.stack(swapped)])


def measure_curriculum(config, progress):
    """The error after each of ``CHECKPOINTS`` on pools of their own."""
    root, runs = jax.random.key(config.curriculum.seed), config.curriculum.runs
    keys = matching.keys_of(root, runs, 2)
    task = pools.PoolTask(config.m, config.d, noise_std=config.noise_std)
    pool, queries = matching.sample_pools(task, config.queries, keys[0])
    steps = learners.recipe(config, config.linear_rate, config.saves).steps(config.m)
    every = learners.recipe(config, config.linear_rate, saves=steps)
    path = matching.linear_checkpoints(pool, every, keys[1], "gradient_matching", progress)
    error = jax.lax.map(partial(checkpoint_errors, config, steps), (pool, queries, path))
    data = {"error": (("run", "matched"), np.asarray(error))}
    return xr.Dataset(data, {"matched": list(CHECKPOINTS)})


def checkpoint_errors(config, steps, row):  # of one run -> [5]
    pool, queries, path = row
    few, every = config.saves, np.arange(steps)
    kept = [every < 1, every >= steps - 1, every < few, every >= steps - few]
    kept = jnp.array([*kept, every % (steps // few) == 0])
    gradients = prefix.linear_gradients(path, pool)

    def choose(keep):  # zeros change no distance
        part = jnp.where(jnp.repeat(keep, config.d)[None], gradients, 0)
        return gradient_matching.match(part, config.ablation_size).indices

    chosen = subsets.members(jax.lax.map(choose, kept), config.m)
    return subsets.squared_errors(config, pool, chosen, queries)[0].mean(1)


ONCE = len(MATCHING) + len(OTHERS)  # rules with one subset of each size


def sample(config, keys, key_noise):  # -> Pool [R, m, ...], queries [R, Q, ...], validation
    task = pools.PoolTask(config.m, config.d, noise_std=config.noise_std)
    pool, both = matching.sample_pools(task, config.queries + config.validation, keys)
    parts = slice(config.queries), slice(config.queries, None)
    queries, validation = (jax.tree.map(lambda x, s=s: x[:, s], both) for s in parts)
    noise = jax.random.normal(key_noise, validation.y.shape)
    return pool, queries, validation.replace(y=validation.y + config.noise_std * noise)


@partial(jax.jit, static_argnums=0)
def errors(config, pool, queries, validation, gradients, chosen):  # [S, m] of one run
    """Squared errors [S, Q] after every subset, the error on the validation, and the objective:
    |mean over the subset - mean over the pool| of the gradients."""
    squares, validated = subsets.squared_errors(config, pool, chosen, queries, validation)
    means = (chosen / chosen.sum(1, keepdims=True)) @ gradients
    return squares, validated.mean(1), jnp.linalg.norm(means - gradients.mean(0)[None], axis=1)


def judge(config, *rows):  # -> a function: indices [R, S, n] -> [R, S, Q], [R, S], [R, S]
    """``errors`` of all runs, for any number of subsets of any size in one compiled computation:
    they are filled up with whole pools to one S."""

    @jax.jit
    def measure_runs(*rows):  # some at a time, for the memory
        return jax.lax.map(lambda row: errors(config, *row), rows, batch_size=32)

    most = ONCE + config.tries + config.random_draws + config.queries

    def judge_subsets(indices):
        chosen = subsets.members(indices, config.m)
        rest = np.ones((config.runs, most - chosen.shape[1], config.m))
        measured = jax.device_get(measure_runs(*rows, np.concatenate([chosen, rest], axis=1)))
        return [values[:, : chosen.shape[1]] for values in measured]

    return judge_subsets


def rule_errors(config, squares, validated):  # -> [R, rule]
    """The try of the least validation error, the median of random subsets, and the mean over
    queries of what is chosen for each alone."""
    tries, random, each = np.cumsum([ONCE, config.tries, config.random_draws])
    best = validated[:, tries:random].argmin(1)[:, None]
    own = np.diagonal(squares[:, each:], axis1=1, axis2=2).mean(1)
    errors = squares.mean(2)
    tried = np.take_along_axis(errors[:, tries:random], best, axis=1)[:, 0]
    median = np.median(errors[:, random:each], axis=1)
    return np.column_stack([errors[:, :tries], tried, median, own])


def ablations(config, judged, linear, prefixes):
    """Errors and objectives with fewer checkpoints, other prefixes, fewer swaps, and no choice."""
    chosen = jax.lax.map(lambda row: ablate(config, *row), (linear, prefixes), batch_size=16)
    squares, _, gap = judged(chosen)
    ends = np.cumsum([len(config.used), len(config.prefix_lengths)])
    by_used, by_length, _ = np.split(squares.mean(2), ends, axis=1)
    everyone = judged(np.tile(np.arange(config.m), (config.runs, 1, 1)))[0]
    return {
        "by_used": (("run", "used"), by_used),
        "by_length": (("run", "length"), by_length),
        "gap_by_swaps": (("run", "swaps"), gap[:, ends[1] :]),
        "pool_error": ("run", everyone.mean((1, 2))),
    }


def compute(config: Config, *, progress=None, checkpoints=None):
    root = jax.random.key(config.seed)
    keys = matching.keys_of(root, config.runs, 5)
    pool, queries, validation = sample(config, keys[0], jax.random.fold_in(root, 5))
    linear, prefixes, features = learners.gradients(config, pool, keys[1], keys[2][0], progress)
    judged = judge(config, pool, queries, validation, features[:, 0])
    ranked = jax.vmap(partial(rank_all, config))(pool, queries.x, keys[4])
    rows = pool, features, ranked
    chosen = (choose(config, size, *rows, keys[3]) for size in config.sizes)
    by_size = [rule_errors(config, *judged(indices)[:2]) for indices in chosen]
    data = {"error": (("run", "n", "rule"), np.stack(by_size, axis=1))}
    places = {"n": config.sizes, "rule": RULES, "length": config.prefix_lengths}
    places |= {"used": config.used, "swaps": config.budgets}
    data |= ablations(config, judged, linear, prefixes)
    main = xr.Dataset(data, {axis: list(values) for axis, values in places.items()})
    return parts.join(main, curriculum=measure_curriculum(config, progress))
