"""The gain of depth where every prompt has its own basis: covariances that rotate.

A prompt has infinitely many demonstrations, without noise, whose covariance Σ has given eigenvalues
λ in a basis that is drawn anew for every prompt. A fixed covariance takes one layer, which inverts
it; here depth helps (derived here; that depth helps: Bordelon et al. 2510.01098; docs/theory,
"Depth where the covariance turns"). The risk is E (ŵ - w)ᵀΣ(ŵ - w), with E |w|² = 1.
"""

import numpy as np
from jax.typing import ArrayLike

from lsa_lab.arguments import check_at_least


def best_descent(eigenvalues: ArrayLike, depth: int) -> np.ndarray:  # [d] -> [depth+1]
    """Return the least risks R_0 to R_L of l steps of descent that all prompts share,

        R_l = min_{p(0) = 1, deg p ≤ l} (1/d) Σ λ p(λ)² = 1/Σ_{k≤l} π_k(0)²

    with π_k orthonormal in the weight λ/d. They are 0 from as many layers on as there are different
    eigenvalues. Where λ times the density of eigenvalues is λ^b on [0, 1], R_l/R_0 is
    [Π_{k≤l} k/(k + b + 1)]² and falls like l^{-2(b + 1)}. Computed on the host in float64.
    """
    check_at_least(depth, "depth", 0)
    values = _check_eigenvalues(eigenvalues)
    nodes, counts = np.unique(values[values > 0], return_counts=True)
    weight = nodes * counts / len(values)
    rows, ends = [np.full_like(nodes, weight.sum() ** -0.5)], [weight.sum() ** -0.5]  # π_k, π_k(0)
    for _ in range(1, min(depth + 1, len(nodes))):
        after, end = nodes * rows[-1], 0.0
        for _ in range(2):  # twice, for digits
            for row, at_zero in zip(rows, ends, strict=True):
                share = weight @ (after * row)
                after, end = after - share * row, end - share * at_zero
        size = np.sqrt(weight @ after**2)
        rows.append(after / size)
        ends.append(end / size)
    risks = 1 / np.cumsum(np.square(ends))
    return np.pad(risks, (0, depth + 1 - len(risks)))


def moving_inverse(eigenvalues: ArrayLike) -> tuple[np.ndarray, np.ndarray]:  # [m] -> [L] x 2
    """Return steps η and factors γ of GD++ that end every covariance with these eigenvalues,

        Π_l (1 - η_l κ_l) = 0 at every λ > 0,  κ_1 = λ,  κ_{l+1} = κ_l (1 - γ_l κ_l)²

    in L = ⌈(m + 1)/2⌉ layers, m the number of different eigenvalues; steps that leave the
    covariates as they are need m. For almost every spectrum this L is the least possible: L layers
    have 2L - 1 effective numbers, since γ_L never acts. Each layer ends the least κ, and makes the
    two largest equal by γ = 1/(κ + √(κκ') + κ'). Eigenvalues within rounding of 0, or of each
    other, are taken as such (derived here). Computed on the host in float64, for
    ``constructions.gradient_descent_plus_plus``.
    """
    values = _check_eigenvalues(eigenvalues)
    left = np.sort(values)
    left = left[np.diff(left, prepend=0.0) > _rounding(values)]
    steps, gammas = [], []
    while len(left):
        steps.append(1 / left[0])
        left = left[1:]
        gammas.append(1 / (left[-2:].sum() + np.sqrt(left[-2:].prod())) if len(left) > 1 else 0.0)
        left = left * (1 - gammas[-1] * left) ** 2
        left = np.sort(left[:-1] if len(left) > 1 else left)
    return np.array(steps), np.array(gammas)


def _check_eigenvalues(eigenvalues: ArrayLike) -> np.ndarray:  # [d]
    values = np.asarray(eigenvalues, float)
    least = -_rounding(values) if values.ndim == 1 and np.isfinite(values).all() else np.inf
    if not ((values >= least).all() and (values > 0).any()):
        raise ValueError("eigenvalues [d] are finite, none is negative, and one is positive")
    return np.maximum(values, 0)


def _rounding(values: np.ndarray) -> float:
    """Return the distance from 0, or from each other, below which eigenvalues are equal."""
    return len(values) * np.finfo(float).eps * np.abs(values).max(initial=0)
