"""How many heads one layer of linear attention needs to preprocess: d, and no fewer.

To every token the layer should write x̃ = diag(r) x, r = Xᵀy/n, or an invertible linear image of it.
Its output a is the cubic Σ N_{aβγc} S_{βγ} x_c in S = (1/n) Σ_i e_i e_iᵀ and the token's x, with

    N_{aβγc} = Σ_h written_h[a, β] queried_h[γ, c],

which as a matrix with rows (a, β) and columns (γ, c) has rank H at most. S is symmetric, hence only
N_{aβγc} + N_{aγβc} is determined, and the best antisymmetric part might have saved heads; it does
not: rank N ≥ d, by the slice rank of the diagonal tensor (derived here; docs/theory, "The head
lower bound").
"""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


def layer(d: int) -> tuple[Array, Array]:  # [d, d, e], [d, e, d]
    """d heads that preprocess exactly: head j queries x_j x_j and writes y to output j."""
    heads = np.arange(d)
    written = jnp.zeros((d, d, d + 1)).at[heads, heads, d].set(1)
    queried = jnp.zeros((d, d + 1, d)).at[heads, heads, heads].set(1)
    return written, queried


def coefficients(written: Array, queried: Array) -> Array:  # [H, d, e], [H, e, d] -> [d, e, e, d]
    """Coefficients of S_{βγ} x_c in output a for β < γ, halved at β = γ, where they stand twice.

    written: d rows of W_pv, one for each output. queried: the columns of W_kq that x meets.
    """
    num_heads, _, e = written.shape
    chex.assert_shape(
        [written, queried],
        [(num_heads, e - 1, e), (num_heads, e, e - 1)],
        custom_message="written is [H, d, e], queried [H, e, d], e = d + 1",
    )
    tensor = jnp.einsum("hab,hgc->abgc", written, queried)
    symmetric = tensor + tensor.swapaxes(1, 2)
    return symmetric * (1 - jnp.eye(e, dtype=tensor.dtype) / 2)[None, :, :, None]


def residual(written: Array, queried: Array) -> Array:  # []
    """Σ over a, c and β ≤ γ of (coefficient of S_{βγ} x_c - its value in r_a x_a)².

    r_a x_a = S_{ay} x_a has one coefficient, 1. Zero if and only if the layer preprocesses every
    prompt; d without any head, d - H if H heads serve a coordinate each. That is the least if no
    head reads S_yy: with the two parts of N that meet S_{by} of ranks r_1 and r_3, r_1 + r_3 ≤ H,
    what both projections P_1 and P_3 miss of the diagonal tensor is Σ_j (1 - P_1)_jj (1 - P_3)_jj ≥
    Σ_j (1 - P_1 - P_3)_jj = d - r_1 - r_3 (derived here). ``smallest_residuals`` finds no less.
    """
    difference = coefficients(written, queried)
    a, e = np.arange(written.shape[1]), written.shape[2]
    difference = difference.at[a, a, e - 1, a].add(-1).at[a, e - 1, a, a].add(-1)
    once = jnp.triu(jnp.ones((e, e), difference.dtype))
    return jnp.sum(once[None, :, :, None] * difference**2)


def smallest_residuals(d: int, num_heads: int, restarts: int, seed: int = 0) -> np.ndarray:
    """The residual at which BFGS ends from each of ``restarts`` Gaussian starts, ascending.

    An upper bound on the smallest one, in float64 if JAX has it.
    """
    if d < 1 or num_heads < 1 or restarts < 1:
        raise ValueError(
            f"d = {d}, num_heads = {num_heads}, restarts = {restarts}: all are at least 1"
        )
    from scipy.optimize import minimize

    objective = _objective(d, num_heads)
    rng = np.random.default_rng(seed)
    starts = rng.normal(scale=0.5, size=(restarts, 2 * num_heads * d * (d + 1)))
    options = {"gtol": 1e-7}
    ends = [
        minimize(objective, start, jac=True, method="BFGS", options=options).fun for start in starts
    ]
    return np.sort(ends)


def _objective(d: int, num_heads: int) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """The residual and its gradient as a function of one vector, as scipy wants them."""

    @jax.jit
    @jax.value_and_grad
    def of_vector(vector: Array) -> Array:
        written, queried = jnp.split(vector, 2)
        return residual(written.reshape(-1, d, d + 1), queried.reshape(-1, d + 1, d))

    def evaluate(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = of_vector(vector)
        return float(value), np.asarray(slope, np.float64)

    return evaluate
