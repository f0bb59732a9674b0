"""Sets that agree with a pool at its first checkpoints: twins, otherwise unlike it, and subsets."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching.subsets import first_checkpoints
from lsa_lab.selection import baselines, gradient_matching, prefix


def twins(config, pool, others, path, key):  # [m, e], [n, e], [C, d] -> [C+1, 2, n, e]
    """Sets with the pool's mean gradients at the first 0, 1, ..., C checkpoints of the path.

    Once with others' noise in y², and once with the pool's mean of y², or the least above it that a
    set can have. A set is √n Q Rᵀ with moment R Rᵀ and orthonormal Q [n, e].
    """
    moment, free = (rows.T @ rows / len(rows) for rows in (pool, others))
    turn = jnp.linalg.qr(jax.random.normal(key, (config.n, config.d + 1), pool.dtype))[0]
    noise = free[-1, -1] - free[-1, :-1] @ jnp.linalg.solve(free[:-1, :-1], free[:-1, -1])

    def rows(moment):
        return turn @ jnp.linalg.cholesky(moment).T * config.n**0.5

    def twin(count):
        if count == 0:
            return jnp.stack([rows(free)] * 2)
        h, b = matched_moments(moment, free, path[:count])
        least = b @ jnp.linalg.solve(h, b)
        squares = jnp.stack([least + noise, jnp.maximum(moment[-1, -1], least + noise / 10)])

        def add_square(square):
            top = jnp.concatenate([h, b[:, None]], axis=1)
            return rows(jnp.concatenate([top, jnp.concatenate([b, square[None]])[None]]))

        return jax.vmap(add_square)(squares)

    return jnp.stack([twin(count) for count in range(config.most + 1)])


def matched_moments(moment, free, path):  # [e, e] twice, [c, d] -> [d, d], [d]
    """Moments H' of x and b' of yx with the pool's mean gradients at c checkpoints w_c.

    These fix H'v = Hv for all v = w_c - w_1, and H'w_1 - b' = Hw_1 - b, H and b the pool's (derived
    here; docs/theory, "Checkpoints determine moments"). With V = [v ...] all such H' are

        H' = HV (VᵀHV)⁻¹ VᵀH + N,   NV = 0;   here N = H° - H°V (VᵀH°V)⁻¹ VᵀH°,

    H° that of the ``free`` set.
    """
    h, b, other = moment[:-1, :-1], moment[:-1, -1], free[:-1, :-1]
    new = other
    if len(path) > 1:
        v = jnp.linalg.qr((path[1:] - path[:1]).T)[0]
        new = fixed_part(h, v) + other - fixed_part(other, v)
    return new, b + (new - h) @ path[0]


def fixed_part(h, v):
    """HV (VᵀHV)⁻¹ VᵀH."""
    return h @ v @ jnp.linalg.solve(v.T @ h @ v, v.T @ h)


@partial(jax.jit, static_argnums=0)
def rescaled_subsets(config, pool, path):  # -> indices [2, n]
    """Matched at d + 1 checkpoints by whitened gradients, and by merely scaled ones: every entry in
    units of its own standard deviation, as it is where it does not vary, without a rotation."""
    gradients = prefix.linear_gradients(path, pool)
    (gradients,) = first_checkpoints(gradients, [config.d + 1], config.d)
    spread = gradients.std(0)
    scaled = gradients / jnp.where(spread > 0, spread, 1)[None]
    whitened = gradient_matching.match(gradients, config.n, whiten=True).indices
    return jnp.stack([whitened, gradient_matching.match(scaled, config.n).indices])


@partial(jax.jit, static_argnums=0)
def subsets(config, pool, path, key):  # -> indices [most + draws, n]
    """Matched to the first 1, 2, ... checkpoints, then random ones."""
    gradients = prefix.linear_gradients(path, pool)
    fewer = first_checkpoints(gradients, np.arange(1, config.most + 1), config.d)
    chosen = jax.vmap(lambda part: gradient_matching.match(part, config.n).indices)(fewer)
    random = baselines.random_subsets(key, config.m, config.n, config.random_draws)
    return jnp.concatenate([chosen, random])
