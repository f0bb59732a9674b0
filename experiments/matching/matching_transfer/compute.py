"""Choose subsets on small models, teach all models by them, fine-tune on them, compare ranks."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.matching import checkpoints as matching
from experiments.matching.matching_transfer import learners
from experiments.matching.matching_transfer.config import (
    BAYES,
    RULES,
    STACK,
    TUNED,
    Config,
    targets,
)
from experiments.matching.subsets import side_by_side
from lsa_lab import estimators, prompts
from lsa_lab.models import moments
from lsa_lab.selection import baselines, diversity, gradient_matching, prefix
from lsa_lab.tasks import pools


def features(config, pool, prefixes):  # of one pool -> [F, m, p], in the order of GRADIENTS
    """What is matched."""
    steps = jnp.full(config.checkpoints - 1, 0.3)  # from w = 0, in small steps
    whole = prompts.Prompt(pool.x, pool.y, pool.x[0], pool.y[0])
    linear = prefix.linear_gradients(estimators.gradient_descent(whole, steps), pool)
    loss, examples = learners.squared_error, (pool.x, pool.y)
    others = (prefix.example_gradients(loss, *path, examples) for path in prefixes.values())
    return side_by_side(linear, *others)


@partial(moments.compiled, static_argnums=0)
def choose(config, pool, prefixes, keys):  # -> indices [G, S, n]
    """The choice of each of ``RULES``, then random subsets."""
    match = partial(gradient_matching.match, size=config.n)

    def choice(row):
        pool, prefixes, key = row
        parts = features(config, pool, prefixes)
        chosen = jax.lax.map(lambda part: match(part).indices, parts)
        mismatched = match(parts[0], reverse=True).indices
        diverse = diversity.determinantal(pools.tokens(pool), config.n, ridge=1.0)
        others = baselines.random_subsets(key, config.m, config.n, config.random_subsets)
        return jnp.concatenate([chosen, jnp.stack([mismatched, diverse]), others])

    return jax.lax.map(choice, (pool, prefixes, keys))


def compute(config: Config, models, *, progress=None, checkpoints=None):
    root = jax.random.key(config.seed)
    keys = [jax.random.fold_in(root, tag) for tag in range(4)]
    trained = {name: runs.models(seeds=slice(config.runs)) for name, runs in models.items()}
    x, y, *queries = teach(config, trained[STACK], keys, progress)
    by_target = [*np.asarray(learners.constructed_errors(config, x, y, queries))]
    single = [jnp.asarray(part, jnp.float32) for part in (x, y, *queries)]
    for model in trained.values():
        by_target.append(np.asarray(learners.errors(model, *single[:2], single[2:]), float))
    error = np.stack(by_target)  # [targets, R, P, S]
    chosen, random = error[..., : len(RULES)], error[..., len(RULES) :]
    others = x[:, :, len(RULES) :], y[:, :, len(RULES) :]
    bayes = np.asarray(learners.bayes_errors(config, *others, *queries))
    few = [part[:, : config.tuned_pools] for part in (*others, *queries)]
    tuned = tuned_errors(config, trained, few, keys[3])
    taught = random[-len(trained) :, :, : config.tuned_pools]
    by_tuned = [rank_correlation(tuned[:, i], taught[i][None])[:, 0] for i in range(len(trained))]
    axes = ("target", "run", "pool")
    return xr.Dataset(
        {
            "chosen": ((*axes, "rule"), chosen),
            "random": ((*axes, "subset"), random),
            "bayes": ((*axes[1:], "subset"), bayes),
            "spearman": (("target", "other", "run"), rank_correlation(random, random)),
            "tuned": (("learner", "model", "run", "tuned_pool", "subset"), tuned),
            "by_tuned": (("model", "learner", "run"), np.stack(by_tuned)),
        },
        {"target": targets(config), "other": targets(config), "rule": list(RULES)}
        | {"learner": [*TUNED, BAYES], "model": list(trained)},
    )


def teach(config, stack, keys, progress):
    """The demonstrations of every subset, x [R, P, S, n, d] and y, the queries of its pool,
    x [R, P, Q, d] and y without noise."""
    task = pools.PoolTask(config.m, config.d, noise_std=config.noise_std)
    keys_pools = jax.random.split(keys[0], config.runs * config.pools)
    pool, queries = matching.sample_pools(task, config.queries, keys_pools)
    stack = stack.cast_float64()
    frozen = {
        "prefix": learners.one_layer_model(config, len(pool.y)),
        "stack prefix": jax.tree.map(lambda leaf: np.repeat(leaf, config.pools, 0), stack),
    }
    paths = {
        rule: (model, learners.prefix_path(config, model, pool, keys[1], rule, progress))
        for rule, model in frozen.items()
    }
    chosen = np.asarray(choose(config, pool, paths, jax.random.split(keys[2], len(pool.y))))
    rows = np.arange(len(chosen))[:, None, None]
    parts = [np.asarray(pool.x)[rows, chosen], np.asarray(pool.y)[rows, chosen]]
    parts += [np.asarray(queries.x), np.asarray(queries.clean)]
    parts = (part.reshape(config.runs, config.pools, *part.shape[1:]) for part in parts)
    return map(jnp.asarray, parts)


def tuned_errors(config, trained, subsets, key):  # -> [learner, model, R, P, S]
    """Errors of each of ``TUNED`` after fine-tuning on the subsets, and of the Bayes rule."""
    zero, stack = jnp.zeros((config.runs, config.d)), trained[STACK]
    linear = learners.tune(config, learners.linear_answers, stack, zero, *subsets)
    bayes = np.asarray(learners.bayes_errors(config, *subsets))
    rows = (learners.prefix_starts(config, config.runs, key), *subsets)
    single = [jnp.asarray(part, jnp.float32) for part in rows]
    tune = partial(learners.tune, config, learners.prefix_answers)
    own = [tune(model, *single) for model in trained.values()]
    return np.stack(np.broadcast_arrays(linear, np.stack(own), bayes))


def rank_correlation(left, right):  # [A, R, P, S], [B, R, P, S] -> [A, B, R]
    """Spearman's correlation over subsets of every two rows, the mean over pools."""
    from scipy.stats import rankdata

    def units(values):
        ranks = rankdata(values, axis=-1)
        centred = ranks - ranks.mean(-1, keepdims=True)
        length = np.linalg.norm(centred, axis=-1, keepdims=True)
        return centred / np.maximum(length, 1e-12)  # 0 where all ranks are equal

    return np.einsum("trps,urps->turp", units(left), units(right)).mean(-1)
