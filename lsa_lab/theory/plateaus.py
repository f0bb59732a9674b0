"""Training of one layer whose heads have separate keys, queries and values: plateaus of the loss.

The prompts and the loss are those of ``training_dynamics``. Head i has key and query m_i times the
i-th eigenvector p_i of Λ, and value m_i, so that A = Σ_i m_i³ p_i p_iᵀ. With
γ_i = (1 + 1/n) λ_i + (tr Λ + σ²)/n the heads on different eigenvectors grow without disturbing each
other, m_i' = λ_i² m_i² (1 - γ_i m_i³) (docs/theory, "Separate heads grow alone", "Plateaus";
derived here; agrees in outline with 2501.16265).
"""

import chex
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import Real, as_floats, check_at_least, check_eigenvalues, is_concrete
from lsa_lab.theory.domains import check
from lsa_lab.theory.training_dynamics import check_times, integrate


def plateaus(eigenvalues: Array, n: int, noise_var: Real = 0.0) -> Array:  # [d+1]
    """Return the losses ½ [tr Λ - Σ_{i<=k} λ_i²/γ_i], k = 0..d, at which training halts.

    The largest eigenvalue comes first. These are saddles of the flow, visible only from small
    weights and well separated eigenvalues. Raises ValueError if tr Λ + σ² is 0: no γ_i is positive.
    """
    chex.assert_rank(eigenvalues, 1, custom_message="eigenvalues of the covariance, [d]")
    ordered = jnp.sort(eigenvalues, descending=True)
    chex.assert_shape(noise_var, (), custom_message="noise_var is one number; use jax.vmap")
    trace = jnp.sum(ordered)
    if is_concrete(trace + noise_var) and trace + noise_var <= 0:
        raise ValueError("tr Λ + σ² = 0: nothing is learnt, and there is no plateau")
    shares = ordered / _gammas(ordered, n, noise_var)  # λ_i/γ_i
    # ½ [Σ_i λ_i (λ_i + tr Λ + σ²)/(n γ_i) + Σ_{i>k} λ_i²/γ_i], where nothing is subtracted
    lost = jnp.sum(shares * (ordered + trace + noise_var)) / n
    later = jnp.cumsum((ordered * shares)[::-1])[::-1]
    return (lost + jnp.pad(later, (0, 1))) / 2


def head_growth(sizes: Array, eigenvalues: Array, n: int, noise_var: Real = 0.0) -> Array:  # [d]
    """Return m_i' = λ_i² m_i² (1 - γ_i m_i³) at the sizes m_i [d]."""
    chex.assert_equal_shape([sizes, eigenvalues], custom_message="one head per eigenvalue, [d]")
    return _growth(0.0, sizes, (eigenvalues, _gammas(eigenvalues, n, noise_var)))


def solve_heads(
    times: Array,  # [m]
    eigenvalues: Array,  # [d]
    n: int,
    initial_sizes: Array,  # [d]
    noise_var: Real = 0.0,
    *,
    rtol: float = 1e-10,
    atol: float = 1e-10,
) -> Array:  # [m, d]
    """Solve ``head_growth`` for the sizes m_i at increasing times, from their values at time 0."""
    chex.assert_equal_shape([initial_sizes, eigenvalues], custom_message="one head per eigenvalue")
    times, initial_sizes = check_times(times, rtol), as_floats(initial_sizes)
    arguments = (eigenvalues, _gammas(eigenvalues, n, noise_var))
    return integrate(_growth, times, initial_sizes, arguments, rtol, atol)


def _growth(t: Real, sizes: Array, arguments: tuple[Array, Real]) -> Array:
    eigenvalues, gammas = arguments
    return (eigenvalues * sizes) ** 2 * (1 - gammas * sizes**3)


def _gammas(eigenvalues: Array, n: int, noise_var: Real) -> Array:
    check(noise_var=noise_var)
    check_eigenvalues(eigenvalues, "eigenvalues", "a covariance")
    n = check_at_least(n, "n")
    return (1 + 1 / n) * eigenvalues + (jnp.sum(eigenvalues) + noise_var) / n
