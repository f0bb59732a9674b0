"""The best gate, step and label scale of layers that follow a task which drifts, and their risk.

The task moves along the prompt, w_{t+1} = ρ w_t + √((1 - ρ²)/d) z_t with z_t ~ N(0, I), so that
E |w_t|² = 1 at every t. x is N(0, I_d), y_t = w_t·x_t + ε_t, and ε has variance σ²
(``noise_var``). A layer answers with its state ŵ_t, and its risk is E |ŵ_t - w_{t+1}|² after many
demonstrations. The states are those of ``learning_curves``, whose recursions take ``drift=``.

At its best step every layer but ``delta`` lowers a risk r by r²/(Ar + s), with numbers A and s of
that layer, and the task moves away, so that the risk solves r = ρ²(r - r²/(Ar + s)) + 1 - ρ²
(derived here; docs/theory, "Layers that follow a drifting task").
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import Real, check_at_least, check_symmetric, is_concrete
from lsa_lab.theory.domains import check


class BestLayer(NamedTuple):
    """The numbers that a layer trained on the drifting task should learn."""

    risk: Array  # []  E |ŵ_t - w_{t+1}|² as t → ∞
    gate: Array  # []  g
    scale: Array  # []  c, the factor of the labels
    step: Array | None = None  # []  β


def additive(d: int, noise_var: Real, rho: Real) -> BestLayer:
    """Return the best linear attention, RetNet or GLA, ŵ ← gŵ + cyx:

        P² + (1 - ρ²)(a - 1) P - (1 - ρ²) a = 0,  g = ρa/(P + a),  c = ρP/(P + a),  a = d + 1 + dσ²

    No weights of the labels have less risk. So of all gates that do not see the token a constant
    one is the best (derived here; that a gate below 1 helps: 2604.10946).
    """
    d, rho, noise = _check(d, noise_var, rho)
    risk, gain = _stationary(1.0, d + 1 + d * noise, rho)
    return BestLayer(risk, rho * (1 - gain), rho * gain)


def gla(d: int, noise_var: Real, rho: Real) -> BestLayer:
    """Return the best ŵ ← gŵ + cyx with a gate that sees |x|², g = ρ - c|x|²/d of mean ``gate``:

        c/ρ = r/((1 + 2/d)r + (d + 2)(1 - 1/d) + dσ²)

    It takes away along all directions what a delta rule takes away along x, and has less risk than
    ``additive``: by .6 % at d = 4, ρ = .9, σ² = .25, by more where d and 1 - ρ are small. A gate
    that is a sigmoid of a linear function of x cannot have this form (derived here).
    """
    d, rho, noise = _check(d, noise_var, rho)
    risk, gain = _stationary(1 + 2 / d, (d + 2) * (1 - 1 / d) + d * noise, rho)
    return BestLayer(risk, rho * (1 - gain), rho * gain)


def lms(d: int, noise_var: Real, rho: Real) -> BestLayer:
    """Return the best delta rule on keys as they are, ŵ ← gŵ + β (cy - gŵ·x)x,

    g = c = ρ, β = r/((d + 2)r + dσ²) (derived here).
    """
    d, rho, noise = _check(d, noise_var, rho)
    risk, gain = _stationary(d + 2.0, d * noise, rho)
    return BestLayer(risk, rho, rho, gain)


def gated_delta(d: int, noise_var: Real, rho: Real) -> BestLayer:
    """Return the best Gated DeltaNet, ŵ ← gŵ + β (cy - gŵ·u)u with u = x/|x|:

        g = ρ,  c = ρ/E |x|,  β = r/(r + dν),  ν = (1 + σ²)/(E |x|)² - 1/d

    where ν is the noise of the label together with that of the length of x (derived here).
    """
    d, rho, noise = _check(d, noise_var, rho)
    length = mean_length(d)
    risk, gain = _stationary(float(d), d * (d * (1 + noise) / length**2 - 1), rho)
    return BestLayer(risk, rho, rho / length, d * gain)


def delta(d: int, noise_var: Real, rho: Real) -> BestLayer:
    """Return the best DeltaNet, ``gated_delta`` with g = 1.

    With l = E |x|, p = 1 - ρ, h = ρ/d and v = 1 + σ² its risk is

        r = 1 - l²h² β(2 - β)/D(β),  D = (p + hβ)(2l²h(1 - β) + dv(p + hβ)) = a + bβ + eβ²

    which is least where (b + 2e)β² + 2aβ - 2a = 0, and c is E ŵ·w/E |ŵ|² of the state whose
    labels have the scale 1 (derived here).
    """
    d, rho, noise = _check(d, noise_var, rho)
    length = mean_length(d)
    p, h, power = 1 - rho, rho / d, d * (1 + noise)
    inner = 2 * length**2 * h + power * p  # of the second factor of D, at β = 0
    slope = h * (power - 2 * length**2)
    a, b, e = p * inner, h * inner + p * slope, h * slope
    step = 2 * a / jnp.where(a > 0, a + jnp.sqrt(a**2 + 2 * a * (b + 2 * e)), 1)
    moved = jnp.where(a > 0, p + h * step, 1)  # at ρ = 1 the best step is 0 and the risk is 0
    product = jnp.where(a > 0, length * h * step / moved, length)
    square = (2 * (1 - step) * length * product + step * power) / (2 - step)
    return BestLayer(1 - product**2 / square, jnp.ones_like(rho), product / square, step)


def best_weights(
    task_covariance: ArrayLike,  # [n+1, n+1]  E w_i·w_j, the query's task last
    d: int,
    noise_var: Real,
) -> tuple[Array, Array]:  # [n], []
    """Return the best weights ω of ŵ = Σ_i ω_i y_i x_i where tasks drift in any way, and the risk:

        ω = (C + (d + 1) diag C + dσ²I)⁻¹c,  r = E |w_q|² - c·ω,  C_ij = E w_i·w_j,  c_i = E w_i·w_q

    Gates are such weights: constant ones are a geometric ω, of which ``additive`` is the best
    (derived here; weighting by gates: Li et al. 2504.04308). Raises ValueError if some C_ii + σ² is
    0: that label is 0, and any weight of it is the best.
    """
    covariance = jnp.asarray(task_covariance, float)
    if covariance.ndim != 2 or covariance.shape[0] != covariance.shape[1]:
        raise ValueError(f"task_covariance has shape {covariance.shape}: expected [n+1, n+1]")
    check_symmetric(covariance, "task_covariance")
    check_at_least(d, "d")
    check(noise_var=noise_var)
    among, towards = covariance[:-1, :-1], covariance[:-1, -1]
    spread = (d + 1) * jnp.diag(among) + d * jnp.asarray(noise_var, float)
    if is_concrete(spread) and not np.all(np.asarray(spread) > 0):
        raise ValueError("task_covariance: a task is 0, without noise, and has no best weight")
    weights = jnp.linalg.solve(among + jnp.diag(spread), towards)
    return weights, covariance[-1, -1] - towards @ weights


def mean_length(d: int) -> float:
    """Return E |x| = √2 Γ((d + 1)/2)/Γ(d/2) for x ~ N(0, I_d)."""
    return math.sqrt(2) * math.exp(math.lgamma((d + 1) / 2) - math.lgamma(d / 2))


def _check(d: int, noise_var: Real, rho: Real) -> tuple[int, Array, Array]:
    check(noise_var=noise_var, rho=rho)
    return check_at_least(d, "d"), jnp.asarray(rho, float), jnp.asarray(noise_var, float)


def _stationary(A: float, s: Array, rho: Array) -> tuple[Array, Array]:
    """Return the solution r of r = ρ²(r - r²/(Ar + s)) + 1 - ρ², and r/(Ar + s)."""
    moves = 1 - rho**2
    square, half = moves * A + rho**2, moves * (s - A) / 2
    root = jnp.sqrt(half**2 + square * moves * s)
    # of two forms the one that subtracts nothing
    above = moves * s / jnp.where(half > 0, half + root, 1)
    risk = jnp.where(half > 0, above, (root - half) / square)
    return risk, risk / jnp.where(risk > 0, A * risk + s, 1)
