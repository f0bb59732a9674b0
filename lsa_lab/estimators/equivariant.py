"""The best of all rules that commute with rotations of the covariates, without sampling.

The risk of such a rule is the same for every rotation of w, hence equal to its average over
rotations, which the posterior mean minimises. So no equivariant rule, linear in the labels or not,
beats the posterior mean for w of the task's length and of uniform direction (derived here;
docs/theory, "The rotation-equivariant Bayes rule").
"""

import functools
import math
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import (
    Real,
    check_choice,
    check_number,
    check_prompt,
    check_range,
    check_size,
    is_concrete,
)
from lsa_lab.estimators.least_squares import column_space, ridge
from lsa_lab.prompts import Prompt

Signal = Literal["gaussian", "flat"]
_NODES = 256  # of the integral; twice as many change the last bits only
_NEGLIGIBLE = 30.0  # parts of an integrand below e^-30 of its peak are left out
_NO_WEIGHTS = "weights without spread are 0"
_NOISELESS = "without noise the posterior divides by 0; take a small one"


def rotation_equivariant_posterior_mean(
    prompt: Prompt,
    sparsity: int | None,
    weight_std: Real,
    noise_std: Real,
    *,
    signal: Signal = "gaussian",
) -> Array:  # [d]
    """Return E(w | demonstrations) if w/|w| is uniform and |w| is that of a sparse task.

    |w|² is the sum of ``sparsity`` (None: d) squares of N(0, τ²), τ = weight_std, or of ±τ if
    ``signal`` is flat. Exact, by one integral over Gaussian priors: |w|² ~ τ² χ²_s has a density of
    w ∝ |w|^{s-d} e^{-|w|²/2τ²} with |w|^{-2a} ∝ ∫ t^{a-1} e^{-t|w|²} dt, and δ(|w|² - ρ²) ∝
    ∫ e^{z(ρ² - |w|²)} dz along any path around the singularities. So w is a mixture of N(0, I/p),
    p = 1/τ² + 2t or 2z, with weight t^{a-1} p^{-d/2} dt or e^{zρ²} p^{-d/2} dz, each with its ridge
    rule (derived here; docs/theory, "The rotation-equivariant Bayes rule").
    """
    prompt = check_prompt(prompt, factored=True)
    n, d = prompt.x.shape
    count = d if sparsity is None else check_size(sparsity, d, "weights", "sparsity")
    check_choice(signal, "signal", Signal)
    check_range(noise_std, "noise_std")
    weight_std = _check_std(weight_std, "weight_std", prompt, _NO_WEIGHTS)
    if signal == "gaussian" and count == d:
        return ridge(prompt, noise_std**2 / (n * weight_std**2))
    noise_std = _check_std(noise_std, "noise_std", prompt, _NOISELESS)
    curvature, force, basis = _diagonalise(prompt.x, prompt.y, noise_std)
    if signal == "flat":
        coordinates = _integrate_sphere(curvature, force, count * weight_std**2, _NODES // 2)
    else:
        coordinates = _integrate_lengths(curvature, force, (d - count) / 2, 1 / weight_std**2)
    return basis @ coordinates


def _check_std(value: Real, name: str, prompt: Prompt, advice: str) -> Array:  # []
    """Return a standard deviation if its square is positive in the precision of the prompt."""
    check_range(value, name)
    std = check_number(value, name, prompt, advice)
    if is_concrete(value):
        check_number(float(value) ** 2, f"{name}²", prompt, advice)
    return std


def _diagonalise(x: Array, y: Array, noise_std: Array) -> tuple[Array, Array, Array]:
    """Return Λ [d], f [d], V [d, d] of log p(y | x, w) = f·Vᵀw - Vᵀw·(ΛVᵀw)/2 + constant.

    Λ and f are exactly 0, not rounding over σ², in directions that no demonstration has.
    """
    n, d = x.shape
    _, _, _, kept, exponents = column_space(x)
    order = jnp.argsort(-exponents)  # large columns first, so that small ones keep their digits
    left, singular, rows = jnp.linalg.svd(x[:, order], full_matrices=n < d)
    rows = jnp.zeros_like(rows).at[:, order].set(rows)
    slopes = jnp.where(jnp.arange(len(singular)) < kept.sum(), singular, 0) / noise_std
    padding = (0, d - len(slopes))
    force = slopes * (left.T[: len(slopes)] @ y) / noise_std
    return jnp.pad(slopes**2, padding), jnp.pad(force, padding), rows.T


def _log_evidence(precision: Array, curvature: Array, force: Array) -> Array:  # [q]
    """Return log ∫ exp(-p|w|²/2 - w·(Λw)/2 + f·w) dw, up to a constant, at every p."""
    total = curvature[None] + precision[:, None]
    return jnp.sum((force[None] ** 2 / total - jnp.log(total)) / 2, axis=1)


def _integrate_lengths(curvature: Array, force: Array, shape: float, least: Real) -> Array:  # [d]
    """Integrate over t by the trapezoidal rule in log t, t^{a-1} dt = e^{a log t} d(log t).

    With f(t) = E e^{-t|w|²} under the Gaussian posterior at t = 0, the integral is at least
    Γ(a) M^{-a}, M = E|w|², and f is at most 1 and at most Π_k (2t C_k)^{-1/2}: these bound both
    ends of the part that is not negligible.
    """
    variances = 1 / (curvature + least)
    log_size = jnp.log(jnp.sum(variances + (force * variances) ** 2))
    low = (math.lgamma(shape + 1) - _NEGLIGIBLE) / shape - log_size
    decay = len(curvature) / 2 - shape  # s/2
    log_bound = shape * log_size - jnp.sum(jnp.log(2 * variances)) / 2
    high = (log_bound - math.lgamma(shape) - math.log(decay) + _NEGLIGIBLE) / decay

    def log_weights(log_t):
        return shape * log_t + _log_evidence(least + 2 * jnp.exp(log_t), curvature, force)

    grid = jnp.linspace(low, high, _NODES // 2)
    heights = log_weights(grid)
    counts = heights - jnp.max(heights) > -_NEGLIGIBLE
    cell = grid[1] - grid[0]
    low = jnp.min(jnp.where(counts, grid, jnp.inf)) - cell
    high = jnp.max(jnp.where(counts, grid, -jnp.inf)) + cell
    grid = jnp.linspace(low, high, _NODES)
    weights = jax.nn.softmax(log_weights(grid))
    total = curvature[None] + least + 2 * jnp.exp(grid)[:, None]
    return force * (weights @ (1 / total))


@functools.partial(jax.jit, static_argnames="nodes")
def _integrate_sphere(curvature: Array, force: Array, radius_sq: Real, nodes: int) -> Array:  # [d]
    """Integrate over q = p + min Λ along q = q₀ (1 + iv)², q₀ the saddle point of the integrand.

    The integrand e^{ρ²q/2} · evidence decays along the parabola, and the trapezoidal rule converges
    exponentially (Weideman and Trefethen 2007, for Laplace transforms).
    """
    above = curvature - jnp.min(curvature)
    strength = jnp.sum(force**2)
    low = -jnp.log(jnp.asarray(radius_sq, force.dtype))
    d = len(force)
    high = low + jnp.log((d + jnp.sqrt(d**2 + 4 * strength * radius_sq)) / 2)

    def bisect(_, ends):  # E |w|² falls with the precision
        middle = (ends[0] + ends[1]) / 2
        variances = 1 / (above + jnp.exp(middle))
        is_long = jnp.sum(variances + (force * variances) ** 2) > radius_sq
        return jnp.where(is_long, middle, ends[0]), jnp.where(is_long, ends[1], middle)

    saddle = jnp.exp(jax.lax.fori_loop(0, 50, bisect, (low, high))[0])
    variances = 1 / (above + saddle)
    bend = jnp.sum(variances**2 / 2 + force**2 * variances**3)
    width = 1 / (2 * saddle * jnp.sqrt(bend))  # of the peak in v; beyond it e^{-ρ²q₀v²/2}
    end = jnp.sqrt(2 * _NEGLIGIBLE / (radius_sq * saddle)) / width
    end = jnp.arcsinh(jnp.maximum(end, 2 * _NEGLIGIBLE**0.5))
    grid = jnp.linspace(0.0, end, nodes)
    path = jax.lax.complex(jnp.ones_like(grid), width * jnp.sinh(grid))  # 1 + iv
    measure = path * jnp.cosh(grid).astype(path.dtype)
    above, complex_force = above.astype(path.dtype), force.astype(path.dtype)
    q = saddle.astype(path.dtype) * path**2
    log_height = jnp.asarray(radius_sq, q.dtype) / 2 * q + _log_evidence(q, above, complex_force)
    height = measure * jnp.exp(log_height - log_height[0])
    height = height.at[0].mul(0.5)  # the path is symmetric: twice the real part of its upper half
    means = jnp.sum(height[:, None] / (above[None] + q[:, None]), axis=0)
    return force * means.real / jnp.sum(height).real
