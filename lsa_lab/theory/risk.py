"""Exact excess risks of linear rules, and a bound for all of them that ignore directions.

X is [n, d] with independent N(0, 1) entries, y = Xw + ε with noise of variance σ², the query is
N(0, I), and the risk is E |ŵ - w|². A rule ŵ = g(H) Xᵀy/n with g a function of the spectrum of
H = XᵀX/n cannot tell a sparse w from a dense one: its risk depends on |w|² alone.
"""

import math

import chex
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import Real, as_floats, check_eigenvalues, check_positive
from lsa_lab.theory.domains import check, check_sizes
from lsa_lab.theory.wishart import SPLITS, wishart_quadrature


def ols(n: int, d: int, noise_var: Real) -> Real:  # []
    """Return the risk of least squares for n > d + 1, σ² d/(n - d - 1)  (classical).

    Raises ValueError for a smaller n: at n = d and n = d + 1 the risk is infinite with noise, and
    below least squares is not unique (docs/theory, "The risk of least squares").
    """
    n, d = check_sizes(n, d, noise_var)
    if n <= d + 1:
        advice = "use min_norm" if n < d - 1 else "it is infinite with noise"
        raise ValueError(f"n = {n}, d = {d}: the risk of least squares needs n > d + 1; {advice}")
    return noise_var * (d / (n - d - 1))


def min_norm(n: int, d: int, noise_var: Real, signal_norm_sq: Real = 1.0) -> Real:  # []
    """Return the risk of the shortest interpolator for n < d - 1,

        (1 - n/d) |w|² + σ² n/(d - n - 1)

    Raises ValueError for a larger n: from d - 1 to d + 1 the risk is infinite with noise, and above
    the interpolator is least squares (docs/theory, "The risk of least squares").
    """
    n, d = check_sizes(n, d, noise_var)
    check(signal_norm_sq=signal_norm_sq)
    if n >= d - 1:
        advice = "use ols" if n > d + 1 else "it is infinite with noise"
        raise ValueError(f"n = {n}, d = {d}: the risk of min_norm needs n < d - 1; {advice}")
    return (1 - n / d) * signal_norm_sq + noise_var * (n / (d - n - 1))


def gradient_descent(
    eigenvalues: Array,  # [d]  of H = XᵀX/n
    step_sizes: Array,  # [steps]
    n: int,
    noise_var: Real,
    signal_norm_sq: Real = 1.0,
) -> Array:  # [steps+1]
    """Return the risk, given X, after each step of w ← w + η_t Xᵀ(y - Xw)/n from w = 0.

    The estimator is the spectral filter g_t(H) Xᵀy/n with g_{t+1} = g_t + η_t (1 - h g_t), for
    constant η g_t = (1 - (1 - ηh)^t)/h. Averaged over the direction of w and the noise the risk is

        |w|² Σ_k (1 - h_k g_t(h_k))²/d + (σ²/n) Σ_k h_k g_t(h_k)²

    (derived here; docs/theory, "The risk of descent").
    """
    chex.assert_rank([eigenvalues, step_sizes], 1, custom_message="eigenvalues [d], steps [steps]")
    check_sizes(n, eigenvalues.shape[0], noise_var)
    check_eigenvalues(eigenvalues, "eigenvalues", "XᵀX/n")
    check(signal_norm_sq=signal_norm_sq)
    eigenvalues = as_floats(eigenvalues)
    filters = _filters(eigenvalues, step_sizes)
    bias = ((1 - eigenvalues[None] * filters) ** 2).mean(1)
    variance = (eigenvalues[None] * filters**2).sum(1) / n
    return signal_norm_sq * bias + noise_var * variance


@jax.jit
def _filters(eigenvalues: Array, step_sizes: Array) -> Array:  # [steps+1, d]
    """Return g_t at every eigenvalue after each step."""

    def step(filtered: Array, step_size: Array) -> tuple[Array, Array]:
        filtered = filtered + step_size * (1 - eigenvalues * filtered)
        return filtered, filtered

    first = jnp.zeros_like(eigenvalues)
    _, later = jax.lax.scan(step, first, step_sizes)
    return jnp.concatenate([first[None], later])


def rotation_invariant_bound(
    n: int, d: int, noise_var: float, signal_norm_sq: float = 1.0
) -> float:  # []
    """Return the least risk of any rule g(H) Xᵀy/n with g spectral, for every w of that length,

        (σ²/n) E tr(H + (σ²d/(n|w|²)) I)⁻¹

    Turn X by a random rotation: w becomes uniform on a sphere, its second moment is (|w|²/d) I, and
    ridge with penalty σ²d/(n|w|²) beside H is the best linear rule for that moment (derived here;
    docs/theory, "The rotation-invariant bound"). Computed on the host in float64, without sampling,
    to about 1e-13; not for use under jit.
    """
    n, d = check_sizes(n, d, noise_var)
    noise_var, signal_norm_sq = float(noise_var), float(signal_norm_sq)
    check_positive(signal_norm_sq, "signal_norm_sq")
    penalty = noise_var * d / signal_norm_sq
    splits = max(SPLITS, math.ceil(-math.log(penalty, 16))) if penalty > 0 else SPLITS
    eigenvalues, expected_counts = wishart_quadrature(n, d, splits)
    shrinkage = noise_var / (signal_norm_sq * eigenvalues + noise_var * d)
    unseen = max(d - n, 0) / d  # eigenvalues that are exactly zero, σ² divided out of each
    return signal_norm_sq * (float(expected_counts @ shrinkage) + unseen)
