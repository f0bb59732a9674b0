"""The best of all rules that commute with rotations of the covariates, without sampling.

Such a rule has the same risk for every turned w, hence its risk is the average over rotations of
the distribution of w, for which the posterior mean is best. So none of these rules, linear in the
labels or not, is better than the posterior mean for |w| as in the task and a uniform direction
(derived here; docs/theory, "The rotation-equivariant Bayes rule").
"""

import functools
import itertools
import math
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import (
    Real,
    admit,
    check_at_least,
    check_spread,
    check_whole,
    is_concrete,
    number,
)
from lsa_lab.estimators.least_squares import column_space, ridge
from lsa_lab.prompts import Prompt

Signal = Literal["gaussian", "flat"]
MAX_SIGNED = 100_000  # supports with signs that flat_posterior_mean is willing to enumerate
NODES = 256  # of the integral over the precision of w; half of them for flat non-zeros
_NO_WEIGHTS = "weights without spread are 0"
_NOISELESS = "without noise the posterior divides by 0; take a small one"
_NEGLIGIBLE = 30.0  # e^-30 of an integral is left out at either end


def rotation_equivariant_ridge(
    prompt: Prompt, squared_length: Real, noise_std: Real
) -> Array:  # [d]
    """The best of them that is linear in the labels: ridge with penalty σ²d/(n E|w|²)
    (docs/theory, "The rotation-invariant bound").
    """
    prompt = admit(prompt)
    n, d = prompt.x.shape
    check_spread(noise_std, "noise_std")
    squared_length = number(squared_length, "squared_length", prompt, _NO_WEIGHTS)
    return ridge(prompt, noise_std**2 * d / (n * squared_length))


def rotation_equivariant_posterior_mean(
    prompt: Prompt,
    sparsity: int | None,
    weight_std: Real,
    noise_std: Real,
    *,
    signal: Signal = "gaussian",
    nodes: int = NODES,
) -> Array:  # [d]
    """E(w | demonstrations) if w/|w| is uniform and |w| is distributed as that of ``sparsity``
    non-zeros N(0, weight_std²), or ± weight_std if flat; None are d of them.

    Exact, in one dimension, since either distribution of |w| is an integral of Gaussian densities:
    |w|² ~ τ² χ²_s has a density of w ∝ |w|^{s-d} e^{-|w|²/2τ²} with
    |w|^{-2a} ∝ ∫ t^{a-1} e^{-t|w|²} dt, and δ(|w|² - ρ²) ∝ ∫ e^{z(ρ² - |w|²)} dz along any path
    around the singularities. So w is a mixture of N(0, I/p), p = 1/τ² + 2t or 2z, with the
    weight t^{a-1} p^{-d/2} dt or e^{zρ²} p^{-d/2} dz, each with its ridge rule (derived here;
    docs/theory, "The rotation-equivariant Bayes rule"). ``nodes`` of the integral are enough for
    rounding alone to be left; fewer are quicker and not exact.
    """
    prompt = admit(prompt, factored=True)
    nodes = check_at_least(nodes, "nodes", 4)
    d = prompt.x.shape[1]
    count = _non_zeros(sparsity, d)
    if signal not in get_args(Signal):
        raise ValueError(f"signal = {signal!r}: choose one of {', '.join(get_args(Signal))}")
    check_spread(noise_std, "noise_std")
    weight_std = _spread(weight_std, "weight_std", prompt, _NO_WEIGHTS)
    squared_length = count * weight_std**2
    if signal == "gaussian" and count == d:
        return rotation_equivariant_ridge(prompt, squared_length, noise_std)
    noise_std = _spread(noise_std, "noise_std", prompt, _NOISELESS)
    curvature, force, basis = _likelihood(prompt.x, prompt.y, noise_std)
    if signal == "flat":
        coordinates = _on_a_sphere(curvature, force, squared_length, nodes // 2)
    else:
        coordinates = _chi_squared(curvature, force, (d - count) / 2, 1 / weight_std**2, nodes)
    return basis @ coordinates


def flat_posterior_mean(
    prompt: Prompt, sparsity: int | None, weight_std: Real, noise_std: Real
) -> Array:  # [d]
    """E(w | demonstrations) if ``sparsity`` weights, anywhere, are ± τ: Σ p(w) w over all such w,
    p(w) ∝ exp((c·w - w·(Gw)/2)/σ²), G = XᵀX, c = Xᵀy, τ = weight_std (docs/theory, "The sparse
    Bayes rule").

    Its cost is that of 2^s (d choose s) numbers; above ``MAX_SIGNED`` of them it refuses.
    """
    prompt = admit(prompt)
    d = prompt.x.shape[1]
    s = _non_zeros(sparsity, d)
    weight_std = _spread(weight_std, "weight_std", prompt, _NO_WEIGHTS, positive=False)
    noise_std = _spread(noise_std, "noise_std", prompt, _NOISELESS)
    if math.comb(d, s) * 2**s > MAX_SIGNED:
        raise ValueError(f"{s} signs among {d} weights: more than {MAX_SIGNED} are not enumerated")
    supports = np.array(list(itertools.combinations(range(d), s)))  # [m, s]
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=s)))  # [2^s, s]
    gram, moment = prompt.x.T @ prompt.x, prompt.x.T @ prompt.y
    values = weight_std * jnp.asarray(signs, gram.dtype)
    blocks = gram[supports[:, :, None], supports[:, None]]  # [m, s, s]
    linear = moment[supports] @ values.T  # [m, 2^s]
    quadratic = jnp.einsum("mij,vi,vj->mv", blocks, values, values)
    share = jax.nn.softmax((linear - quadratic / 2) / noise_std**2, axis=(0, 1))
    return jnp.zeros(d, gram.dtype).at[supports].add(share @ values)


