"""What encoded flows rank and select, beside flows made online, and what both cost."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import Array
from jax.scipy.stats import rankdata

from experiments.flow.offline_encoding.config import FLOWS, RULES, WAYS, Config, spec_of
from experiments.models.model import Model
from lsa_lab import prompts
from lsa_lab.analyses.amplification import moment_flow
from lsa_lab.models import moments
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt
from lsa_lab.selection import scores


def draw(key, config):  # -> Prompt of the pool, x [Q, d] and y [Q] of the queries of one task
    """The queries have the pool's task, and no noise."""
    key_task, key_pool, key_queries, key_noise = jax.random.split(key, 4)
    task = spec_of(config).task
    size, queries = (config.pool, task.d), (config.queries, task.d)
    weights = jax.random.normal(key_task, (task.d,))
    x, x_queries = jax.random.normal(key_pool, size), jax.random.normal(key_queries, queries)
    noise = task.noise_std * jax.random.normal(key_noise, (config.pool,))
    pool = Prompt(x, x @ weights + noise, x_queries[0], x_queries[0] @ weights)
    return pool, x_queries, x_queries @ weights


def encode_one_layer(params: Params, pool: Array) -> scores.Encoding:
    """What Eq. 2 needs of the first layer, each demonstration alone."""
    return scores.encode(params.w_kq[0, 0], params.w_pv[0, 0], pool)


def encode_alone(params: Params, pool: Array) -> Array:  # [m, e, e]
    """F with F @ query the flow to the last layer's prediction of each demonstration alone."""
    return scores.encode_flow(params, pool)[-1]


def encode_together(params: Params, pool: Array) -> Array:  # [m, e, e]
    """The same with the whole pool in the prompt, (1/m) (G + Gᵀ) e_i with G = ∂ŷ/∂S_0.

    It is linear in the query too, since ŷ = -(W_L)_{e,:} q and the query is no key (docs/theory,
    "The flow through the moment").
    """

    def row(second_moment: Array) -> Array:  # [e]
        return -moments.layer_maps(params, second_moment)[-1, -1]

    slopes = jax.jacrev(row)(pool.T @ pool / len(pool))  # [e of the query, e, e]
    symmetric = (slopes + slopes.swapaxes(-1, -2)) / len(pool)
    return jnp.einsum("qab,mb->maq", symmetric, pool)


def score(encoded: Array, query_token: Array) -> Array:  # [m]
    return scores.flow_norm(encoded @ query_token)


def score_online(params: Params, pool: Array, query_token: Array) -> Array:  # [m]
    """The flow with the whole pool in the prompt, from the start for this query."""
    prompt = Prompt(pool[:, :-1], pool[:, -1], query_token[:-1], query_token[-1])
    return scores.flow_norm(moment_flow(params, prompt)[-1])


def pool_measures(config, params, key):  # -> rank correlations [2], squared errors [rules]
    """Means over the queries of one pool."""
    raw, x_queries, targets = draw(key, config)
    own, _ = prompts.normalised(raw)
    size = jnp.sqrt(jnp.mean(raw.x**2))
    pool = jnp.concatenate([own.x, own.y[:, None]], axis=1)
    encoders = (encode_one_layer, encode_alone, encode_together)
    encoded, alone, together = (encode(params, pool) for encode in encoders)

    def query_measures(x_query, target, key):
        token = jnp.pad(x_query / size, (0, 1))
        by_rule = {
            "Eq. 2": scores.grads(encoded, token),
            "alone": score(alone, token),
            "together": score(together, token),
            "similarity": scores.similarity(pool, token[:-1]),
            "random": scores.random(pool, token[:-1], key),
        }
        picks = [scores.select(by_rule[rule], config.shots) for rule in RULES]
        chosen = jnp.stack(picks).astype(int)
        model = Model(spec_of(config), params)
        every = [jnp.stack([each] * len(RULES)) for each in (x_query, target)]
        batch = Prompt(raw.x[chosen], raw.y[chosen], *every)
        ranks = [rank_correlation(by_rule[rule], by_rule["together"]) for rule in FLOWS[:2]]
        return jnp.stack(ranks), (model.predict(batch) - target) ** 2

    keys = jax.random.split(jax.random.fold_in(key, 1), config.queries)
    each = jax.lax.map(lambda row: query_measures(*row), (x_queries, targets, keys))
    return jax.tree.map(lambda values: values.mean(0), each)


def rank_correlation(left, right):  # [m] x 2 -> []
    ranks = (rankdata(values) for values in (left, right))
    first, second = (rank - rank.mean() for rank in ranks)
    return first @ second / (jnp.linalg.norm(first) * jnp.linalg.norm(second))


def operations(params, pool, query_token) -> dict[str, float]:
    """{way: the compiler's count for one query}, in the order of WAYS; what is made once for all
    queries is an argument."""
    calls = (
        (scores.grads, (encode_one_layer(params, pool), query_token)),
        (score, (encode_together(params, pool), query_token)),
        (score_online, (params, pool, query_token)),
    )
    programs = [jax.jit(call).lower(*arguments).compile() for call, arguments in calls]
    return {way: p.cost_analysis()["flops"] for way, p in zip(WAYS, programs, strict=True)}


def compute(config: Config, models, *, progress=None, checkpoints=None):
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
    counts = operations(first, large[:-1], large[-1].at[-1].set(0))
    return xr.Dataset(
        {
            "ranks": (("run", "encoded"), ranks),
            "error": (("run", "rule"), errors),
            "operations": (("way",), [*counts.values()]),
        },
        {"encoded": list(FLOWS[:2]), "rule": list(RULES), "way": list(WAYS)},
    )
