"""The least risk of L steps of descent that all prompts share: the gain of depth.

A stack of L layers of linear attention computes ŵ = g(H) Xᵀy/n with H = XᵀX/n and deg g < L (A2's
and von Oswald's layers are its steps). X is [n, d] with independent N(0, 1) entries, y = Xw + ε,
|w|² = 1 on average, ε of variance σ², and the risk is E |ŵ - w|², the label's noise left out.
Functions that end in ``_at`` hold at finite n and d; they are computed on the host in float64
without sampling, and are not for use under jit.
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