def _spread(
    value: Real, name: str, prompt: Prompt, advice: str, positive: bool = True
) -> Array:  # []
    """A standard deviation that has a variance in the precision of the prompt."""
    check_spread(value, name)
    spread = number(value, name, prompt, advice, positive)
    if is_concrete(value):
        number(float(value) ** 2, f"{name}²", prompt, advice, positive)
    return spread


def _non_zeros(sparsity: int | None, d: int) -> int:
    if sparsity is None:
        return d
    if not 1 <= check_whole(sparsity, "sparsity") <= d:
        raise ValueError(f"sparsity = {sparsity}, d = {d}: choose 1 to {d}")
    return int(sparsity)


def _likelihood(x: Array, y: Array, noise_std: Array) -> tuple[Array, Array, Array]:
    """Λ [d], f [d], V [d, d] of log p(y | x, w) = f·Vᵀw - Vᵀw·(ΛVᵀw)/2 + ..., by the SVD of x: both
    are 0, and not rounding over σ², where no demonstration reaches."""
    n, d = x.shape
    _, _, _, kept, exponents = column_space(x)
    order = jnp.argsort(-exponents)  # small columns after large ones keep their digits
    left, singular, rows = jnp.linalg.svd(x[:, order], full_matrices=n < d)
    rows = jnp.zeros_like(rows).at[:, order].set(rows)
    reached = jnp.arange(len(singular)) < kept.sum()
    slopes = jnp.where(reached, singular, 0) / noise_std
    padding = (0, d - len(slopes))
    force = slopes * (left.T[: len(slopes)] @ y) / noise_std
    return jnp.pad(slopes**2, padding), jnp.pad(force, padding), rows.T


def _log_evidence(precision: Array, curvature: Array, force: Array) -> Array:  # [q]
    """log ∫ exp(-p|w|²/2 - w·(Λw)/2 + f·w) dw, up to a constant, at every p."""
    total = curvature[None] + precision[:, None]
    return jnp.sum((force[None] ** 2 / total - jnp.log(total)) / 2, axis=1)


