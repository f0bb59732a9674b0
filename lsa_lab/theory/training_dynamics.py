"""Training dynamics of one linear-attention layer: gradient flow in time on its population loss.

The layer predicts ŷ = b·A x_query, b = (1/n) Σ_i y_i x_i, with the effective step A = uU: u is the
label entry of W_pv and U the covariate block of W_kq, read out with the plus sign (under the minus
sign W_pv holds -u and all else is the same). The other entries stay zero if they start there. Over
x ~ N(0, Λ), w ~ N(0, I) and label noise of variance σ² the loss, WITH its factor 1/2, is

    L = ½ E(ŷ - w·x_query)² = ½ [tr(Λ Aᵀ ΓΛ A) - 2 tr(Λ Aᵀ Λ) + tr Λ],
    Γ = (1 + 1/n) Λ + ((tr Λ + σ²)/n) I,

and training follows du/dt = -∂L/∂u, dU/dt = -∂L/∂U (Zhang et al. 2306.09927; docs/theory, "The
training flow"; the noise, which enters Γ alone, is derived here). u² - |U|_F² stays constant.
Descent on the loss without the 1/2 runs twice as fast; label noise on the target too would add σ²/2
to L and change nothing else.
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
    is_concrete,
)
from lsa_lab.theory.domains import check

_MAX_STEPS = 100_000  # of the solver


class Weights(NamedTuple):
    """The trained entries, their time derivative, or with a leading axis their path."""

    u: Array  # []
    U: Array  # [d, d]


def loss(u: Real, U: Array, covariance: Array, n: int, noise_var: Real = 0.0) -> Array:  # []
    """Return L = ½ [tr(Λ Aᵀ ΓΛ A) - 2 tr(Λ Aᵀ Λ) + tr Λ] at A = uU."""
    weights, gamma = _as_weights(u, U, covariance), _gamma(covariance, n, noise_var)
    A = weights.u * weights.U
    explained = jnp.trace(covariance @ A.T @ (gamma @ covariance @ A - 2 * covariance))
    return (explained + jnp.trace(covariance)) / 2


def vector_field(u: Real, U: Array, covariance: Array, n: int, noise_var: Real = 0.0) -> Weights:
    """Return minus the gradient of the loss (Zhang et al.; docs/theory, "The training flow"):

    du/dt = -tr(uΓΛUΛUᵀ - Λ²Uᵀ),   dU/dt = -u²ΓΛUΛ + uΛ².
    """
    weights = _as_weights(u, U, covariance)
    return _flow(0.0, weights, (covariance, _gamma(covariance, n, noise_var)))


def solve(
    times: Array,
    covariance: Array,
    n: int,
    initial_u: Real,
    initial_U: Array,
    noise_var: Real = 0.0,
    *,
    rtol: float = 1e-10,
    atol: float = 1e-10,
) -> Weights:  # u [m], U [m, d, d]
    """Solve the matrix ODE for the weights at increasing times.

    With Λ and initial U diagonal U stays diagonal and its entries are the modes, U_i' = u λ_i²
    (1 - γ_i u U_i) and u' = Σ_i λ_i² U_i (1 - γ_i u U_i): they are learnt in the order of λ_i², and
    all escape from small weights together, when u grows. From u = c, U = cΘΘᵀ with |ΘΘᵀ|_F = 1 and
    c²|Γ|√d < 2 the effective step tends to Γ^{-1} and u to tr(Γ^{-2})^{1/4} (Zhang et al.).

    Args:
        times: [m], increasing from 0, the time of the initial weights.
        covariance: Λ [d, d].
        n: demonstrations in a prompt.
        initial_u, initial_U: the weights at time 0, [] and [d, d].
        noise_var: σ².
        rtol, atol: tolerances of the solver; rtol is no finer than the dtype of ``times``.

    Returns:
        The weights at every time.

    Raises:
        ValueError: times do not increase from 0, rtol is too fine, or Λ is not a covariance.
    """
    initial = _as_weights(initial_u, initial_U, covariance)
    times = check_times(times, rtol)
    arguments = (covariance, _gamma(covariance, n, noise_var))
    return integrate(_flow, times, initial, arguments, rtol, atol)


def isotropic_step(
    t: Real,
    d: int,
    n: int,
    eigenvalue: Real,
    initial_step: Real,
    noise_var: Real = 0.0,
) -> Array:
    """Return the effective step a(t) on b·x_query for Λ = λI and U = (u/√d) I: a logistic law.

        a' = 2λ²√d a (1 - γa),   a(t) = a_0 / (γa_0 + (1 - γa_0) e^{-2λ²√d t}),
        γ = (1 + 1/n) λ + (dλ + σ²)/n,   A = uU = aI,   a_0 = u_0²/√d

    It reaches half of its limit 1/γ at t = ln(1/(γa_0) - 1) / (2λ²√d) (docs/theory, "The logistic
    law"; derived here).

    Args:
        t: the time; it broadcasts with ``eigenvalue``, ``initial_step`` and ``noise_var``.
        d, n: covariates, and demonstrations in a prompt.
        eigenvalue: λ.
        initial_step: a_0 ≥ 0; below 0 the weights have two signs and move otherwise.
        noise_var: σ².

    Returns:
        a(t), in the common shape.

    Raises:
        ValueError: ``initial_step`` or another number lies outside its domain.
    """
    numbers = {"eigenvalue": eigenvalue, "initial_step": initial_step, "noise_var": noise_var}
    check_broadcast(t=t, **numbers)
    check(initial_step=initial_step, noise_var=noise_var)
    check_eigenvalues(eigenvalue, "eigenvalue", "a covariance")
    n, d = check_at_least(n, "n"), check_at_least(d, "d")
    gamma = (1 + 1 / n) * eigenvalue + (d * eigenvalue + noise_var) / n
    reached, rate = gamma * initial_step, 2 * eigenvalue**2 * d**0.5
    return initial_step / (reached + (1 - reached) * jnp.exp(-rate * t))


def _flow(t: Real, weights: Weights, arguments: tuple[Array, Array]) -> Weights:
    (u, U), (covariance, gamma) = weights, arguments
    descent = covariance @ covariance - u * gamma @ covariance @ U @ covariance  # -∂L/∂A
    return Weights(jnp.sum(descent * U), u * descent)


def _gamma(covariance: Array, n: int, noise_var: Real) -> Array:  # [d, d]
    check(noise_var=noise_var)
    n = check_at_least(n, "n")
    chex.assert_shape(noise_var, (), custom_message="noise_var is one number; use jax.vmap")
    check_symmetric(covariance, "covariance")
    covariance = jnp.asarray(covariance)
    floor = (jnp.trace(covariance) + noise_var) / n
    return (1 + 1 / n) * covariance + floor * jnp.eye(len(covariance), dtype=covariance.dtype)


def _as_weights(u: Real, U: Array, covariance: Array) -> Weights:
    chex.assert_shape(u, (), custom_message="u is one number; use jax.vmap for a path of weights")
    shape = (len(covariance),) * 2
    message = "U and covariance are both [d, d]; use jax.vmap for a path of weights"
    chex.assert_shape([U, covariance], shape, custom_message=message)
    U = as_floats(U)
    return Weights(jnp.asarray(u, U.dtype), U)


def integrate(
    field: Callable, times: Array, initial: Any, arguments: Any, rtol: float, atol: float
) -> Any:
    """Solve an ODE by Dormand and Prince's method of order 8, with steps that end at each time."""
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


def check_times(times: Array, rtol: float) -> Array:  # [m]
    """Return the times as floats; refuse those that do not increase from 0, and a finer rtol."""
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
        raise ValueError(f"times = {times}: they increase from 0, the time of the initial weights")
    return times
