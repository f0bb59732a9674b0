"""The best gate, step and label scale of layers that follow a task which drifts, and their risk.

The task moves along the prompt, w_{t+1} = ρ w_t + √((1 - ρ²)/d) z_t with z_t ~ N(0, I), so that
E |w_t|² = 1 at every t. x is N(0, I_d), y_t = w_t·x_t + ε_t, and ε has variance σ²
(``noise_var``). A layer answers with its state ŵ_t, and its risk is E |ŵ_t - w_{t+1}|² after many
demonstrations. The states are those of ``learning_curves``, whose recursions take ``drift=``.

All layers but ``delta`` lose r²/(Ar + s) of a risk r at their best step, with numbers A and s of
their own, and the task moves away, so that the risk solves r = ρ²(r - r²/(Ar + s)) + 1 - ρ²
(derived here; docs/theory, "Layers that follow a drifting task").
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import Real, check_at_least, check_correlation, check_variance


class Drift(NamedTuple):
    """What a layer that is trained on the drifting task should learn."""

    risk: Array  # []  E |ŵ_t - w_{t+1}|² as t → ∞
    gate: Array  # []  g
    scale: Array  # []  c, the factor of the labels
    step: Array | None = None  # []  β


def additive(d: int, noise_var: Real, rho: Real) -> Drift:
    """Linear attention, RetNet and GLA, ŵ ← gŵ + cyx. No weights of the labels have less risk:

        P² + (1 - ρ²)(a - 1) P - (1 - ρ²) a = 0,  g = ρa/(P + a),  c = ρP/(P + a),  a = d + 1 + dσ²

    So of all gates that do not see the token one that never changes is the best (derived here; that
    a gate below 1 helps: 2604.10946). ``gla`` has one that sees the token.
    """
    d, rho, noise = _check(d, noise_var, rho)
    risk, gain = _stationary(1.0, d + 1 + d * noise, rho)
    return Drift(risk, rho * (1 - gain), rho * gain)


def gla(d: int, noise_var: Real, rho: Real) -> Drift:
    """The same with the best gate that sees |x|², g = ρ - c|x|²/d, whose mean is ``gate``:

        c/ρ = r/((1 + 2/d)r + (d + 2)(1 - 1/d) + dσ²)

    Sharing out what a delta rule takes away along x over all directions, it has less risk than
    ``additive``: by .6 % at d = 4, ρ = .9, σ² = .25, by more where d and 1 - ρ are small. A gate
    that is a sigmoid of a linear function of x cannot have this form (derived here).
    """
    d, rho, noise = _check(d, noise_var, rho)
    risk, gain = _stationary(1 + 2 / d, (d + 2) * (1 - 1 / d) + d * noise, rho)
    return Drift(risk, rho * (1 - gain), rho * gain)


def lms(d: int, noise_var: Real, rho: Real) -> Drift:
    """The delta rule on keys as they are, ŵ ← gŵ + β (cy - gŵ·x)x: g = c = ρ, β = r/((d + 2)r +
    dσ²) (derived here)."""
    d, rho, noise = _check(d, noise_var, rho)
    risk, gain = _stationary(d + 2.0, d * noise, rho)
    return Drift(risk, rho, rho, gain)


def gated_delta(d: int, noise_var: Real, rho: Real) -> Drift:
    """Gated DeltaNet, ŵ ← gŵ + β (cy - gŵ·u)u with u = x/|x|: g = ρ, c = ρ/E |x|, and

        β = r/(r + dν),  ν = (1 + σ²)/(E |x|)² - 1/d

    where ν is the noise of the label together with that of the length of x (derived here).
    """
    d, rho, noise = _check(d, noise_var, rho)
    length = mean_length(d)
    risk, gain = _stationary(float(d), d * (d * (1 + noise) / length**2 - 1), rho)
    return Drift(risk, rho, rho / length, d * gain)


def delta(d: int, noise_var: Real, rho: Real) -> Drift:
    """DeltaNet, the same without a gate, g = 1. With l = E |x|, p = 1 - ρ, h = ρ/d, v = 1 + σ²:

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
    return Drift(1 - product**2 / square, jnp.ones_like(rho), product / square, step)


def mean_length(d: int) -> float:
    """E |x| = √2 Γ((d + 1)/2)/Γ(d/2) for x ~ N(0, I_d)."""
    return math.sqrt(2) * math.exp(math.lgamma((d + 1) / 2) - math.lgamma(d / 2))


def _check(d: int, noise_var: Real, rho: Real) -> tuple[int, Array, Array]:
    d = check_at_least(d, "d")
    check_variance(noise_var, "noise_var")
    check_correlation(rho, "rho")
    return d, jnp.asarray(rho, float), jnp.asarray(noise_var, float)


def _stationary(A: float, s: Array, rho: Array) -> tuple[Array, Array]:
    """The solution r of r = ρ²(r - r²/(Ar + s)) + 1 - ρ², and r/(Ar + s)."""
    moves = 1 - rho**2
    square, half = moves * A + rho**2, moves * (s - A) / 2
    root = jnp.sqrt(half**2 + square * moves * s)
    # of two forms the one that subtracts nothing
    above = moves * s / jnp.where(half > 0, half + root, 1)
    risk = jnp.where(half > 0, above, (root - half) / square)
    return risk, risk / jnp.where(risk > 0, A * risk + s, 1)
