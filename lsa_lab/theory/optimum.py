"""The best single layer of linear attention, its risk, and its risk when the test task is another.

Everywhere the prediction is ŷ = bᵀ A x_query with b = Xᵀy/n, which is what
``constructions.preconditioned(A[None])`` computes; x ~ N(0, Λ), y_i = w·x_i + ε_i, and of w and ε
only the second moments W and σ² enter, so w may be sparse or have a mean. Risks are excess risks:
the target is w·x_query, without noise and without a factor 1/2.
"""

import chex
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import Real, check_at_least, check_symmetric, check_variance, is_concrete


def one_layer(
    covariance: Array, task_covariance: Array, n: int, noise_var: Real
) -> Array:  # [d, d]
    """The matrix A* of least risk, with no inverse of W, which may be singular.

    A* = S⁻¹ C = [(1 + 1/n) WΛ + ((tr WΛ + σ²)/n) I]⁻¹ W; for W = I it is Γ⁻¹, Γ = (1 + 1/n) Λ +
    ((tr Λ + σ²)/n) I (special cases: Zhang et al. 2306.09927, Ahn et al. 2306.00297, Mahankali et
    al. 2307.03576; this form is derived here, docs/theory, "The one-layer optimum"). Raises
    ValueError where tr WΛ + σ² is seen to be 0: no label differs from 0, and any A is the best.
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
    """S = E b bᵀ and C = E b wᵀ, all that a linear rule in b needs to know of the prompts.

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
    """R(A) = tr(Λ Aᵀ S A) - 2 tr(Λ Aᵀ C) + tr(ΛW)  (docs/theory, "The risk of one layer")."""
    return shifted_risk(A, covariance, covariance, task_covariance, n, noise_var)


def shifted_risk(
    A: Array,
    covariance: Array,
    query_covariance: Array,
    task_covariance: Array,
    n: int,
    noise_var: Real,
) -> Array:  # []
    """The risk of a map A, trained anywhere, on prompts of another task and another length.

    R = tr(Λ_q Aᵀ S A) - 2 tr(Λ_q Aᵀ Λ'W) + tr(Λ_q W) with S of (Λ', W, n, σ²): demonstrations from
    Λ' (``covariance``), query from Λ_q, task second moment W (aaᵀ for one task a), n demonstrations
    in the test prompt. A = Γ⁻¹, Λ' = Λ: Zhang et al. 2306.09927 (derived here; docs/theory, "Risk
    under shift"). Computed as its floor and 1/n times tr(Λ_q Aᵀ (Λ'WΛ' + (tr WΛ' + σ²) Λ') A), of
    which nothing is subtracted: for large n the three terms nearly cancel.
    """
    n = _check(covariance, n, noise_var, A=A, query_covariance=query_covariance)
    floor = shifted_risk_floor(A, covariance, query_covariance, task_covariance)
    with_weights = covariance @ task_covariance
    spread = with_weights @ covariance + (jnp.trace(with_weights) + noise_var) * covariance
    return floor + jnp.trace(query_covariance @ A.T @ spread @ A) / n


def shifted_risk_floor(
    A: Array, covariance: Array, query_covariance: Array, task_covariance: Array
) -> Array:  # []
    """What is left of ``shifted_risk`` with infinitely many test demonstrations.

    tr[Λ_q (AᵀΛ' - I) W (Λ'A - I)]: a floor set by training, at any noise; the rest of the risk is
    proportional to 1/n (derived here; docs/theory, "The floor under shift").
    """
    others = {"query_covariance": query_covariance, "task_covariance": task_covariance}
    _check(covariance, 1, 0.0, A=A, **others)
    error = covariance @ A - jnp.eye(covariance.shape[0], dtype=jnp.result_type(covariance))
    return jnp.trace(query_covariance @ error.T @ task_covariance @ error)


def best_temperature(
    A: Array, covariance: Array, task_covariance: Array, n: int, noise_var: Real
) -> Array:  # []
    """The τ of least risk of ŷ = ȳ + (1/nτ) Σ y_i (x_i - x̄)ᵀ A x_query, softmax at a small scale.

    τ = (m/n) tr(Λ Aᵀ S_m A) / tr(Λ Aᵀ ΛW), m = n - 1, S_m the second moment of label_moments at m
    demonstrations, where that is positive, and infinite elsewhere. Where test prompts differ from
    those A was trained on, in Λ, W, n or noise, τ mends the scale of A and nothing else
    (2511.01292; this form is derived here, docs/theory, "The best temperature"). n is at least 2.
    """
    n = check_at_least(n, "n", 2)
    outer, cross = label_moments(covariance, task_covariance, n - 1, noise_var)
    along = jnp.trace(covariance @ A.T @ cross)
    shrink = jnp.trace(covariance @ A.T @ outer @ A) / along
    return jnp.where(along <= 0, jnp.inf, shrink * ((n - 1) / n))  # NaN: NaN


def rank_limited_risk(
    covariance: Array, task_covariance: Array, n: int, noise_var: Real
) -> Array:  # [d+1]
    """The least risk of one layer whose heads have total rank k, for k = 0, ..., d.

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
    check_variance(noise_var, "noise_var")
    return check_at_least(n, "n")
