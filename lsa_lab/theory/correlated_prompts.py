"""The learning curve of linear attention on prompts whose covariates are correlated.

Covariates have E x_i x_jᵀ = c_|i-j| I along the prompt; the query is independent of them.
Everything else is as in ``learning_curves``.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import Real, is_concrete
from lsa_lab.theory.domains import check_sizes


def additive(n: int, d: int, noise_var: Real, correlation: ArrayLike) -> Array:  # [n+1]
    """Return the curve at the best scale for c_k = ``correlation`` [lags], c_0 = 1, 0 beyond:

        r_t = 1 - 1/(1 + (d + 1)/t_eff + dσ²/t),  t_eff = t/(1 + 2 Σ_{0<k<t} (1 - k/t) c_k²)

    Interference counts t_eff demonstrations, and noise counts t (derived here; docs/theory,
    "Correlated prompts").
    """
    n, d = check_sizes(n, d, noise_var, least=0)
    counts = jnp.arange(1.0, n + 1)
    noise = d * jnp.asarray(noise_var, float)
    per_time = (d + 1) * _sum_squares(n, correlation) / counts**2 + noise / counts
    return jnp.concatenate([jnp.ones(1), per_time / (1 + per_time)])


def _sum_squares(n: int, correlation: ArrayLike) -> Array:  # [n]
    """Return Σ_{i,j<t} c_|i-j|² for t = 1, ..., n."""
    lags = jnp.asarray(correlation, float)
    if lags.ndim != 1 or not lags.size:
        raise ValueError(f"correlation has shape {lags.shape}: expected [lags], c_0 = 1 first")
    if is_concrete(lags) and not (lags[0] == 1 and np.all(np.abs(np.asarray(lags)) <= 1)):
        raise ValueError("correlation: c_0 is 1, and no other is larger")
    squares = jnp.pad(lags[:n] ** 2, (0, max(n - lags.size, 0)))
    return jnp.cumsum(2 * jnp.cumsum(squares) - squares[:1])
