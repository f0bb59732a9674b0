"""What encoded flows rank and select, beside flows made online, and what both cost."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow.offline_encoding import costs, encodings
from experiments.flow.offline_encoding.config import FLOWS, RULES, Config, spec_of
from experiments.models.model import Model
from lsa_lab import prompts
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt
from lsa_lab.selection import scores


def draw(key, config):  # -> Prompt of the pool, x [Q, d] and y [Q] of the queries of one task
    """The queries have the pool's task, and no noise."""
    key_task, key_pool, key_queries, key_noise = jax.random.split(key, 4)
    task = spec_of(config).task
    size = (config.pool, task.d)
    weights = jax.random.normal(key_task, (task.d,))
    x, x_queries = jax.random.normal(key_pool, size), _queries(key_queries, config)
    noise = task.noise_std * jax.random.normal(key_noise, (config.pool,))
    pool = Prompt(x, x @ weights + noise, x_queries[0], x_queries[0] @ weights)
    return pool, x_queries, x_queries @ weights


def _queries(key, config):
    return jax.random.normal(key, (config.queries, spec_of(config).task.d))


def pool_measures(config, params, key):  # -> rank correlations [2], squared errors [rules]
    """Means over the queries of one pool."""
    raw, x_queries, targets = draw(key, config)
    own, _ = prompts.normalised(raw)
    size = jnp.sqrt(jnp.mean(raw.x**2))
    pool = jnp.concatenate([own.x, own.y[:, None]], axis=1)
    encoded, alone, together = (
        encode(params, pool)
        for encode in (
            encodings.encode_one_layer,
            encodings.encode_alone,
            encodings.encode_together,
        )
    )

    def query_measures(x_query, target, key):
        token = jnp.pad(x_query / size, (0, 1))
        by_rule = {
            "Eq. 2": scores.grads(encoded, token),
            "alone": encodings.score(alone, token),
            "together": encodings.score(together, token),
            "similarity": scores.similarity(pool, token[:-1]),
            "random": scores.random(pool, token[:-1], key),
        }
        picks = [scores.select(by_rule[rule], config.shots) for rule in RULES]
        chosen = jnp.stack(picks).astype(int)
        model = Model(spec_of(config), params)
        batch = Prompt(raw.x[chosen], raw.y[chosen], *_repeat_query(x_query, target, len(RULES)))
        ranks = [rank_correlation(by_rule[rule], by_rule["together"]) for rule in FLOWS[:2]]
        return jnp.stack(ranks), (model.predict(batch) - target) ** 2

    keys = jax.random.split(jax.random.fold_in(key, 1), config.queries)
    each = jax.lax.map(lambda row: query_measures(*row), (x_queries, targets, keys))
    return jax.tree.map(lambda values: values.mean(0), each)


def _repeat_query(x_query, target, count):
    return jnp.broadcast_to(x_query, (count, len(x_query))), jnp.broadcast_to(target, (count,))


def rank_correlation(left, right):  # [m] x 2 -> []
    ranks = [jnp.argsort(jnp.argsort(values)).astype(float) for values in (left, right)]
    first, second = (rank - rank.mean() for rank in ranks)
    return first @ second / (jnp.linalg.norm(first) * jnp.linalg.norm(second))


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    (runs,), width = models.values(), spec_of(config).token_width
    judged = runs.models(seeds=slice(config.runs))
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), judged.params)
    keys = jax.random.split(jax.random.key(config.seed), (config.runs, config.pools))

    def run_measures(row):
        own, keys = row
        return jax.lax.map(partial(pool_measures, config, own), keys)

    follow = moments.compiled(partial(jax.lax.map, run_measures))
    ranks, errors = (np.asarray(values).mean(1) for values in follow((params, keys)))
    first = jax.tree.map(lambda leaf: leaf[0], params)
    large = jax.random.normal(jax.random.key(config.seed), (config.large + 1, width))
    flops, seconds, kept = costs.measure(first, large[:-1], large[-1].at[-1].set(0), config.repeats)
    hand = costs.hand_counts(config.large, width)
    return xr.Dataset(
        {
            "ranks": (("run", "encoded"), ranks),
            "error": (("run", "rule"), errors),
            "operations": (("way",), flops),
            "by_hand": (("way",), [hand.get(way, np.nan) for way in costs.WAYS]),
            "seconds": (("repeat", "way"), seconds),
            "kept": (("way",), kept),
        },
        {"encoded": list(FLOWS[:2]), "rule": list(RULES), "way": list(costs.WAYS)},
    )
