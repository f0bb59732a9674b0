"""Gradients in which all directions of a pool count alike, as far as n candidates can serve them.

Plain matching weighs a direction by its size. With the centred rows c_i = Σ_a u_ia s_a v_a,

    c̃_ia = √m u_ia s_a / √(s_a² + λ),    Σ_a s_a² / (s_a² + λ) = min(rank, n - 1),    λ ≥ 0.

λ = 0 is the whole whitening. In r dimensions a mean of the pool is a weighted mean of r + 1 of its
rows (Carathéodory), so n of them can serve n - 1 directions; the ridge λ leaves as many effective
directions as that and the others near their own size (derived here; docs/theory, "Whitened
gradients"). A pool of m rows that is whitened whole, with n = m - 1, has rows at the corners of a
simplex, and all its subsets are alike.
"""

import functools

import chex
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_finite, check_size
from lsa_lab.estimators.least_squares import svd
from lsa_lab.scaling import scale_near_one

_HALVINGS = 200  # of the interval of log λ: to the last bit


def whiten_gradients(gradients: ArrayLike, size: int) -> Array:  # [m, p] -> [m, min(m, p)]
    """Return the whitened gradients c̃, which ``match(gradients, size, whiten=True)`` matches.

    Their gap has no unit. Its mean square over all random subsets is
    (1 - n/m) m/(m - 1) · min(rank, max(n - 1, 1))/n.
    """
    gradients = jnp.asarray(gradients)
    chex.assert_rank(gradients, 2, custom_message="gradients are [m, p], one row a candidate")
    check_finite(gradients, "gradients")
    check_size(size, len(gradients), "candidates")
    return _whiten(gradients, size)


@functools.partial(jax.jit, static_argnames="size")
def _whiten(gradients: Array, size: int) -> Array:
    m, p = gradients.shape
    rows = scale_near_one(gradients)[0]
    left, values, _ = svd(rows - rows.mean(0)[None])
    limits = jnp.finfo(values.dtype)
    rounding = m**0.5 + p**0.5  # the norm of the rounding of rows near 1, in eps
    noise = limits.eps * jnp.maximum(4 * min(m, p) * values[0], rounding)
    squares = jnp.where(values > noise, values / jnp.maximum(values[0], limits.tiny), 0) ** 2
    ridge = _solve_ridge(squares, max(size - 1, 1))
    shrunk = squares / jnp.where(squares > 0, squares + ridge, 1)
    return m**0.5 * left * jnp.sqrt(shrunk)[None]


def _solve_ridge(squares: Array, directions: int) -> Array:  # [r] -> []
    """Return λ with Σ s²/(s² + λ) = ``directions``, or 0 if the rank is no larger than that."""

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = jnp.sqrt(low * high)
        effective = (squares / jnp.where(squares > 0, squares + middle, 1)).sum()
        above = effective > directions
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    least = jnp.asarray(jnp.finfo(squares.dtype).eps ** 2, squares.dtype)
    start = least, jnp.maximum(squares.sum() / directions, least)  # s²/(s² + λ) <= s²/λ
    ridge = jax.lax.fori_loop(0, _HALVINGS, halve, start)[1]
    return jnp.where((squares > 0).sum() > directions, ridge, 0)
