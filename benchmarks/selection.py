"""Scores of a pool of 10 000 demonstrations for 100 queries at d = 20, one layer and four.

What is encoded once is timed apart from what the queries cost. The flow is held against automatic
differentiation of the forward pass for each pair, on 1 % of the pairs. Ratios are taken within one
run of this script, on an idle machine:

    python -m benchmarks.selection
"""

import time
from functools import partial

from lsa_lab.harness import process

process.configure()

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.models import linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.selection import diversity, oracles, scores

M, QUERIES, D, L, SIZE, CHUNK, REPEATS = 10_000, 100, 20, 4, 16, 10, 5
SOME = 1000  # pairs of the slow route: demonstrations times 10 queries


def timed(name, function, *given):
    """The result, and the median of the seconds that a compiled call takes."""
    result = jax.block_until_ready(function(*given))
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        jax.block_until_ready(function(*given))
        times.append(time.perf_counter() - began)
    spread = f"({min(times):.3f} to {max(times):.3f})"
    print(f"{name:56} {np.median(times):7.3f} s  {spread}", flush=True)
    return result, np.median(times)


@partial(jax.jit, static_argnames=("score", "chunk"))
def every(score, encoded, queries, chunk=CHUNK):
    """All scores [Q, m], as the requirement has it."""
    return scores.score_queries(partial(score, encoded), queries, chunk)


@partial(jax.jit, static_argnames="score")
def chosen(score, encoded, queries):
    """The indices of the best [Q, size]."""
    pick = lambda query: scores.select(score(encoded, query), SIZE)  # noqa: E731
    return scores.score_queries(pick, queries, CHUNK)


def norm_of_flow(encoded, token):
    return scores.flow_norm(encoded @ token)


def norm_in_every_layer(encoded, token):
    return jax.vmap(scores.flow_norm)(encoded @ token)


@jax.jit
def by_forward(params, pool, tokens):
    """The flow of the last layer, by reverse mode through the model for each pair."""

    def answer(token, query_token):
        return predict(linear_attention.forward(params, jnp.stack([token, query_token])))

    def score(query_token):
        return scores.flow_norm(jax.vmap(jax.grad(answer), (0, None))(pool, query_token))

    return scores.score_queries(score, tokens, 1)


def compare_scores(params, pool, tokens):
    queries = tokens[:, :-1]
    encoding, _ = timed("GradS, one layer: encoding", jax.jit(scores.encode), *first(params), pool)
    _, grads = timed("GradS, one layer: queries", every, scores.grads, encoding, tokens)
    timed("GradS, one layer: queries, best 16 alone", chosen, scores.grads, encoding, tokens)
    for score in (scores.contribution, scores.similarity):
        timed(f"{score.__name__}: queries", every, score, pool, queries)
    encoded, offline = timed(
        f"flow, {L} layers: encoding", jax.jit(scores.encode_flow), params, pool
    )
    found, flow = timed("flow, last layer: queries", every, norm_of_flow, encoded[-1], tokens)
    timed(f"flow, all {L} layers: queries", every, norm_in_every_layer, encoded, tokens)
    timed("flow, last layer: best 16", chosen, norm_of_flow, encoded[-1], tokens)
    for chunk in (1, 50):
        timed(
            f"flow, last layer: queries, {chunk} at a time",
            partial(every, norm_of_flow, chunk=chunk),
            encoded[-1],
            tokens,
        )
    few = (pool[:SOME], tokens[:10])
    slow, seconds = timed(
        "flow, last layer, by the forward pass, 1 % of the pairs", by_forward, params, *few
    )
    np.testing.assert_allclose(found[:10, :SOME], slow, rtol=1e-8)
    print(f"ratio to the forward pass {seconds * 100 / (offline + flow):.0f}")
    print(f"ratio of the last layer's queries to GradS of one layer {flow / grads:.1f}")


def first(params):
    return params.w_kq[0, 0], params.w_pv[0, 0]


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    pool = jnp.asarray(rng.normal(size=(M, D + 1)) / D**0.5)
    tokens = jnp.asarray(rng.normal(size=(QUERIES, D + 1))).at[:, -1].set(0)
    weights = jnp.asarray(0.3 * rng.normal(size=(2, L, 1, D + 1, D + 1)))
    params = linear_attention.Params(*weights)
    compare_scores(params, pool, tokens)
    join = jax.jit(oracles.flow_joining)
    nothing = jnp.zeros(1000)
    timed(
        "flow of joining, m = 1 000, one query", join, params, pool[:1000], tokens[0, :-1], nothing
    )
    for rule in (diversity.farthest_point, partial(diversity.determinantal, ridge=0.1)):
        name = getattr(rule, "__name__", "determinantal")
        timed(f"{name}, 128 of the pool", jax.jit(partial(rule, size=128)), pool)
    timed("leverage", jax.jit(diversity.leverage), pool)
    near = jax.jit(lambda points, key: diversity.medoids(points, 128, key))
    timed("medoids, 128 of the pool", near, pool, jax.random.key(0))
