"""Training dynamics of one linear-attention layer: gradient flow in time on its population loss.

The layer predicts ŷ = b·A x_query, b = (1/n) Σ_i y_i x_i, with the effective step A = uU: u is the
label entry of W_pv and U the covariate block of W_kq, read out with the plus sign (under the minus
sign W_pv holds -u and all else is the same). The other entries stay zero if they start there. Over
x ~ N(0, Λ), w ~ N(0, I) and label noise of variance σ² the loss, WITH its factor 1/2, is

    L = ½ E(ŷ - w·x_query)² = ½ [tr(Λ Aᵀ ΓΛ A) - 2 tr(Λ Aᵀ Λ) + tr Λ],
    Γ = (1 + 1/n) Λ + ((tr Λ + σ²)/n) I,

and training follows du/dt = -∂L/∂u, dU/dt = -∂L/∂U (Zhang et al. 2306.09927; docs/theory, "The
training flow"; the noise, which enters nowhere but in Γ, is derived here). Descent on the loss
without the 1/2 runs twice as fast; label noise on the target too would add σ²/2 to L and change
nothing else.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import (
    Real,
    as_floats,
    check_at_least,
    check_broadcast,
    check_eigenvalues,
    check_symmetric,
    check_variance,
    is_concrete,
    is_readable,
)

_MAX_STEPS = 100_000


class Weights(NamedTuple):
    """The trained entries, their time derivative, or with a leading axis their path."""

    u: Array  # []
    U: Array  # [d, d]


def loss(u: Real, U: Array, covariance: Array, n: int, noise_var: Real = 0.0) -> Array:
    """L = ½ [tr(Λ Aᵀ ΓΛ A) - 2 tr(Λ Aᵀ Λ) + tr Λ] with A = uU.

    docs/theory, "The training flow".
    """
    _check(u, U, covariance)
    A, gamma = u * U, _gamma(covariance, n, noise_var)
    explained = jnp.trace(covariance @ A.T @ (gamma @ covariance @ A - 2 * covariance))
    return (explained + jnp.trace(covariance)) / 2


def vector_field(u: Real, U: Array, covariance: Array, n: int, noise_var: Real = 0.0) -> Weights:
    """Minus the gradient of the loss (Zhang et al. 2306.09927; docs/theory, "The training flow"):

    du/dt = -tr(uΓΛUΛUᵀ - Λ²Uᵀ),   dU/dt = -u²ΓΛUΛ + uΛ².
    """
    weights = _weights(u, U, covariance)
    return _flow(0.0, weights, (covariance, _gamma(covariance, n, noise_var)))


def solve(
    times: Array,  # [m]
    covariance: Array,  # [d, d]
    n: int,
    initial_u: Real,
    initial_U: Array,  # [d, d]
    noise_var: Real = 0.0,
    *,
    rtol: float = 1e-10,
    atol: float = 1e-10,
) -> Weights:  # u [m], U [m, d, d]
    """The weights at increasing times, from their values at time 0, by the matrix ODE.

    With Λ and initial U diagonal U stays diagonal and its entries are the modes, U_i' = u λ_i²
    (1 - γ_i u U_i) and u' = Σ_i λ_i² U_i (1 - γ_i u U_i): they are learnt in the order of λ_i², and
    all escape from small weights together, when u grows. From u = c, U = cΘΘᵀ with |ΘΘᵀ|_F = 1 and
    c²|Γ|√d < 2 the effective step tends to Γ^{-1} and u to tr(Γ^{-2})^{1/4} (Zhang et al.).
    """
    initial = _weights(initial_u, initial_U, covariance)
    times = _check_times(times, rtol)
    arguments = (covariance, _gamma(covariance, n, noise_var))
    return _integrate(_flow, times, initial, arguments, rtol, atol)


def conserved(u: Array, U: Array) -> Array:
    """u² - |U|_F², constant along the flow because u ∂L/∂u = ⟨U, ∂L/∂U⟩.

    docs/theory, "The conserved quantity".
    A leading axis of times is kept.
    """
    return u**2 - jnp.sum(U**2, axis=(-2, -1))


def isotropic_step(
    t: Real,
    d: int,
    n: int,
    eigenvalue: Real,
    initial_step: Real,
    noise_var: Real = 0.0,
) -> Array:
    """The effective step a(t) on b·x_query for Λ = λI and U = (u/√d) I: a logistic law.

    a' = 2λ²√d a (1 - γa),   a(t) = a_0 / (γa_0 + (1 - γa_0) e^{-2λ²√d t}),
    γ = (1 + 1/n) λ + (dλ + σ²)/n,   A = uU = aI, a_0 = u_0²/√d ≥ 0 (docs/theory, "The logistic
    law"; derived here). Raises ValueError for another a_0: a step below 0 has weights of two signs,
    which move otherwise.
    """
    numbers = {"eigenvalue": eigenvalue, "initial_step": initial_step, "noise_var": noise_var}
    check_broadcast(t=t, **numbers)
    reached, rate = _logistic(d, n, eigenvalue, initial_step, noise_var)
    if is_readable(initial_step) and not np.all(np.asarray(initial_step) >= 0):
        raise ValueError(f"initial_step = {initial_step}: u_0²/√d is not negative")
    return initial_step / (reached + (1 - reached) * jnp.exp(-rate * t))


def isotropic_loss(step: Real, d: int, n: int, eigenvalue: Real, noise_var: Real = 0.0) -> Real:
    """L(a) = ½ [λ²γd a² - 2λ²d a + λd] at A = aI, Λ = λI (docs/theory, "The logistic law")."""
    reached, _ = _logistic(d, n, eigenvalue, step, noise_var)
    return d * eigenvalue * (eigenvalue * step * (reached - 2) + 1) / 2


def half_time(
    d: int,
    n: int,
    eigenvalue: Real,
    initial_step: Real,
    noise_var: Real = 0.0,
) -> Array:
    """When a(t) reaches 1/(2γ), half its limit: ln(1/(γa_0) - 1) / (2λ²√d).

    docs/theory, "The logistic law".
    For 0 < a_0 < 1/γ, else ValueError; negative if a_0 is already beyond the half.
    """
    reached, rate = _logistic(d, n, eigenvalue, initial_step, noise_var)
    if is_readable(reached) and not ((np.asarray(reached) > 0) & (np.asarray(reached) < 1)).all():
        raise ValueError(f"initial_step = {initial_step}: it lies between 0 and the limit 1/γ")
    return jnp.log(1 / reached - 1) / rate


def plateaus(eigenvalues: Array, n: int, noise_var: Real = 0.0) -> Array:  # [d+1]
    """The losses at which training halts between modes: ½ [tr Λ - Σ_{i<=k} λ_i²/γ_i], k = 0..d.

    γ_i = (1 + 1/n) λ_i + (tr Λ + σ²)/n, the largest eigenvalue first: saddles of the flow with one
    rank-1 key and query per head, visible only from small weights and well separated eigenvalues
    (derived here; agrees in outline with 2501.16265; docs/theory, "Plateaus"). Computed as
    ½ [Σ_i λ_i (λ_i + tr Λ + σ²)/(n γ_i) + Σ_{i>k} λ_i²/γ_i], where nothing is subtracted. Raises
    ValueError where tr Λ + σ² is seen to be 0: no γ_i is positive.
    """
    chex.assert_rank(eigenvalues, 1, custom_message="eigenvalues of the covariance, [d]")
    ordered = jnp.sort(eigenvalues, descending=True)
    chex.assert_shape(noise_var, (), custom_message="noise_var is one number; use jax.vmap")
    trace = jnp.sum(ordered)
    if is_concrete(trace + noise_var) and trace + noise_var <= 0:
        raise ValueError("tr Λ + σ² = 0: nothing is learnt, and there is no plateau")
    shares = ordered / _gammas(ordered, trace, n, noise_var)  # λ_i/γ_i
    lost = jnp.sum(shares * (ordered + trace + noise_var)) / n
    later = jnp.cumsum((ordered * shares)[::-1])[::-1]
    return (lost + jnp.pad(later, (0, 1))) / 2


def head_growth(sizes: Array, eigenvalues: Array, n: int, noise_var: Real = 0.0) -> Array:  # [d]
    """m_i' = λ_i² m_i² (1 - γ_i m_i³) for heads with separate key, query and value.

    Head i has key and query m_i times the i-th eigenvector of Λ and value m_i, so A = Σ_i m_i³ p_i
    p_iᵀ; heads on different eigenvectors do not disturb each other (docs/theory, "Separate heads
    grow alone"; derived here).
    """
    chex.assert_equal_shape([sizes, eigenvalues], custom_message="one head per eigenvalue, [d]")
    gammas = _gammas(eigenvalues, jnp.sum(eigenvalues), n, noise_var)
    return _growth(0.0, sizes, (eigenvalues, gammas))


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
    """The heads' sizes m_i at increasing times, from their values at time 0, by ``head_growth``."""
    chex.assert_equal_shape([initial_sizes, eigenvalues], custom_message="one head per eigenvalue")
    times, initial_sizes = _check_times(times, rtol), as_floats(initial_sizes)
    gammas = _gammas(eigenvalues, jnp.sum(eigenvalues), n, noise_var)
    return _integrate(_growth, times, initial_sizes, (eigenvalues, gammas), rtol, atol)


def _flow(t: Real, weights: Weights, arguments: tuple[Array, Array]) -> Weights:
    (u, U), (covariance, gamma) = weights, arguments
    descent = covariance @ covariance - u * gamma @ covariance @ U @ covariance  # -∂L/∂A
    return Weights(jnp.sum(descent * U), u * descent)


def _growth(t: Real, sizes: Array, arguments: tuple[Array, Real]) -> Array:
    eigenvalues, gammas = arguments
    return (eigenvalues * sizes) ** 2 * (1 - gammas * sizes**3)


def _integrate(
    field: Callable, times: Array, initial: Any, arguments: Any, rtol: float, atol: float
) -> Any:
    """Dormand and Prince's method of order 8 with adaptive steps that end at every time given."""
    import diffrax

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Dopri8(),
        t0=jnp.zeros_like(times[0]),
        t1=times[-1],
        dt0=None,
        y0=initial,
        args=arguments,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.ClipStepSizeController(
            diffrax.PIDController(rtol=rtol, atol=atol), step_ts=times
        ),
        max_steps=_MAX_STEPS,
    )
    return solution.ys


def _check_times(times: Array, rtol: float) -> Array:  # [m]
    chex.assert_rank(times, 1, custom_message="times are one vector [m]")
    times = as_floats(times)
    resolution = float(jnp.finfo(times.dtype).eps)
    if rtol < resolution:
        raise ValueError(
            f"rtol = {rtol} is finer than {times.dtype} resolves ({resolution:.1e}): "
            "enable float64 (jax_enable_x64) or ask for a coarser rtol and atol"
        )
    waits = np.diff(np.asarray(times), prepend=0) if is_concrete(times) else np.zeros(1)
    if not (len(waits) and ((waits >= 0) & (waits < np.inf)).all()):
        raise ValueError(f"times = {times}: let them increase from 0, when the weights are given")
    return times


def _gamma(covariance: Array, n: int, noise_var: Real) -> Array:  # [d, d]
    n = _check_prompts(n, noise_var)
    chex.assert_shape(noise_var, (), custom_message="noise_var is one number; use jax.vmap")
    check_symmetric(covariance, "covariance")
    covariance = jnp.asarray(covariance)
    floor = (jnp.trace(covariance) + noise_var) / n
    return (1 + 1 / n) * covariance + floor * jnp.eye(len(covariance), dtype=covariance.dtype)


def _gammas(eigenvalue: Real, trace: Real, n: int, noise_var: Real) -> Real:
    n = _check_prompts(n, noise_var)
    check_eigenvalues(eigenvalue, "eigenvalue", "a covariance")
    return (1 + 1 / n) * eigenvalue + (trace + noise_var) / n


def _logistic(d: int, n: int, eigenvalue: Real, step: Real, noise_var: Real) -> tuple[Real, Real]:
    """The share γa of the limit that the step has reached, and the rate 2λ²√d."""
    d = check_at_least(d, "d")
    gamma = _gammas(eigenvalue, d * eigenvalue, n, noise_var)
    return gamma * step, 2 * eigenvalue**2 * d**0.5


def _check_prompts(n: int, noise_var: Real) -> int:
    check_variance(noise_var, "noise_var")
    return check_at_least(n, "n")


def _weights(u: Real, U: Array, covariance: Array) -> Weights:
    _check(u, U, covariance)
    U = as_floats(U)
    return Weights(jnp.asarray(u, U.dtype), U)


def _check(u: Real, U: Array, covariance: Array) -> None:
    chex.assert_shape(u, (), custom_message="u is one number; use jax.vmap for a path of weights")
    shape = (len(covariance),) * 2
    message = "U and covariance are both [d, d]; use jax.vmap for a path of weights"
    chex.assert_shape([U, covariance], shape, custom_message=message)
