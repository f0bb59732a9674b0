"""Least squares: without a penalty, and with a quadratic one."""

import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve

from lsa_lab.arguments import Real, admit, is_concrete, number
from lsa_lab.prompts import Prompt


def ols(prompt: Prompt) -> Array:  # [d]
    """The shortest of the minimisers of |y - Xw|²: w = X⁺ y.

    The pseudo-inverse X⁺ comes from the SVD, for any n, d and rank; singular values below
    10 max(n, d) eps times the largest count as zero. Differentiable where the rank is constant.
    """
    prompt = admit(prompt, factored=True)
    return jnp.linalg.pinv(prompt.x) @ prompt.y


def ridge(prompt: Prompt, penalty: Real) -> Array:  # [d]
    """The minimiser of |y - Xw|²/2n + penalty |w|²/2.

    w = (XᵀX/n + λI)⁻¹ Xᵀy/n  =  Xᵀ (XXᵀ + nλI)⁻¹ y, whichever system is smaller. A penalty of 0 is
    its limit, ``ols``. Where rank X < min(n, d) the rounding error is of the order eps/λ, relative
    to |H|: a tiny penalty is worse than none there, and a traced penalty of 0 gives NaN.
    """
    prompt = admit(prompt, factored=True)
    if is_concrete(penalty) and jnp.shape(penalty) == () and penalty == 0:
        return ols(prompt)
    advice = "a negative penalty has no minimiser"
    penalty = number(penalty, "penalty", prompt, advice, positive=False)
    x, y = prompt.x, prompt.y
    n, d = x.shape
    if n < d:
        return x.T @ solve(x @ x.T + n * penalty * jnp.eye(n, dtype=x.dtype), y, assume_a="pos")
    return solve(x.T @ x / n + penalty * jnp.eye(d, dtype=x.dtype), x.T @ y / n, assume_a="pos")
