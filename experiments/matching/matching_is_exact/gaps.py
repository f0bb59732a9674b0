"""Gaps between a model's answers after a set and after its pool."""

from functools import partial

import jax
import jax.numpy as jnp

from lsa_lab.models.trace import predict


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
