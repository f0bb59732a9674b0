"""Bounds on the difference between a subset and its pool, from the whitened objective.

With the pool's covariance C of the gradients and the difference δ of the two means, the objective
is ω = (δᵀ C⁺ δ)^{1/2}: the largest deviation of any linear statistic of the gradients, in standard
deviations of the pool. Gradients of the linear proxy at d + 1 affinely independent checkpoints see
every quadratic statistic of x and yx, so that with H = XᵀX/m and z = H^{-1/2} x

    |H^{-1/2} (H_S - H) H^{-1/2}|_F ≤ κ ω,    κ² = λ_max(Cov(z zᵀ)),
    |ḡ_S(w) - ḡ(w)|                 ≤ ω λ_max(Cov(g(w)))^{1/2},

whatever the checkpoints were (derived here; docs/theory, "The whitened gap bound").
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import as_floats
from lsa_lab.theory.domains import check


def moment_spread(x: Array) -> Array:  # [m, d] -> []
    """Return κ, the largest standard deviation of zᵀBz over symmetric B of Frobenius norm 1.

    It is √2 for a large Gaussian pool; for heavy tails as large as their fourth moments.
    """
    chex.assert_rank(x, 2)
    z = _white(as_floats(x))
    rows, columns = np.triu_indices(x.shape[1])
    weights = np.where(rows == columns, 1, np.sqrt(2)).astype(z.dtype)
    return _largest_deviation(z[:, rows] * z[:, columns] * weights[None])


def descent_gap(
    x: Array, y: Array, step_sizes: Array, objective: Array
) -> Array:  # [m, d] -> [L+1]
    """Return a bound on |w_l(S) - w_l(pool)| after l = 0, ..., L steps w ← w + η Xᵀ(y - Xw)/n.

        b_{l+1} = (1 - η_l μ) b_l + η_l ω λ_max(Cov(g(w_l)))^{1/2},    μ = (1 - κω) λ_min(H),

    w_l is the pool's own path from 0. The bound holds if κω < 1 and η_l (1 + κω) λ_max(H) ≤ 1; it
    is infinite otherwise. For any depth it is at most ω max_l λ_max(Cov(g(w_l)))^{1/2} / μ.
    """
    chex.assert_rank([x, y, step_sizes], [2, 1, 1])
    check(objective=objective)
    return _descent_gap(x, y, step_sizes, objective)


@jax.jit
def _descent_gap(x: Array, y: Array, step_sizes: Array, objective: Array) -> Array:  # [L+1]
    moment, correlation = x.T @ x / len(x), y @ x / len(x)
    ends = jnp.linalg.eigvalsh(moment)[jnp.array([0, -1])]
    share = moment_spread(x) * objective
    slowest, fastest = (1 - share) * ends[0], (1 + share) * ends[1]

    def step(state: tuple[Array, Array], size: Array) -> tuple[tuple[Array, Array], Array]:
        w, bound = state
        spread = _largest_deviation((x @ w - y)[:, None] * x)
        bound = (1 - size * slowest) * bound + size * objective * spread
        return (w + size * (correlation - moment @ w), bound), bound

    start = jnp.zeros_like(correlation), jnp.zeros_like(share)
    bounds = jnp.concatenate([start[1][None], jax.lax.scan(step, start, step_sizes)[1]])
    holds = (share < 1) & (step_sizes * fastest <= 1).all() & (step_sizes >= 0).all()
    return jnp.where(holds, bounds, jnp.inf)


def least_squares_gap(x: Array, y: Array, objective: Array) -> Array:  # [m, d], [m], [] -> []
    """Return a bound on the root of (w_S - w)ᵀ H (w_S - w), w_S and w the least-squares solutions.

        ω s / (1 - κω),    s² = λ_max(Cov(z (y - w·x)))

    s is σ for noise of that size: nothing depends on the units of x. It is infinite if κω ≥ 1.
    """
    chex.assert_rank([x, y], [2, 1])
    check(objective=objective)
    z = _white(x)
    residuals = y - z @ (y @ z / len(x))
    share = moment_spread(x) * objective
    bound = objective * _largest_deviation(z * residuals[:, None]) / (1 - share)
    return jnp.where(share < 1, bound, jnp.inf)


def _white(x: Array) -> Array:  # [m, d] -> [m, d]
    """Return H^{-1/2} x of every row up to a rotation: √m Q of x = QR, which squares nothing."""
    m, d = x.shape
    if m < d:
        raise ValueError(f"x has {m} rows of width {d}: H = XᵀX/m has no inverse; give d or more")
    return len(x) ** 0.5 * jnp.linalg.qr(x)[0]


def _largest_deviation(rows: Array) -> Array:  # [m, q] -> []
    """Return the largest standard deviation of u·row over unit vectors u."""
    centred = rows - rows.mean(0)[None]
    return jnp.linalg.norm(centred, ord=2) / len(rows) ** 0.5
