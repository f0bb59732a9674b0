"""The least risk of L steps of descent that all prompts share: the gain of depth.

A stack of L layers of linear attention computes ŵ = g(H) Xᵀy/n with H = XᵀX/n and deg g < L (A2's
and von Oswald's layers are its steps). X is [n, d] with independent N(0, 1) entries, y = Xw + ε,
|w|² = 1 on average, ε of variance σ², and the risk is E |ŵ - w|², the label's noise left out.
``iterated`` and functions that end in ``_at`` hold at finite n and d; they are computed on the host
in float64 without sampling, and are not for use under jit.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import Real, check_at_least
from lsa_lab.theory.domains import check, check_sizes
from lsa_lab.theory.wishart import wishart_quadrature

_FEWEST_NODES = 4  # of the density, for each degree of the polynomial


def best_descent(alpha: Real, noise_var: Real, depth: int) -> Array:  # [depth+1]
    """Return lower bounds R_0 to R_L on the risk of 0 to L steps of descent, d → ∞, n/d → α:

        R_l = (σ² + R_{l-1}) / (α + σ² + R_{l-1}),  R_0 = 1.

    Its fixed point (√((α + σ² - 1)² + 4σ²) - (α + σ² - 1))/2 is the risk of ridge regression, the
    Bayes rule's (derived here; docs/theory, "Depth is state evolution"; average-case optimal
    methods: Pedregosa and Scieur 2002.04756). Real steps reach the
    bound of their depth only where 1 - hg has real roots.
    """
    depth = check_at_least(depth, "depth", 0)
    check(alpha=alpha, noise_var=noise_var)
    return _evolve(jnp.asarray(alpha, float), jnp.asarray(noise_var, float), depth)


@functools.partial(jax.jit, static_argnames="depth")
def _evolve(alpha: Array, noise_var: Array, depth: int) -> Array:  # [depth+1]
    def layer(risk: Array, _: None) -> tuple[Array, Array]:
        risk = (noise_var + risk) / (alpha + noise_var + risk)
        return risk, risk

    later = jax.lax.scan(layer, jnp.ones(()), None, length=depth)[1]
    return jnp.concatenate([jnp.ones(1), later])


def best_descent_at(n: int, d: int, noise_var: float, depth: int) -> np.ndarray:  # [depth+1]
    """Return lower bounds R_0 to R_L on the risk of 0 to L steps of descent at finite n and d.

    R_l is the least E |ŵ - w|² of any g of degree below l: the integral of 1 - 2hg + h(h + s)g²,
    s = σ²d/n, over the expected density of eigenvalues of H. With polynomials p_k orthonormal in
    the weight h(h + s) it is R_l = 1 - Σ_{k<l} (∫ h p_k)² (derived here; docs/theory, "The best
    steps at finite sizes").
    """
    n, d = check_sizes(n, d, noise_var)
    check_at_least(depth, "depth", 0)
    nodes, counts = wishart_quadrature(n, d)
    if depth * _FEWEST_NODES > len(nodes):
        most = len(nodes) // _FEWEST_NODES
        raise ValueError(f"depth = {depth}: at most {most} at n = {n}, d = {d}")
    h, mass = nodes / n, counts / d
    weight = mass * h * (h + float(noise_var) * d / n)
    risks, before, now = [1.0], np.zeros_like(h), np.full_like(h, 1 / np.sqrt(weight.sum()))
    for _ in range(depth):
        risks.append(risks[-1] - float((mass * h) @ now) ** 2)
        # The three-term recursion of orthonormal polynomials (Lanczos on the nodes).
        after = (h - weight @ (h * now**2)) * now
        after -= (weight @ (after * before)) * before + (weight @ (after * now)) * now
        size = np.sqrt(weight @ after**2)
        before, now = now, after / size if size > 0 else np.zeros_like(h)
    return np.array(risks)


def tied_descent_at(n: int, d: int, noise_var: float, depth: int) -> np.ndarray:  # [depth+1]
    """Return the risks R_0 to R_L of a looped stack, whose l layers share the best step a:

        R_l = min_a ∫ (1 - ah)^{2l} + (s/h)(1 - (1 - ah)^l)² dμ,  s = σ²d/n

    With enough noise it is as low as that of free real steps. Without noise it is much higher: at
    α = 1 and d → ∞ it is (2l)!/(2^l l!)², where free steps have 1/(l + 1) (derived here;
    docs/theory, "Tied layers"). Accurate to about 1e-10.
    """
    n, d = check_sizes(n, d, noise_var)
    check_at_least(depth, "depth", 0)
    nodes, counts = wishart_quadrature(n, d)
    h, mass = nodes / n, counts / d
    spread, unseen = float(noise_var) * d / n / h, max(d - n, 0) / d

    def risk(steps: np.ndarray, power: int) -> np.ndarray:  # [steps]
        left = (1 - steps[:, None] * h) ** power
        return unseen + (left**2 + spread * (1 - left) ** 2) @ mass

    risks = [1.0]
    for power in range(1, depth + 1):
        low, high = 0.0, 2.0  # above 2, the mean of h, which is 1, has left [-1, 1]
        for _ in range(8):  # each round keeps a fiftieth of the interval around the least
            steps = np.linspace(low, high, 101)
            values = risk(steps, power)
            best = int(np.argmin(values))
            low, high = steps[max(best - 1, 0)], steps[min(best + 1, 100)]
        risks.append(float(values[best]))
    return np.array(risks)


def iterated(n: int, d: int, noise_var: float, steps: int) -> np.ndarray:  # [steps+1]
    """Return R_0 to R_k of the one-layer optimum applied k times, a chain of thought (2502.21212):

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


def iterated_limit(alpha: Real, noise_var: Real, steps: int) -> Array:  # [steps+1]
    """Return R_0 to R_k at d → ∞, n/d → α, with a = α/(1 + α + σ²).

    As aλ_max = (1 + √α)²/(1 + α + σ²) ≤ 2, with equality at α = 1, σ = 0 alone, a layer that was
    trained for one step may be iterated for ever. It ends at least squares; with noise a finite
    number of steps is the best (derived here). By Gauss's rule for the law of Marchenko and Pastur,
    times h a semicircle; exact but for rounding.
    """
    steps = check_at_least(steps, "steps", 0)
    check(alpha=alpha, noise_var=noise_var)
    return _iterated_limit(jnp.asarray(alpha, float), jnp.asarray(noise_var, float), steps)


@functools.partial(jax.jit, static_argnames="steps")
def _iterated_limit(alpha: Array, noise_var: Array, steps: int) -> Array:  # [steps+1]
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
