"""Gradients in which all directions of a pool count alike, as far as so few demonstrations can.

Plain matching weighs a direction by its size. With the centred rows c_i = Σ_a u_ia s_a v_a,

    c̃_ia = √m u_ia s_a / √(s_a² + λ),    Σ_a s_a² / (s_a² + λ) = min(rank, n - 1),    λ ≥ 0,

which is the whole whitening, λ = 0, where n demonstrations suffice for it: in r dimensions a mean
of the pool is a weighted mean of r + 1 of its rows (Carathéodory), so that n of them can serve
n - 1 directions. With more, a pool whitened whole would be no help, and with as many as candidates
but one, where its rows are the corners of a simplex, all subsets are alike; the ridge λ leaves as
many effective directions as can be served and the rest near their own size (derived here;
docs/theory, "Whitened gradients").
"""

import functools

import chex
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_finite, check_size
from lsa_lab.estimators.least_squares import svd

_HALVINGS = 200  # of the interval of log λ: to the last bit


def whitened(gradients: ArrayLike, size: int) -> Array:  # [m, p] -> [m, min(m, p)]
    """c̃ for subsets of ``size``: ``match(gradients, size, whiten=True)`` matches these rows.

    Their gap is a number without unit: its mean square over all random subsets is
    (1 - n/m) m/(m - 1) · min(rank, max(n - 1, 1))/n: near 1 where n is large, small beside m, and
    the rank no smaller than n. ``certify`` of these rows judges rivals.
    """
    gradients = jnp.asarray(gradients)
    chex.assert_rank(gradients, 2, custom_message="gradients are [m, p], one row a candidate")
    check_finite(gradients, "gradients")
    check_size(size, len(gradients), "candidates")
    return _whitened(gradients, size)


@functools.partial(jax.jit, static_argnames="size")
def _whitened(gradients: Array, size: int) -> Array:
    m, p = gradients.shape
    largest = jnp.abs(gradients).max()
    rows = gradients / jnp.where(largest > 0, largest, 1)
    centred = rows - rows.mean(0)[None]
    left, values, _ = svd(centred)
    limits = jnp.finfo(values.dtype)
    rounded = m**0.5 + p**0.5  # the norm of the rounding of rows near 1, in eps
    noise = limits.eps * jnp.maximum(4 * min(m, p) * values[0], rounded)
    squares = jnp.where(values > noise, values / jnp.maximum(values[0], limits.tiny), 0) ** 2
    shrunk = squares / jnp.where(squares > 0, squares + _ridge(squares, max(size - 1, 1)), 1)
    return m**0.5 * left * jnp.sqrt(shrunk)[None]


def _ridge(squares: Array, directions: int) -> Array:  # [r] -> []
    """λ with Σ s²/(s² + λ) = ``directions``, 0 where no more are there: by bisection of log λ."""

    def effective(ridge: Array) -> Array:
        return (squares / jnp.where(squares > 0, squares + ridge, 1)).sum()

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = jnp.sqrt(low * high)
        above = effective(middle) > directions
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    least = jnp.asarray(jnp.finfo(squares.dtype).eps ** 2, squares.dtype)
    start = least, jnp.maximum(squares.sum() / directions, least)  # s²/(s² + λ) <= s²/λ
    ridge = jax.lax.fori_loop(0, _HALVINGS, halve, start)[1]
    return jnp.where((squares > 0).sum() > directions, ridge, 0)