def _chi_squared(
    curvature: Array, force: Array, shape: float, floor: Real, nodes: int
) -> Array:  # [d]
    """The trapezoidal rule in log t, t^{a-1} dt = e^{a log t} d(log t), where it is not negligible.

    With f(t) = E e^{-t|w|²} under the Gaussian posterior at t = 0, the integral is at least
    Γ(a) M^{-a}, M = E|w|², and f is at most 1 and at most Π_k (2t C_k)^{-1/2}: both ends follow.
    """
    variances = 1 / (curvature + floor)
    size = jnp.log(jnp.sum(variances + (force * variances) ** 2))
    low = (math.lgamma(shape + 1) - _NEGLIGIBLE) / shape - size
    tail = len(curvature) / 2 - shape  # s/2
    rest = shape * size - jnp.sum(jnp.log(2 * variances)) / 2
    high = (rest - math.lgamma(shape) - math.log(tail) + _NEGLIGIBLE) / tail

    def log_weights(log_t):
        return shape * log_t + _log_evidence(floor + 2 * jnp.exp(log_t), curvature, force)

    grid = jnp.linspace(low, high, nodes // 2)
    heights = log_weights(grid)
    counts = heights - jnp.max(heights) > -_NEGLIGIBLE  # of large ones the difference is left
    cell = grid[1] - grid[0]
    low = jnp.min(jnp.where(counts, grid, jnp.inf)) - cell
    high = jnp.max(jnp.where(counts, grid, -jnp.inf)) + cell
    grid = jnp.linspace(low, high, nodes)
    share = jax.nn.softmax(log_weights(grid))
    total = curvature[None] + floor + 2 * jnp.exp(grid)[:, None]
    return force * (share @ (1 / total))


@functools.partial(jax.jit, static_argnames="nodes")
def _on_a_sphere(curvature: Array, force: Array, radius_sq: Real, nodes: int) -> Array:  # [d]
    """The integral over q = p + min Λ along q = q₀ (1 + iv)², q₀ the saddle point of the integrand
    e^{ρ²q/2} · evidence on the positive axis. It falls off along the parabola, and the trapezoidal
    rule converges exponentially (Weideman and Trefethen 2007, for Laplace transforms)."""
    above = curvature - jnp.min(curvature)
    strength = jnp.sum(force**2)
    low = -jnp.log(jnp.asarray(radius_sq, force.dtype))
    d = len(force)
    high = low + jnp.log((d + jnp.sqrt(d**2 + 4 * strength * radius_sq)) / 2)

    def halve(_, ends):  # E |w|² falls with the precision
        middle = (ends[0] + ends[1]) / 2
        variances = 1 / (above + jnp.exp(middle))
        long = jnp.sum(variances + (force * variances) ** 2) > radius_sq
        return jnp.where(long, middle, ends[0]), jnp.where(long, ends[1], middle)

    saddle = jnp.exp(jax.lax.fori_loop(0, 50, halve, (low, high))[0])
    variances = 1 / (above + saddle)
    bend = jnp.sum(variances**2 / 2 + force**2 * variances**3)
    width = 1 / (2 * saddle * jnp.sqrt(bend))  # of the peak in v; far from it e^{-ρ²q₀v²/2}
    far = jnp.sqrt(2 * _NEGLIGIBLE / (radius_sq * saddle)) / width
    end = jnp.arcsinh(jnp.maximum(far, 2 * _NEGLIGIBLE**0.5))
    places = jnp.linspace(0.0, end, nodes)
    along = jax.lax.complex(jnp.ones_like(places), width * jnp.sinh(places))
    measure = along * jnp.cosh(places).astype(along.dtype)
    above, pull = above.astype(along.dtype), force.astype(along.dtype)
    q = saddle.astype(along.dtype) * along**2
    log_height = jnp.asarray(radius_sq, q.dtype) / 2 * q + _log_evidence(q, above, pull)
    height = measure * jnp.exp(log_height - log_height[0])
    height = height.at[0].mul(0.5)  # the path is symmetric: twice the real part of its upper half
    means = jnp.sum(height[:, None] / (above[None] + q[:, None]), axis=0)
    return force * means.real / jnp.sum(height).real
