"""Spoil the pools, choose from them by each rule, and let the learners answer."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.matching import checkpoints
from experiments.matching.fixed_and_per_query.config import LEARNERS, NOISY_KINDS, NOISY_RULES
from experiments.matching.subsets import means_of_draws
from experiments.models.model import Model
from lsa_lab import estimators
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt
from lsa_lab.selection import baselines, gradient_matching, prefix
from lsa_lab.tasks import pools


def proxy_gradients(config, pool, keys, progress):  # of N pools -> [N, m, p]
    """Those of the linear proxy along its training on each pool."""
    recipe = checkpoints.recipe_of(config)
    path = checkpoints.linear_checkpoints(pool, recipe, keys, "fixed_and_per_query", progress)
    return jax.jit(jax.vmap(prefix.linear_gradients))(path, pool)


def subset_errors(config, models, batch, subsets):  # leaves [R·P, S·Q, ...] -> [learners, R, P, S]
    """Mean squared errors over the queries of each pool, of the exact learners and then of the
    trained models, which compute in float32."""
    count = len(batch.y_query) // config.runs
    batch = jax.tree.map(lambda x: x.reshape(config.runs, -1, *x.shape[2:]), batch)
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), batch)
    trained = [np.asarray(_answers(model, single), float) for model in models.values()]
    answers = np.stack([*np.asarray(_exact(config, batch)), *trained])
    squared = (answers - np.asarray(batch.y_query)) ** 2
    return squared.reshape(len(squared), config.runs, count, subsets, -1).mean(-1)


@partial(jax.jit, static_argnums=0)
def _exact(config, batch):  # -> [2, R, B]
    """Gradient descent from w = 0, which a stack of linear attention computes, and ridge, which is
    the Bayes rule where all demonstrations have one w ~ N(0, I) and Gaussian noise."""
    steps = jnp.full(config.depth, config.step)

    def answers(prompt: Prompt):
        descent = estimators.gradient_descent(prompt, steps)[-1]
        ridge = estimators.gaussian_posterior_mean(prompt, 1.0, config.noise_std**2)
        return jnp.stack([descent, ridge]) @ prompt.x_query

    return jnp.moveaxis(jax.lax.map(jax.vmap(answers), batch), -1, 0)


@moments.compiled
def _answers(model: Model, batch):  # -> [R, B]
    return jax.lax.map(lambda row: row[0].predict(row[1]), (model, batch))


ONCE = len(NOISY_RULES) - 1  # rules with one subset of each size; then random draws


def sample(config, kind, keys):
    """Pools [N, m, ...] of a kind, their outliers [N, m], and Gaussian queries [N, Q, ...]."""
    noisy, (few, many) = config.noisy, config.noisy.flips
    spoilt = {"few flipped": {"flips": few}, "many flipped": {"flips": many}}
    spoilt["heavy covariates"] = {"tail": noisy.tail}
    clean = pools.PoolTask(noisy.m, config.d, noise_std=config.noise_std)
    task = clean.replace(**spoilt.get(kind, {}))

    def draw(key):
        key_pool, key_noise, key_queries = jax.random.split(key, 3)
        pool = pools.sample(key_pool, task)
        queries = pools.queries(key_queries, clean, pool.population, noisy.queries)
        if kind == "heavy noise":
            scale = config.noise_std * (1 - 2 / noisy.tail) ** 0.5
            noise = scale * jax.random.t(key_noise, noisy.tail, (noisy.m,))
            pool = pool.replace(y=pool.clean + noise)
        sizes = jnp.abs(pool.y - pool.clean)
        if kind == "heavy covariates":
            sizes = jnp.linalg.norm(pool.x, axis=1)
        outliers = sizes >= jnp.quantile(sizes, 1 - noisy.outliers)
        return pool, outliers, queries

    pool, outliers, queries = jax.jit(jax.vmap(draw))(keys)
    if kind.endswith("flipped"):  # the labels before the noise have the other sign
        labels = jax.jit(jax.vmap(lambda key, task: pools.sample(key, task).y, (0, None)))
        first = jax.vmap(lambda key: jax.random.split(key, 3)[0])(keys)
        outliers = labels(first, task) != labels(first, clean)
    return pool, outliers, queries


@partial(jax.jit, static_argnums=(0, 1))
def choose(noisy, size, gradients, keys):  # [N, m, p], [N] -> [N, S, n]
    def subsets(row):
        gradients, key = row
        match = partial(gradient_matching.match, gradients, size)
        chosen = [match(), match(whiten=True), match(reverse=True)]
        random = baselines.random_subsets(key, noisy.m, size, noisy.random_draws)
        return jnp.concatenate([jnp.stack([each.indices for each in chosen]), random])

    return jax.lax.map(subsets, (gradients, keys))


@jax.jit
@jax.vmap
def prompts_after(pool, chosen, queries):  # of N pools -> leaves [N, S·Q, ...]
    over_queries = jax.vmap(pools.prompt, (None, None, 0, 0))
    over_subsets = jax.vmap(over_queries, (None, 0, None, None))
    batch = over_subsets(pool, chosen, queries.x, queries.clean)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), batch)


def geometric_mean(errors, axis, keepdims=False):
    return np.exp(np.log(errors).mean(axis, keepdims=keepdims))


def measure(config, models, progress):
    """The errors of every learner after subsets of each size from each kind of pool, of random ones
    and over pools their geometric mean, for descent explodes on rare ones; and who is chosen."""
    noisy, root = config.noisy, jax.random.key(config.noisy.seed)
    keys = checkpoints.keys_of(root, config.runs * noisy.pools, 3)
    errors, shares, marks = [], [], []
    for kind in NOISY_KINDS:
        pool, outliers, queries = sample(config, kind, keys[0])
        gradients = proxy_gradients(config, pool.replace(population=None), keys[1], progress)
        marks.append(np.asarray(outliers).reshape(config.runs, -1).mean(1))
        for size in noisy.sizes:
            chosen = choose(noisy, size, gradients, keys[2])
            batch = prompts_after(pool, chosen, queries)
            answering = models if size == noisy.model_size else {}
            means = subset_errors(config, answering, batch, chosen.shape[1])
            values = geometric_mean(means_of_draws(means, [ONCE], -1, geometric_mean), -2)
            lacking = ((0, len(LEARNERS) - len(values)), *[(0, 0)] * 2)
            errors.append(np.pad(values, lacking, constant_values=np.nan))
            marked = np.take_along_axis(np.asarray(outliers)[:, None], np.asarray(chosen), 2)
            share = means_of_draws(marked.mean(2), [ONCE])
            shares.append(share.reshape(config.runs, noisy.pools, -1).mean(1))

    def table(values):  # [kind·n] of [..., run, rule] -> [..., kind, run, n, rule]
        values = np.stack(values).reshape(len(marks), len(noisy.sizes), *values[0].shape)
        return np.moveaxis(values, (0, 1), (-4, -2))

    axes = ("kind", "run", "n", "rule")
    places = {"learner": list(LEARNERS), "kind": list(NOISY_KINDS), "n": list(noisy.sizes)}
    data = {
        "error": (("learner", *axes), table(errors)),
        "outliers": (axes, table(shares)),
        "pool_outliers": (("kind", "run"), np.stack(marks)),
    }
    return xr.Dataset(data, places | {"rule": list(NOISY_RULES)})
