"""Gaps between a model's answers after a set and after its pool, and a bound for one layer."""

from functools import partial

import jax
import jax.numpy as jnp

from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import predict
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


@partial(jax.jit, static_argnums=0)
def one_layer_gaps(config, covariance, pool, chosen, queries):  # -> [S] twice, of one run
    """Root mean squares over queries of the best single layer's gap, and of its bound |Γ⁻¹x| |Δb|
    (docs/theory, "The one-layer gap bound")."""
    rows = pools.tokens(pool)
    best = constructions.one_step_optimum(covariance, config.n, config.noise_std**2)
    inverse = best.w_kq[0, 0, :-1, :-1] * -best.w_pv[0, 0, -1, -1]
    mean = pool.y @ pool.x / config.m
    whole = answers(linear_attention.forward, best, rows, queries)

    def subset_gap(indices):
        gap = answers(linear_attention.forward, best, rows[indices], queries) - whole
        other = pool.y[indices] @ pool.x[indices] / config.n
        bound = jnp.linalg.norm(queries @ inverse, axis=1) * jnp.linalg.norm(other - mean)
        return (
            jnp.sqrt((gap**2).mean() / (whole**2).mean()),
            jnp.sqrt((bound**2).mean() / (whole**2).mean()),
        )

    return jax.lax.map(subset_gap, chosen)
