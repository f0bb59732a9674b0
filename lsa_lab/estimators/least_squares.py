"""Least squares: without a penalty, and with a quadratic one."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve

from lsa_lab.arguments import Real, check_number, check_prompt, is_concrete
from lsa_lab.prompts import Prompt
from lsa_lab.scaling import scale_by_power, scale_near_one

_ROUNDING = 4  # singular values up to 4 min(n, d) eps count as 0; rounding alone gave 1.4


def ols(prompt: Prompt) -> Array:  # [d]
    """Return the shortest of the minimisers of |y - Xw|²: w = X⁺ y.

    X⁺ is ``pseudo_inverse``, for any n, d and rank. Differentiable where the rank is constant.
    """
    prompt = check_prompt(prompt, factored=True)
    return pseudo_inverse(prompt.x) @ prompt.y


def ridge(prompt: Prompt, penalty: Real) -> Array:  # [d]
    """Return the minimiser of |y - Xw|²/2n + penalty |w|²/2.

    w = (XᵀX/n + λI)⁻¹ Xᵀy/n  =  Xᵀ (XXᵀ + nλI)⁻¹ y, whichever system is smaller. A penalty of 0
    gives the limit, ``ols``. Where rank X < min(n, d) the rounding error is of the order eps/λ,
    relative to |H|: a tiny penalty is worse than 0 there, and a traced penalty of 0 gives NaN.
    Covariates and labels may have any unit; for n ≥ d each column may have a different one.
    """
    prompt = check_prompt(prompt, factored=True)
    advice = "a negative penalty has no minimiser"
    level = check_number(penalty, "penalty", prompt, advice, positive=False)
    if is_concrete(penalty) and np.asarray(penalty).astype(level.dtype) == 0:
        return ols(prompt)
    x, (y, y_exponent) = prompt.x, scale_near_one(prompt.y)
    n, d = x.shape
    # In these units no entry and no √λ is above 1, and one of them is 1/2 or more in each column.
    root = jnp.frexp(jnp.sqrt(jax.lax.stop_gradient(level)))[1]
    columns = scale_near_one(x, 0 if n >= d else None)[1].reshape(-1)
    exponents = jnp.maximum(columns, root)  # [d], or [1]
    x = scale_by_power(x, -exponents[None])
    level = scale_by_power(jnp.broadcast_to(level, exponents.shape), -2 * exponents)
    if n < d:
        gram = x @ x.T + n * level[None] * jnp.eye(n, dtype=x.dtype)
        weights = x.T @ solve(gram, y, assume_a="pos")
    else:
        weights = solve(x.T @ x / n + jnp.diag(level), x.T @ y / n, assume_a="pos")
    return scale_by_power(weights, y_exponent - exponents)


@jax.custom_jvp
@jax.jit
@jax.default_matmul_precision("highest")
def pseudo_inverse(x: Array) -> Array:  # [n, d] -> [d, n]
    """Return X⁺, X of the rank that ``column_space`` finds.

    With X = ZD, D the scale of its columns, D⁻¹Z⁺ gives a solution. Its part in the row space of
    X, the span of DV for the right singular vectors V of Z, is the shortest one: X⁺.
    """
    left, values, right, kept, exponents = column_space(x)
    inverse = jnp.where(kept, 1 / jnp.where(kept, values, 1), 0)
    solution = scale_by_power((inverse[:, None] * right).T @ left.T, -exponents[:, None])

    def shorten() -> Array:
        order = jnp.argsort(-exponents)  # QR keeps the digits of small rows below large ones
        rows = scale_by_power(right.T, (exponents - exponents.max())[:, None])[order]
        basis = jnp.linalg.qr(jnp.where(kept[None], rows, 0))[0]
        basis = jnp.zeros_like(basis).at[order].set(jnp.where(kept[None], basis, 0))
        return basis @ (basis.T @ solution)

    return jax.lax.cond(kept.sum() < x.shape[1], shorten, lambda: solution)


@pseudo_inverse.defjvp
@jax.default_matmul_precision("highest")
def _pseudo_inverse_derivative(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Array]:
    """dP = -P dX P + P Pᵀ dXᵀ (I - XP) + (I - PX) dXᵀ Pᵀ P (Golub and Pereyra 1973)."""
    (x,), (moved,) = primals, tangents
    p = pseudo_inverse(x)
    left, right = p @ (p.T @ moved.T), (moved.T @ p.T) @ p
    return p, left - (left @ x) @ p + right - p @ (x @ right) - p @ moved @ p


@jax.jit
def column_space(x: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Return U [n, r], s [r], Vᵀ [r, d], r = min(n, d), of X with columns scaled by 2^-k, a mask
    of the s that exceed rounding [r], and k [d].

    The cut-off, 4 min(n, d) eps of the largest, does not grow with the rows, and a column counts
    for its direction, whatever its size. NaN stays NaN.
    """
    scaled, exponents = scale_near_one(x, 0)
    left, values, right = svd(scaled)
    kept = ~(values <= _ROUNDING * min(x.shape) * jnp.finfo(values.dtype).eps * values[0])
    return jnp.where(kept[None], left, 0), values, right, kept, exponents.reshape(-1)


def svd(x: Array) -> tuple[Array, Array, Array]:  # [n, d] -> [n, r], [r], [r, d], r = min(n, d)
    """Return the thin SVD by divide and conquer, or by QR iterations where that fails.

    The first takes an eighth of the time at [2 000, 512] and fails on some repeated rows. Under
    ``vmap`` both run.
    """

    def decompose(algorithm: jax.lax.linalg.SvdAlgorithm) -> tuple[Array, Array, Array]:
        left, values, right = jax.lax.linalg.svd(x, full_matrices=False, algorithm=algorithm)
        return left, values, right

    algorithms = jax.lax.linalg.SvdAlgorithm
    first = decompose(algorithms.DEFAULT)
    return jax.lax.cond(
        jnp.isfinite(first[1]).all(), lambda: first, lambda: decompose(algorithms.QR)
    )
