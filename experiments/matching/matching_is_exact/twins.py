"""Sets that agree with a pool at some checkpoints and are otherwise unlike it, and their gaps."""

from functools import partial

import jax
import jax.numpy as jnp

from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.selection import gradient_matching, prefix, rivals
from lsa_lab.tasks import pools


def linear_stacks(config, key):  # -> Params [R, L, 1, e, e] by name
    """Constructed and random; behind a stack's last layer are layers that write 0."""
    most, runs = max(config.depths), config.runs

    def cut(params, depth):  # of [R, l, 1, e, e], l <= L
        kept = jax.tree.map(lambda w: w[:, :depth], params)
        missing = (most - kept.w_kq.shape[1],)
        return jax.tree.map(lambda w: jnp.pad(w, ((0, 0), (0, *missing), *[(0, 0)] * 3)), kept)

    steps = constructions.gradient_descent(jnp.full(most, config.step), config.d)
    descent = jax.tree.map(lambda w: jnp.broadcast_to(w, (runs, *w.shape)), steps)
    sizes = (max(config.random_depths), runs, config.d)  # a head for each run
    drawn = jax.jit(linear_attention.init, static_argnums=(1, 2, 3))(
        key, *sizes, config.random_scale
    )
    random = jax.tree.map(lambda w: jnp.swapaxes(w, 0, 1)[:, :, None], drawn)
    named = {f"descent, {depth}": cut(descent, depth) for depth in config.depths}
    return named | {f"random, {depth}": cut(random, depth) for depth in config.random_depths}


def twins(config, pool, others, path, key):  # [m, e], [n, e], [C, d] -> [C+1, 2, n, e]
    """Sets with the pool's mean gradients at the first 0, 1, ..., C checkpoints w_c.

    These fix H'v = Hv for all v = w_c - w_1, and H'w_1 - b' = Hw_1 - b, H the second moment of x
    and b the mean of yx (derived here; THEORY I.3.3). With V = [v ...] all such H' are

        H' = HV (VᵀHV)⁻¹ VᵀH + N,   NV = 0;   here N = H° - H°V (VᵀH°V)⁻¹ VᵀH°,

    H° that of ``others``. Once with others' noise in y², and once with the pool's y², or the least
    above it that a set can have. The set is √n Q Rᵀ with moment R Rᵀ and orthonormal Q [n, e].
    """
    moment, free = (rows.T @ rows / len(rows) for rows in (pool, others))
    turn = jnp.linalg.qr(jax.random.normal(key, (config.n, config.d + 1), pool.dtype))[0]
    noise = free[-1, -1] - free[-1, :-1] @ jnp.linalg.solve(free[:-1, :-1], free[:-1, -1])

    def fixed_part(h, v):
        return h @ v @ jnp.linalg.solve(v.T @ h @ v, v.T @ h)

    def twin(count):
        h, b, other = moment[:-1, :-1], moment[:-1, -1], free[:-1, :-1]
        if count == 0:
            return jnp.stack([turn @ jnp.linalg.cholesky(free).T] * 2) * config.n**0.5
        new = other
        if count > 1:
            v = jnp.linalg.qr((path[1:count] - path[:1]).T)[0]
            new = fixed_part(h, v) + other - fixed_part(other, v)
        b = b + (new - h) @ path[0]
        least = b @ jnp.linalg.solve(new, b)
        both = jnp.stack([least + noise, jnp.maximum(moment[-1, -1], least + noise / 10)])

        def rows(square):
            top = jnp.concatenate([new, b[:, None]], axis=1)
            whole = jnp.concatenate([top, jnp.concatenate([b, square[None]])[None]])
            return turn @ jnp.linalg.cholesky(whole).T * config.n**0.5

        return jax.vmap(rows)(both)

    return jnp.stack([twin(count) for count in range(config.most + 1)])


def answers(forward, params, rows, queries):  # [n, e], [Q, d] -> [Q]
    padded = jnp.pad(queries, ((0, 0), (0, 1)))
    return jax.vmap(lambda q: predict(forward(params, jnp.concatenate([rows, q[None]]))))(padded)


@partial(jax.jit, static_argnums=0)
def gaps(forward, params, sets, pool, queries):  # [S, n, e], [m, e], [Q, d] of R -> [R, S]
    def one(row):
        params, sets, pool, queries = row
        whole = answers(forward, params, pool, queries)
        each = jax.lax.map(lambda rows: answers(forward, params, rows, queries), sets)
        return jnp.sqrt(((each - whole[None]) ** 2).mean(1) / (whole**2).mean())

    return jax.lax.map(one, (params, sets, pool, queries))


@partial(jax.jit, static_argnums=0)
def subsets(config, pool, path, key):  # -> indices [most + draws, n]
    """Matched to the first 1, 2, ... checkpoints, then random ones."""
    gradients = prefix.linear_gradients(path, pool)
    keep = jnp.arange(gradients.shape[1])[None] < config.d * jnp.arange(1, config.most + 1)[:, None]
    fewer = jnp.where(keep[:, None], gradients[None], 0)
    chosen = jax.vmap(lambda some: gradient_matching.match(some, config.n).indices)(fewer)
    drawn = rivals.random_subsets(key, config.m, config.n, config.random_draws)
    return jnp.concatenate([chosen, drawn])


@partial(jax.jit, static_argnums=0)
def bound_of(config, covariance, pool, chosen, queries):  # -> [S], [S] of one run
    """Of the best single layer Γ⁻¹: the largest gap over |Γ⁻¹x| |Δb|, and Δb as a share of b."""
    rows = pools.tokens(pool)
    best = constructions.one_step_optimum(covariance, config.n, config.noise_std**2)
    inverse = best.w_kq[0, 0, :-1, :-1] * -best.w_pv[0, 0, -1, -1]
    mean = pool.y @ pool.x / config.m
    whole = answers(linear_attention.forward, best, rows, queries)

    def one(indices):
        gap = answers(linear_attention.forward, best, rows[indices], queries) - whole
        other = pool.y[indices] @ pool.x[indices] / config.n
        bound = jnp.linalg.norm(queries @ inverse, axis=1) * jnp.linalg.norm(other - mean)
        return (
            (jnp.abs(gap) / bound).max(),
            jnp.sqrt((gap**2).mean() / (whole**2).mean()),
            (jnp.sqrt((bound**2).mean() / (whole**2).mean())),
        )

    return jax.lax.map(one, chosen)
