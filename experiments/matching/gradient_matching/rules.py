"""Every rule of `gradient_matching`: what it chooses from a pool, and how that is judged."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching import checkpoints as matching
from lsa_lab.models import constructions
from lsa_lab.selection import diversity, gradient_matching, oracles, prefix, rivals, scores
from lsa_lab.tasks import pools

# One subset of one size, as ``choose`` returns them; then those that take a second look.
FIXED = (
    "matching",
    "matching, prefix",
    "moments",
    "greedy only",
    "mismatching",
    "k-means",
    "determinantal",
    "leverage",
    "stratified",
)
OWN = ("best of 5", "random", "similarity")
RIVALS = (*FIXED[5:], *OWN)
LENGTH = 4  # of A3's prefix


def wide(features):  # [m, p] each -> [F, m, largest p]
    """Zeros added to a gradient change no distance: all kinds of features are one computation."""
    most = max(rows.shape[1] for rows in features)
    return jnp.stack([jnp.pad(rows, ((0, 0), (0, most - rows.shape[1]))) for rows in features])


@partial(jax.jit, static_argnums=(0, 1))
def choose(config, size, pool, features, ranked, keys):  # of R runs -> indices [R, S, n]
    """The choices of every rule but best-of-5, the tries of that, random subsets, and a choice for
    each query."""
    match = partial(gradient_matching.match, size=size)
    labels = np.arange(config.m) * config.strata // config.m

    def one(row):
        pool, features, ranked, key = row
        keys, rows = jax.random.split(key), pools.tokens(pool)
        once = [
            match(features[0], max_swaps=0).indices,
            match(features[0], reverse=True).indices,
            diversity.medoids(rows, size, keys[0]),
            diversity.determinantal(rows, size, ridge=1.0),
            ranked[0, :size],
            jnp.argsort(pool.y)[rivals.stratified(keys[1], labels, size)],
        ]
        matched = jax.vmap(lambda some: match(some).indices)(features)
        return jnp.concatenate([matched, jnp.stack(once), ranked[1:, :size]])

    return jax.lax.map(one, (pool, features, ranked, keys))


@partial(jax.jit, static_argnums=0)
def rank_all(config, pool, x_queries, key):  # -> [1 + tries + draws + Q, m], of one run
    """What any size is the beginning of: by leverage, at random, and like each query."""
    rows, m = pools.tokens(pool), config.m
    like = jax.vmap(lambda x: scores.select(scores.similarity(rows, x), m))(x_queries)
    by_leverage = scores.select(diversity.leverage(rows), m)[None]
    random = rivals.random_subsets(key, m, m, config.tries + config.random_draws)
    return jnp.concatenate([by_leverage, random, like])


@partial(jax.jit, static_argnums=0)
def judge(config, pool, queries, validation, gradients, chosen):  # [S, m] of one run
    """Of every subset: squared errors [S, Q], the error on the validation, and the objective."""
    stack = constructions.gradient_descent(jnp.full(config.depth, config.step), config.d)
    weights = matching.answers(stack, pools.tokens(pool), chosen)
    return (
        (weights @ queries.x.T - queries.y[None]) ** 2,
        ((weights @ validation.x.T - validation.y[None]) ** 2).mean(1),
        matching.gaps(gradients, chosen),
    )


def by_rule(config, judged):  # -> error, objective [R, rule]
    """Of the tries the one of the least validation error, of random subsets the median one, and
    the mean over queries of what is chosen for each alone."""
    squares, validated, gap = judged
    fixed, tries, draws = len(FIXED), config.tries, config.random_draws
    own = np.diagonal(squares[:, fixed + tries + draws :], axis1=1, axis2=2).mean(1)
    best = validated[:, fixed : fixed + tries].argmin(1)[:, None]
    found = []
    for values, similar in ((squares.mean(2), own), (gap, gap[:, fixed + tries + draws :].mean(1))):
        tried, random = values[:, fixed : fixed + tries], values[:, fixed + tries :][:, :draws]
        found.append(
            np.concatenate(
                [
                    values[:, :fixed],
                    np.take_along_axis(tried, best, axis=1),
                    np.median(random, axis=1)[:, None],
                    similar[:, None],
                ],
                axis=1,
            )
        )
    return found


@partial(jax.jit, static_argnums=0)
def ablate(config, linear, others):  # [m, p], [A, m, p'] of one run -> indices [A + budgets, n]
    """The choices from fewer checkpoints and other prefixes, and with fewer swaps."""
    match = partial(gradient_matching.match, size=config.ablation_size)
    fewer = jnp.arange(linear.shape[1])[None] < config.d * jnp.asarray(config.used)[:, None]
    cut = jnp.where(fewer[:, None], linear[None], 0)
    cut = jnp.pad(cut, ((0, 0), (0, 0), (0, others.shape[2] - cut.shape[2])))
    every = jax.vmap(lambda some: match(some).indices)(jnp.concatenate([cut, others]))
    swapped = [match(linear, max_swaps=swaps).indices for swaps in config.budgets]
    return jnp.concatenate([every, jnp.stack(swapped)])


@partial(jax.jit, static_argnums=(0, 1))
def exactly(config, m, gradients):  # [all m, p] -> [4], of one run
    """The least objective of a small pool, that with swaps, that of greed, and at random."""
    some, size = gradients[:m], config.small_size

    def gap(indices):
        return jnp.linalg.norm(some[indices].mean(0) - some.mean(0))

    found = gradient_matching.match(some, size)
    greedy, random = found.history[size - 1], found.certificate.random
    return jnp.stack([oracles.best_subset(gap, m, size)[1], found.objective, greedy, random])


def learned(config, pool, keys, progress):  # -> [R, m, p], [R, K, m, p'], [R, F, m, p]
    """The gradients of the linear proxy, of prefixes, and the features that are matched."""
    name, lengths = "gradient_matching", tuple(config.prefix_lengths)
    recipe = partial(prefix.Recipe, epochs=config.epochs, batch=config.batch, saves=config.saves)
    linear_recipe = recipe(learning_rate=config.linear_rate)
    prefix_recipe = recipe(learning_rate=config.prefix_rate)
    path = matching.linear_checkpoints(pool, linear_recipe, keys[1], name, progress)
    literal = matching.prefix_checkpoints(pool, lengths, prefix_recipe, keys[2][0], name, progress)

    @jax.jit
    def collect(pool, path, literal):
        linear = jax.vmap(prefix.linear_gradients)(path, pool)
        prefixes = jax.vmap(lambda z, one: matching.prefix_gradients(z, lengths, one))(
            literal, pool
        )
        oracle = jax.vmap(rivals.moment_features)(jax.vmap(pools.tokens)(pool))
        used = prefixes[:, lengths.index(LENGTH)].reshape(*linear.shape[:2], config.saves, -1)
        used = used[..., : LENGTH * (config.d + 1)].reshape(*linear.shape[:2], -1)
        return linear, prefixes, jax.vmap(lambda *rows: wide(rows))(linear, used, oracle)

    return collect(pool, path, literal)
