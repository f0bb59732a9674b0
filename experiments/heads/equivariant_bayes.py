"""The best of all rules that commute with rotations of the covariates, without sampling.

Such a rule has the same risk for every turned w, hence its risk is the average over rotations of
the law of w, for which the posterior mean is best. So none of these rules, linear in the labels or
not, is better than the posterior mean for |w| as in the task and a uniform direction (derived
here).
"""

import math

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from lsa_lab import estimators
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask

NODES = 256  # of the integral over the precision of w; half of them for flat non-zeros
_NEGLIGIBLE = 30.0  # e^-30 of an integral is left out at either end


def squared_length(law: LinearTask) -> ArrayLike:  # []
    """E |w|² = s τ², or d τ² for dense weights."""
    return (law.sparsity or law.d) * law.weight_std**2


def ridge(law: LinearTask, prompt: Prompt) -> Array:  # [d]
    """The best of them that is linear in the labels: penalty σ²d/(n E|w|²) (THEORY II.1.9)."""
    return estimators.ridge(prompt, law.noise_std**2 * law.d / (law.n * squared_length(law)))


def bayes(law: LinearTask, prompt: Prompt, *, nodes: int = NODES) -> Array:  # [d]
    """E(w | demonstrations) if w/|w| is uniform and |w| has the law of the task: exact, in one
    dimension, since either law of |w| is an integral of Gaussian densities.

    Gaussian non-zeros have |w|² ~ τ² χ²_s, density of w ∝ |w|^{s-d} e^{-|w|²/2τ²}, and
    |w|^{-2a} ∝ ∫ t^{a-1} e^{-t|w|²} dt. Flat ones have δ(|w|² - ρ²) ∝ ∫ e^{z(ρ² - |w|²)} dz along
    any path around the singularities. So w is a mixture of N(0, I/p), p = 1/τ² + 2t or 2z, each
    with its ridge rule (derived here).
    """
    spectrum, basis = jnp.linalg.eigh(prompt.x.T @ prompt.x)
    noise_var = jnp.asarray(law.noise_std**2, spectrum.dtype)
    curvature = jnp.maximum(spectrum, 0) / noise_var
    force = basis.T @ (prompt.x.T @ prompt.y) / noise_var
    if law.signal == "flat":
        coordinates = _on_a_sphere(curvature, force, squared_length(law), nodes // 2)
    elif law.sparsity in (None, law.d):
        return ridge(law, prompt)
    else:
        shape = (law.d - law.sparsity) / 2
        coordinates = _chi_squared(curvature, force, shape, law.weight_std**-2, nodes)
    return basis @ coordinates


def _log_evidence(precision: Array, curvature: Array, force: Array) -> Array:  # [q]
    """log ∫ exp(-p|w|²/2 - w·(Λw)/2 + f·w) dw, up to a constant, at every p."""
    total = curvature[None] + precision[:, None]
    return jnp.sum((force[None] ** 2 / total - jnp.log(total)) / 2, axis=1)


def _chi_squared(
    curvature: Array, force: Array, shape: float, floor: ArrayLike, nodes: int
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
    counts = heights > jnp.max(heights) - _NEGLIGIBLE
    cell = grid[1] - grid[0]
    low = jnp.min(jnp.where(counts, grid, jnp.inf)) - cell
    high = jnp.max(jnp.where(counts, grid, -jnp.inf)) + cell
    grid = jnp.linspace(low, high, nodes)
    share = jax.nn.softmax(log_weights(grid))
    total = curvature[None] + floor + 2 * jnp.exp(grid)[:, None]
    return force * (share @ (1 / total))


def _on_a_sphere(curvature: Array, force: Array, radius_sq: ArrayLike, nodes: int) -> Array:  # [d]
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
