"""What depth buys: the least risk of L steps of descent that all prompts share.

A stack of L layers of linear attention computes ŵ = g(H) Xᵀy/n with H = XᵀX/n and deg g < L (A2's
and von Oswald's layers are its steps). X is [n, d] with independent N(0, 1) entries, y = Xw + ε,
|w|² = 1 on average, ε of variance σ², and the risk is E |ŵ - w|², the label's noise left out.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import (
    Real,
    check_at_least,
    check_ratio,
    check_spread,
    check_variance,
    is_concrete,
)
from lsa_lab.theory.wishart import sizes, wishart_quadrature

_FEWEST_NODES = 4  # of the density, for each degree of the polynomial


def best_descent(alpha: Real, noise_var: Real, depth: int) -> Array:  # [depth+1]
    """R_0 to R_L at d → ∞, n/d → α: the state evolution

        R_l = (σ² + R_{l-1}) / (α + σ² + R_{l-1}),  R_0 = 1.

    Its fixed point is the risk of ridge regression, the Bayes rule's (derived here; docs/theory,
    "Depth is state evolution"; average-case optimal methods: Pedregosa and Scieur 2002.04756). Each
    entry is a bound for stacks of that depth; real steps reach it only where 1 - hg has real roots.
    """
    depth = check_at_least(depth, "depth", 0)
    check_variance(noise_var, "noise_var")
    if is_concrete(alpha) and not alpha > 0:
        raise ValueError(f"alpha = {alpha}: the demonstrations for a covariate are positive")
    return _evolution(jnp.asarray(alpha, float), jnp.asarray(noise_var, float), depth)


@functools.partial(jax.jit, static_argnames="depth")
def _evolution(alpha: Array, noise_var: Array, depth: int) -> Array:  # [depth+1]
    def layer(risk: Array, _: None) -> tuple[Array, Array]:
        risk = (noise_var + risk) / (alpha + noise_var + risk)
        return risk, risk

    later = jax.lax.scan(layer, jnp.ones(()), None, length=depth)[1]
    return jnp.concatenate([jnp.ones(1), later])


def ridge_limit(alpha: Real, noise_var: Real) -> Array:  # []
    """The fixed point: R = (σ² + R)/(α + σ² + R), ridge's risk with the penalty σ²d/n beside H.

    R = (√((α + σ² - 1)² + 4σ²) - (α + σ² - 1)) / 2; at σ = 0 max(1 - α, 0).
    """
    check_variance(noise_var, "noise_var")
    check_spread(alpha, "alpha", "a ratio of sizes")
    alpha, noise_var = jnp.asarray(alpha, float), jnp.asarray(noise_var, float)
    middle = alpha + noise_var - 1
    root = jnp.sqrt(middle**2 + 4 * noise_var)
    # of two forms the one that subtracts nothing
    return jnp.where(middle > 0, 2 * noise_var / (root + jnp.abs(middle)), (root - middle) / 2)


def best_descent_at(n: int, d: int, noise_var: float, depth: int) -> np.ndarray:  # [depth+1]
    """R_0 to R_L at finite n and d, exactly: the least E |ŵ - w|² of any g of degree below l.

    The risk is the integral of 1 - 2hg + h(h + s)g², s = σ²d/n, over the expected density of
    eigenvalues of H; with polynomials p_k orthonormal in the weight h(h + s) it is
    R_l = 1 - Σ_{k<l} (∫ h p_k)² (derived here; docs/theory, "The best steps at finite sizes").
    Computed on the host in float64 by quadrature, without sampling; not for use under jit.
    """
    n, d = sizes(n, d, noise_var)
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
    """R_0 to R_L of a looped stack, whose l layers share one step a, at finite n and d:

        R_l = min_a ∫ (1 - ah)^{2l} + (s/h)(1 - (1 - ah)^l)² dμ,  s = σ²d/n

    with enough noise as low as that of free real steps, without it much higher: at α = 1 and d → ∞
    (2l)!/(2^l l!)² for 1/(l + 1) (derived here; docs/theory, "Tied layers"). On the host in
    float64, without sampling, to about 1e-10; not for use under jit.
    """
    n, d = sizes(n, d, noise_var)
    check_at_least(depth, "depth", 0)
    nodes, counts = wishart_quadrature(n, d)
    h, mass = nodes / n, counts / d
    spread, unseen = float(noise_var) * d / n / h, max(d - n, 0) / d

    def risk(steps: np.ndarray, power: int) -> np.ndarray:  # [steps]
        left = (1 - steps[:, None] * h) ** power
        return unseen + (left**2 + spread * (1 - left) ** 2) @ mass

    risks = [1.0]
    for power in range(1, depth + 1):
        low, high = 0.0, 2.0  # beyond, the mean of h, which is 1, has left [-1, 1]
        for _ in range(8):  # each round leaves a fiftieth of the interval around the least
            steps = np.linspace(low, high, 101)
            values = risk(steps, power)
            best = int(np.argmin(values))
            low, high = steps[max(best - 1, 0)], steps[min(best + 1, 100)]
        risks.append(float(values[best]))
    return np.array(risks)


def iterated(n: int, d: int, noise_var: float, steps: int) -> np.ndarray:  # [steps+1]
    """R_0 to R_k of the one-layer optimum applied k times, at finite n and d:

        R_k = ∫ (1 - ah)^{2k} + (s/h)(1 - (1 - ah)^k)² dμ,  a = 1/(1 + (d + 1 + dσ²)/n),  s = σ²d/n

    μ the expected density of eigenvalues of H, and unseen directions stay. Descent with the step
    that is best for one layer: a chain of thought, or a looped layer (derived here; a chain of
    thought as steps of descent: 2502.21212; its asymptotic risk: 2606.03217). It is the mean over
    prompts, which at small sizes ends up with rare prompts, of aλ_max > 2, on which it grows
    without end, while the median prompt has the least-squares solution. On the host in float64.
    """
    n, d = sizes(n, d, noise_var)
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
                f"steps = {steps}: from {step} on the mean at n = {n}, d = {d} is of prompts whose "
                "probability leaves the range of float64; take fewer steps"
            )
        risks.append(max(d - n, 0) / d + float(parts.sum()))
        left = left * factor
    return np.array(risks)


def iterated_limit(alpha: Real, noise_var: Real, steps: int) -> Array:  # [steps+1]
    """The same at d → ∞, n/d → α, where a = α/(1 + α + σ²).

    As aλ_max = (1 + √α)²/(1 + α + σ²) ≤ 2, with equality at α = 1, σ = 0 alone, a layer that was
    trained for one step may be iterated for ever. It ends at least squares; with noise a finite
    number of steps is the best (derived here). By Gauss's rule for the law of Marchenko and Pastur,
    times h a semicircle; exact but for rounding.
    """
    steps = check_at_least(steps, "steps", 0)
    check_variance(noise_var, "noise_var")
    check_ratio(alpha, "alpha")
    return _iterated_limit(jnp.asarray(alpha, float), jnp.asarray(noise_var, float), steps)


@functools.partial(jax.jit, static_argnames="steps")
def _iterated_limit(alpha: Array, noise_var: Array, steps: int) -> Array:  # [steps+1]
    count = steps + 64
    angle = jnp.arange(1.0, count + 1) * (np.pi / (count + 1))
    h = (1 + 1 / alpha) + 2 / jnp.sqrt(alpha) * jnp.cos(angle)
    mass = 2 / (count + 1) * jnp.sin(angle) ** 2 / h
    # The rule is exact for polynomials times h, hence for all but the 1/h of (1 - ah)^{2k}/h.
    apart = 1 - mass.sum()  # with the unseen directions
    factor, spread = 1 - h * alpha / (1 + alpha + noise_var), noise_var / alpha / h

    def step(left: Array, _: None) -> tuple[Array, Array]:
        risk = apart + mass @ (left**2 + spread * (1 - left) ** 2)
        return left * factor, risk

    return jax.lax.scan(step, jnp.ones(count), None, length=steps + 1)[1]


def rotated_covariance(eigenvalues: ArrayLike, depth: int) -> np.ndarray:  # [d] -> [depth+1]
    """R_0 to R_L for prompts without end whose covariance has these eigenvalues λ, in a basis that
    is drawn anew for every prompt: the least E (ŵ - w)ᵀΣ(ŵ - w), E |w|² = 1, of l shared steps,

        R_l = min_{p(0) = 1, deg p ≤ l} (1/d) Σ λ p(λ)² = 1/Σ_{k≤l} π_k(0)²

    with π_k orthonormal in the weight λ/d; 0 from as many layers on as there are eigenvalues that
    differ. A fixed covariance takes one layer, which inverts it (derived here; that depth helps:
    Bordelon et al. 2510.01098; docs/theory, "Depth
    where the covariance turns"). On the host in float64.
    """
    check_at_least(depth, "depth", 0)
    values = _spectrum(eigenvalues)
    nodes, counts = np.unique(values[values > 0], return_counts=True)
    weight = nodes * counts / len(values)
    rows, ends = [np.full_like(nodes, weight.sum() ** -0.5)], [weight.sum() ** -0.5]  # π_k, π_k(0)
    for _ in range(1, min(depth + 1, len(nodes))):
        after, end = nodes * rows[-1], 0.0
        for _ in range(2):  # twice, for digits
            for row, at_zero in zip(rows, ends, strict=True):
                share = weight @ (after * row)
                after, end = after - share * row, end - share * at_zero
        size = np.sqrt(weight @ after**2)
        rows.append(after / size)
        ends.append(end / size)
    risks = 1 / np.cumsum(np.square(ends))
    return np.pad(risks, (0, depth + 1 - len(risks)))


def moving_inverse(eigenvalues: ArrayLike) -> tuple[np.ndarray, np.ndarray]:  # [m] -> [L] x 2
    """Steps η and factors γ of GD++ that end every covariance with these eigenvalues, in any basis,
    in L = ⌈(m + 1)/2⌉ layers, m the number of those that differ:

        Π_l (1 - η_l κ_l) = 0 at every λ > 0, κ_1 = λ, κ_{l+1} = κ_l (1 - γ_l κ_l)²

    Steps that leave the covariates where they are need m. Each layer ends the least κ, and makes
    the two largest equal by γ = 1/(κ + √(κκ') + κ'). Eigenvalues that are 0, or equal, but for
    rounding are taken so (derived here; docs/theory, "Depth where the covariance turns"). On the
    host in float64, for ``gradient_descent_plus_plus``.
    """
    values = _spectrum(eigenvalues)
    left = np.sort(values)
    left = left[np.diff(left, prepend=0.0) > _rounding(values)]
    steps, gammas = [], []
    while len(left):
        steps.append(1 / left[0])
        left = left[1:]
        gammas.append(1 / (left[-2:].sum() + np.sqrt(left[-2:].prod())) if len(left) > 1 else 0.0)
        left = left * (1 - gammas[-1] * left) ** 2
        left = np.sort(left[:-1] if len(left) > 1 else left)
    return np.array(steps), np.array(gammas)


def power_law(exponent: Real, depth: int) -> Array:  # [depth+1]
    """The same over R_0 where λ times the density of eigenvalues is λ^b on [0, 1], b > -1:

        R_l/R_0 = [Π_{k≤l} k/(k + b + 1)]²

    which falls like l^{-2(b + 1)}; one step that all layers share gives half of that exponent.
    Eigenvalues (k/d)^a have b = 1/a (derived here; Christoffel's function of Jacobi's weight).
    """
    check_at_least(depth, "depth", 0)
    if is_concrete(exponent) and not exponent > -1:
        raise ValueError(f"exponent = {exponent}: at -1 and below the weight has no sum")
    layers, exponent = jnp.arange(1.0, depth + 1), jnp.asarray(exponent, float)
    return jnp.concatenate([jnp.ones(1), jnp.cumprod(layers / (layers + 1 + exponent)) ** 2])


def _spectrum(eigenvalues: ArrayLike) -> np.ndarray:  # [d]
    values = np.asarray(eigenvalues, float)
    least = -_rounding(values) if values.ndim == 1 and np.isfinite(values).all() else np.inf
    if not ((values >= least).all() and (values > 0).any()):
        raise ValueError("eigenvalues [d] are finite, none is negative, and one is positive")
    return np.maximum(values, 0)


def _rounding(values: np.ndarray) -> float:
    """How far from 0, or from each other, eigenvalues are that ought to be 0, or equal."""
    return len(values) * np.finfo(float).eps * np.abs(values).max(initial=0)
