"""The best single layer of linear attention, its risk, and its risk on another task.

The layer predicts ŷ = bᵀ A x_query with b = Xᵀy/n, as ``constructions.preconditioned(A[None])``;
x ~ N(0, Λ) and y_i = w·x_i + ε_i. Only the second moments W and σ² of w and ε enter, so w may be
sparse or have a mean. Risks are excess risks: the target is w·x_query, without noise and without a
factor 1/2.
"""

import chex
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import Real, check_at_least, check_symmetric, is_concrete
from lsa_lab.theory.domains import check


def one_layer(
    covariance: Array, task_covariance: Array, n: int, noise_var: Real
) -> Array:  # [d, d]
    """Return the matrix A* of least risk; W may be singular.

    A* = S⁻¹ C = [(1 + 1/n) WΛ + ((tr WΛ + σ²)/n) I]⁻¹ W; for W = I it is Γ⁻¹, Γ = (1 + 1/n) Λ +
    ((tr Λ + σ²)/n) I (special cases: Zhang et al. 2306.09927, Ahn et al. 2306.00297, Mahankali et
    al. 2307.03576; this form is derived here, docs/theory, "The one-layer optimum"). Raises
    ValueError if tr WΛ + σ² is 0: no label differs from 0, and any A is the best.
    """
    n = _check(covariance, n, noise_var, task_covariance=task_covariance)
    product = task_covariance @ covariance
    identity = jnp.eye(covariance.shape[0], dtype=jnp.result_type(covariance))
    spread = (jnp.trace(product) + noise_var) / n
    if is_concrete(spread) and spread <= 0:
        raise ValueError("tr WΛ + σ² = 0: every label is 0, and no layer is better than another")
    return jnp.linalg.solve((1 + 1 / n) * product + spread * identity, task_covariance)


def label_moments(
    covariance: Array, task_covariance: Array, n: int, noise_var: Real
) -> tuple[Array, Array]:  # [d, d], [d, d]
    """Return S = E b bᵀ and C = E b wᵀ, which determine the risk of every linear rule in b.

    S = (1 + 1/n) ΛWΛ + ((tr WΛ + σ²)/n) Λ,  C = ΛW (docs/theory, "The risk of one layer").
    """
    n = _check(covariance, n, noise_var, task_covariance=task_covariance)
    with_weights = covariance @ task_covariance
    label_var = jnp.trace(with_weights) + noise_var
    outer = (1 + 1 / n) * with_weights @ covariance + (label_var / n) * covariance
    return outer, with_weights


def one_layer_risk(
    A: Array, covariance: Array, task_covariance: Array, n: int, noise_var: Real
) -> Array:  # []
    """Return R(A) = tr(Λ Aᵀ S A) - 2 tr(Λ Aᵀ C) + tr(ΛW).

    docs/theory, "The risk of one layer".
    """
    return shifted_risk(A, covariance, covariance, task_covariance, n, noise_var)


def shifted_risk(
    A: Array,
    covariance: Array,
    query_covariance: Array,
    task_covariance: Array,
    n: int,
    noise_var: Real,
) -> Array:  # []
    """Return the risk of any map A on prompts of another task and another length,

        R = tr(Λ_q Aᵀ S A) - 2 tr(Λ_q Aᵀ Λ'W) + tr(Λ_q W),  S = E b bᵀ of (Λ', W, n, σ²)

    A = Γ⁻¹, Λ' = Λ: Zhang et al. 2306.09927 (derived here; docs/theory, "Risk under shift").
    Computed as the floor plus 1/n times tr(Λ_q Aᵀ (Λ'WΛ' + (tr WΛ' + σ²) Λ') A), where nothing is
    subtracted: for large n the three terms nearly cancel.

    Args:
        A: the layer's map [d, d].
        covariance: Λ' [d, d], of the demonstrations.
        query_covariance: Λ_q [d, d].
        task_covariance: W [d, d], the second moment of tasks; aaᵀ for one task a.
        n: demonstrations in the test prompt.
        noise_var: σ².

    Returns:
        The risk.

    Raises:
        ValueError: a matrix other than A is not a covariance, or a number is out of range.
    """
    n = _check(covariance, n, noise_var, A=A, query_covariance=query_covariance)
    floor = shifted_risk_floor(A, covariance, query_covariance, task_covariance)
    with_weights = covariance @ task_covariance
    spread = with_weights @ covariance + (jnp.trace(with_weights) + noise_var) * covariance
    return floor + jnp.trace(query_covariance @ A.T @ spread @ A) / n


def shifted_risk_floor(
    A: Array, covariance: Array, query_covariance: Array, task_covariance: Array
) -> Array:  # []
    """Return the limit of ``shifted_risk`` for many test demonstrations,

        tr[Λ_q (AᵀΛ' - I) W (Λ'A - I)]

    which training sets, at any noise; the other part of the risk is proportional to 1/n (derived
    here; docs/theory, "The floor under shift").
    """
    others = {"query_covariance": query_covariance, "task_covariance": task_covariance}
    _check(covariance, 1, 0.0, A=A, **others)
    error = covariance @ A - jnp.eye(covariance.shape[0], dtype=jnp.result_type(covariance))
    return jnp.trace(query_covariance @ error.T @ task_covariance @ error)


def rank_limited_risk(
    covariance: Array, task_covariance: Array, n: int, noise_var: Real
) -> Array:  # [d+1]
    """Return the least risk of one layer whose heads have total rank k, for k = 0, ..., d.

    R(A) - R(A*) = |S^{1/2} (A - A*) Λ^{1/2}|_F², so the best A of rank k is a truncated singular
    value decomposition (Eckart-Young) and min R = tr ΛW - Σ_{i ≤ k} μ_i = R(A*) + Σ_{i > k} μ_i, μ
    the eigenvalues of Λ^{1/2} WΛA* Λ^{1/2} in descending order; W = I, σ = 0: μ_i = λ_i²/γ_i
    (derived here; docs/theory, "The rank limit").
    """
    best = one_layer(covariance, task_covariance, n, noise_var)
    values, vectors = jnp.linalg.eigh(covariance)
    root = vectors * jnp.sqrt(jnp.maximum(values, 0))[None]  # root rootᵀ = Λ
    gain = root.T @ task_covariance @ covariance @ best @ root
    gains = jnp.maximum(jnp.linalg.eigvalsh((gain + gain.T) / 2), 0)  # ascending
    missed = jnp.pad(jnp.cumsum(gains), (1, 0))[::-1]
    return one_layer_risk(best, covariance, task_covariance, n, noise_var) + missed


def _check(covariance: Array, n: int, noise_var: Real, **matrices: Array) -> int:  # n
    chex.assert_rank(covariance, 2, custom_message="covariance is one matrix [d, d]; use jax.vmap")
    d = covariance.shape[0]
    for name, matrix in {"covariance": covariance, **matrices}.items():
        chex.assert_shape(
            matrix, (d, d), custom_message=f"{name} is [d, d], d = {d} as in covariance"
        )
        if name != "A":
            check_symmetric(matrix, name)
    chex.assert_shape(noise_var, (), custom_message="noise_var is one number; use jax.vmap")
    check(noise_var=noise_var)
    return check_at_least(n, "n")
