"""The risk of the one-layer optimum when it is applied again and again.

This is descent with the step that is best for one layer: a chain of thought, or a looped layer
(derived here; a chain of thought as steps of descent: 2502.21212; its asymptotic risk: 2606.03217).
The prompts and the risk are those of ``depth``.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import Real, check_at_least
from lsa_lab.theory.domains import check, check_sizes
from lsa_lab.theory.wishart import wishart_quadrature


def iterated_risk(n: int, d: int, noise_var: float, steps: int) -> np.ndarray:  # [steps+1]
    """Return R_0 to R_k of the one-layer optimum applied k times, at finite n and d:

        R_k = ∫ (1 - ah)^{2k} + (s/h)(1 - (1 - ah)^k)² dμ,  a = 1/(1 + (d + 1 + dσ²)/n),  s = σ²d/n

    μ is the expected density of the eigenvalues of H; unseen directions stay. It is a mean over
    prompts: at small sizes rare prompts with aλ_max > 2, on which the error grows without end,
    dominate it in the end, while the median prompt tends to least squares. Raises ValueError for
    so many steps that the prompts that dominate have a probability below the range of float64.
    Computed on the host in float64.
    """
    n, d = check_sizes(n, d, noise_var)
    check_at_least(steps, "steps", 0)
    noise_var = float(noise_var)
    nodes, counts = wishart_quadrature(n, d, degree=2 * steps)
    h, root = nodes[counts > 0] / n, np.sqrt(counts[counts > 0] / d)  # below 0 by rounding, far out
    factor, spread = 1 - h / (1 + (d + 1 + d * noise_var) / n), noise_var * d / n / h
    risks, left = [], root  # the root of a node's mass times (1 - ah)^k
    for step in range(steps + 1):
        parts = left**2 + spread * (root - left) ** 2
        if not parts[-1] < 1e-9 * parts.sum() < 1e200:
            raise ValueError(
                f"steps = {steps}: from {step} on the mean at n = {n}, d = {d} is that of prompts "
                "with a probability below the range of float64; take fewer steps"
            )
        risks.append(max(d - n, 0) / d + float(parts.sum()))
        left = left * factor
    return np.array(risks)


def iterated_risk_limit(alpha: Real, noise_var: Real, steps: int) -> Array:  # [steps+1]
    """Return R_0 to R_k at d → ∞, n/d → α, with a = α/(1 + α + σ²).

    As aλ_max = (1 + √α)²/(1 + α + σ²) ≤ 2, with equality at α = 1, σ = 0 alone, a layer that was
    trained for one step may be iterated for ever. It ends at least squares; with noise a finite
    number of steps is the best (derived here). By Gauss's rule for the law of Marchenko and Pastur,
    times h a semicircle; exact but for rounding.
    """
    steps = check_at_least(steps, "steps", 0)
    check(alpha=alpha, noise_var=noise_var)
    return _iterated_risk_limit(jnp.asarray(alpha, float), jnp.asarray(noise_var, float), steps)


@functools.partial(jax.jit, static_argnames="steps")
def _iterated_risk_limit(alpha: Array, noise_var: Array, steps: int) -> Array:  # [steps+1]
    count = steps + 64
    angle = jnp.arange(1.0, count + 1) * (np.pi / (count + 1))
    h = (1 + 1 / alpha) + 2 / jnp.sqrt(alpha) * jnp.cos(angle)
    mass = 2 / (count + 1) * jnp.sin(angle) ** 2 / h
    # The rule is exact for polynomials times h, hence for all but the 1/h of (1 - ah)^{2k}/h.
    unseen = 1 - mass.sum()  # with the error of the rule at 1/h
    factor, spread = 1 - h * alpha / (1 + alpha + noise_var), noise_var / alpha / h

    def step(left: Array, _: None) -> tuple[Array, Array]:
        risk = unseen + mass @ (left**2 + spread * (1 - left) ** 2)
        return left * factor, risk

    return jax.lax.scan(step, jnp.ones(count), None, length=steps + 1)[1]
