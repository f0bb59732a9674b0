"""Exact excess risks of linear rules, and a bound for all of them that ignore directions.

Everywhere X is [n, d] with independent N(0, 1) entries, y = Xw + ε with noise of variance σ², the
query is N(0, I), and the risk is E |ŵ - w|². A rule ŵ = g(H) Xᵀy/n with g a function of the
spectrum of H = XᵀX/n cannot tell a sparse w from a dense one: its risk depends on |w|² alone.
"""

import chex
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import Real, as_floats, check_eigenvalues, check_spread
from lsa_lab.theory.wishart import rotation_invariant_bound, sizes

__all__ = ["gradient_descent", "min_norm", "ols", "rotation_invariant_bound"]


def ols(n: int, d: int, noise_var: Real) -> Real:  # []
    """Least squares, n > d + 1: σ² d / (n - d - 1)  (classical).

    docs/theory, "The risk of least squares".
    At n = d and n = d + 1 it is infinite with noise; below, least squares is not unique.
    """
    n, d = sizes(n, d, noise_var)
    if n <= d + 1:
        risk = "is infinite with noise and 0 without"
        what = risk if n >= d else "is not defined (use min_norm if n < d - 1)"
        raise ValueError(f"n = {n}, d = {d}: the risk of least squares {what}; it needs n > d + 1")
    return noise_var * (d / (n - d - 1))


def min_norm(n: int, d: int, noise_var: Real, signal_norm_sq: Real = 1.0) -> Real:
    """The shortest interpolator, n < d - 1: (1 - n/d) |w|² + σ² n / (d - n - 1).

    docs/theory, "The risk of least squares".
    At n = d - 1, d and d + 1 it is infinite with noise; above, this is least squares.
    """
    n, d = sizes(n, d, noise_var)
    check_spread(signal_norm_sq, "signal_norm_sq", "a squared length")
    if n >= d - 1:
        risk = "is infinite with noise and max(1 - n/d, 0) |w|² without"
        what = risk if n <= d + 1 else "is that of least squares: use ols"
        raise ValueError(f"n = {n}, d = {d}: the risk of min-norm {what}; it needs n < d - 1")
    return (1 - n / d) * signal_norm_sq + noise_var * (n / (d - n - 1))


def gradient_descent(
    eigenvalues: Array,  # [d]  of H = XᵀX/n
    step_sizes: Array,  # [steps]
    n: int,
    noise_var: Real,
    signal_norm_sq: Real = 1.0,
) -> Array:  # [steps+1]
    """The risk, given X, after each step of w ← w + η_t Xᵀ(y - Xw)/n from w = 0.

    The estimator is the spectral filter g_t(H) Xᵀy/n with g_{t+1} = g_t + η_t (1 - h g_t), for
    constant η g_t = (1 - (1 - ηh)^t)/h. Averaged over the direction of w and the noise the risk is
    |w|² Σ_k (1 - h_k g_t(h_k))²/d + (σ²/n) Σ_k h_k g_t(h_k)²  (derived here; docs/theory, "The risk
    of descent").
    """
    chex.assert_rank([eigenvalues, step_sizes], 1, custom_message="eigenvalues [d], steps [steps]")
    sizes(n, eigenvalues.shape[0], noise_var)
    check_eigenvalues(eigenvalues, "eigenvalues", "XᵀX/n")
    check_spread(signal_norm_sq, "signal_norm_sq", "a squared length")
    eigenvalues = as_floats(eigenvalues)
    filters = _filters(eigenvalues, step_sizes)
    bias = ((1 - eigenvalues[None] * filters) ** 2).mean(1)
    variance = (eigenvalues[None] * filters**2).sum(1) / n
    return signal_norm_sq * bias + noise_var * variance


@jax.jit
def _filters(eigenvalues: Array, step_sizes: Array) -> Array:  # [steps+1, d]
    """g_t at every eigenvalue after each step."""

    def step(filtered: Array, step_size: Array) -> tuple[Array, Array]:
        filtered = filtered + step_size * (1 - eigenvalues * filtered)
        return filtered, filtered

    first = jnp.zeros_like(eigenvalues)
    _, later = jax.lax.scan(step, first, step_sizes)
    return jnp.concatenate([first[None], later])
