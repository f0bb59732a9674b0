"""Closed learning curves of layers that read one demonstration after the other.

Everywhere x is N(0, I_d), y = w·x + ε, E |w|² = 1, ε has variance σ² (``noise_var``), and a curve
holds the excess risk r_t = E |ŵ_t - w|² after t = 0, 1, ..., n demonstrations; without sampling.
The layers are those of ``models.recurrent`` (docs/theory, "The state as a regression"). With
``drift`` ρ the task moves after every demonstration, w_{t+1} = ρ w_t + √((1 - ρ²)/d) z_t, and
r_t = E |ŵ_t - w_{t+1}|²; ``theory.drift`` has the ends of these curves.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import (
    Real,
    check_at_least,
    check_correlation,
    check_eigenvalues,
    check_finite,
    check_spread,
    check_symmetric,
    check_variance,
    is_concrete,
)
from lsa_lab.theory.drift import mean_length
from lsa_lab.theory.wishart import sizes, wishart_quadrature


def additive(
    n: int,
    d: int,
    noise_var: Real,
    drift: Real = 1.0,
    correlation: ArrayLike | None = None,  # [n or less]
) -> Array:  # [n+1]
    """Linear attention, ŵ_t = c_t Σ_i y_i x_i with the best c_t:

        1/r_t = 1 + t/(d + 1 + dσ²)

    Every demonstration adds precision, and pays for the interference of all of w (derived here;
    the one-layer optimum of Zhang et al. 2306.09927 at every length). With ``drift`` ρ it is
    Σ_i ω_i y_i x_i with the best ω, a filter whose noise has the variance a = d + 1 + dσ²:

        r_t = ρ² a r_{t-1}/(r_{t-1} + a) + 1 - ρ²

    With ``correlation`` c_k at the lags k = 0, 1, ... (c_0 = 1, and 0 beyond the last) covariates
    are E x_i x_jᵀ = c_|i-j| I along the prompt, and the query is independent of them: interference
    counts t_eff demonstrations, and noise counts t (derived here),

        r_t = 1 - 1/(1 + (d + 1)/t_eff + dσ²/t),  t_eff = t/(1 + 2 Σ_{0<k<t} (1 - k/t) c_k²)
    """
    n, d = _sizes(n, d, noise_var)
    check_correlation(drift, "drift")
    noise, rho = d * jnp.asarray(noise_var, float), jnp.asarray(drift, float)
    if correlation is not None:
        if not is_concrete(drift) or np.any(np.asarray(drift) != 1):
            raise ValueError("drift and correlation: this curve is of one of them; leave one out")
        counts = jnp.arange(1.0, n + 1)
        per_time = (d + 1) * _pairs(n, correlation) / counts**2 + noise / counts
        return jnp.concatenate([jnp.ones(1), per_time / (1 + per_time)])

    return _curve(_additive, jnp.ones(()), jnp.zeros(n), d + 1 + noise, rho)


def _additive(r: Array, _: Array, noise: Array, rho: Array) -> Array:
    return rho**2 * (r - r**2 / (r + noise)) + 1 - rho**2


def _pairs(n: int, correlation: ArrayLike) -> Array:  # [n]
    """Σ_{i,j<t} c_|i-j|² for t = 1, ..., n."""
    known = jnp.asarray(correlation, float)
    if known.ndim != 1 or not known.size:
        raise ValueError(f"correlation has shape {known.shape}: expected [lags], c_0 = 1 first")
    if is_concrete(known) and not (known[0] == 1 and np.all(np.abs(np.asarray(known)) <= 1)):
        raise ValueError("correlation: c_0 is 1, and no other is larger")
    squares = jnp.pad(known[:n] ** 2, (0, max(n - known.size, 0)))
    return jnp.cumsum(2 * jnp.cumsum(squares) - squares[:1])


def delta_rule(n: int, d: int, noise_var: ArrayLike) -> Array:  # [n+1]
    """The delta rule with its best steps β_t = r/((d + 2)r + dσ²), ŵ ← ŵ + β_t (y - ŵ·x)x:

        1/r_t = 1/r_{t-1} + 1/((d + 1) r_{t-1} + dσ_t²)

    ``noise_var`` may be an array [n], of labels whose noise differs: then the noisiest first is the
    best order (derived here; least mean squares, Widrow and Hoff 1960).
    """
    n, d = _sizes(n, d, 0.0)
    check_variance(noise_var, "noise_var")
    if jnp.shape(noise_var) not in ((), (n,)):
        raise ValueError(f"noise_var has shape {jnp.shape(noise_var)}: expected [] or [n] = [{n}]")
    noise = jnp.broadcast_to(jnp.asarray(noise_var, float), (n,))
    return _curve(_delta_rule, jnp.ones(()), d * noise, d + 2.0)


def _delta_rule(r: Array, noise: Array, factor: Array) -> Array:
    return r - r**2 / _or_one(factor * r + noise)


def delta_rule_limit(alpha: Real, noise_var: Real) -> Array:  # []
    """The same at d → ∞, n/d → α: r = σ²/W(σ² e^{σ² + α}), W of Lambert; e^{-α} without noise.

    v = σ²/r solves v + log v = log σ² + σ² + α, found by Newton's steps from above log's bend.
    """
    check_variance(noise_var, "noise_var")
    check_spread(alpha, "alpha", "a ratio of sizes")
    return _delta_rule_limit(jnp.asarray(alpha, float), jnp.asarray(noise_var, float))


@jax.jit
def _delta_rule_limit(alpha: Array, noise: Array) -> Array:  # []
    positive = jnp.where(noise > 0, noise, 1.0)
    target = jnp.log(positive) + positive + alpha

    def newton(_: Any, log_v: Array) -> Array:
        return log_v - (jnp.exp(log_v) + log_v - target) / (jnp.exp(log_v) + 1)

    start = jnp.where(target > 1, jnp.log(jnp.maximum(target, 1.0)), target)
    log_v = jax.lax.fori_loop(0, 40, newton, start)
    decay = jnp.exp(-alpha)
    noiseless = decay + noise * (1 - decay)  # with the derivative that it has at σ = 0
    return jnp.where(noise > 0, positive / jnp.exp(log_v), noiseless)


def implicit(n: int, d: int, noise_var: Real) -> Array:  # [n+1]
    """The delta rule whose step sees |x|², β = r/(|x|²r + dσ²), the best of all such steps:

        r_t = r_{t-1} - E[(r/d)² l/(lr/d + σ²)],  l ~ χ²_d, r = r_{t-1}

    After one demonstration it is the Bayes rule (derived here; the implicit step of Longhorn,
    2407.14207, has this form). The expectation is a sum over nodes, to about 1e-13.
    """
    n, d = _sizes(n, d, noise_var)
    nodes, masses = map(jnp.asarray, wishart_quadrature(1, d))  # of |x|², a χ²_d variable
    noise = jnp.asarray(noise_var, float)
    return _curve(_implicit, jnp.ones(()), jnp.zeros(n), nodes / d, masses / d, noise)


def _implicit(r: Array, _: Array, nodes: Array, masses: Array, noise: Array) -> Array:
    return r - (masses * r**2 * nodes / _or_one(nodes * r + noise)).sum()


def delta(
    n: int, d: int, noise_var: Real, step: Real | None = None, drift: Real = 1.0
) -> Array:  # [n+1]
    """DeltaNet: keys and labels divided by |x|, ŵ ← ŵ + β (y/|x| - ŵ·u)u with u = x/|x|:

        r' = (1 - β(2 - β)/d) r + β² σ²/(d - 2)

    Its floor is βσ²d/((2 - β)(d - 2)). Without ``step`` the best schedule, β = r/(r + dσ²/(d - 2)):
    r' = r - r²/(d(r + dσ²/(d - 2))), which tends to (d/(d - 2)) σ²d/t (derived here; DeltaNet:
    Yang et al. 2406.06484). With noise d > 2: below, 1/|x|² has no mean. ``drift`` needs a step.
    """
    n, d = _sizes(n, d, noise_var)
    extra = _normalised_noise(d, noise_var)
    if step is not None:
        _check_step(step)
        return gated_delta(n, d, noise_var, step, 1.0, drift=drift)
    if not is_concrete(drift) or np.any(np.asarray(drift) != 1):
        raise ValueError("drift without a step: the best schedule is of a task that stands still")
    noise = jnp.broadcast_to(jnp.asarray(d**2 * extra, float), (n,))
    return _curve(_delta_rule, jnp.ones(()), noise, float(d))


def gated_delta(
    n: int,
    d: int,
    noise_var: Real,
    step: Real,
    gate: Real,
    scale: Real | None = None,
    drift: Real = 1.0,
) -> Array:  # [n+1]
    """Gated DeltaNet, ŵ ← gŵ + β (y/|x| - gŵ·u)u, by two scalars m = E ŵ·w and q = E |ŵ|²:

        m' = (1 - β/d) g m + β/d
        q' = (1 - β(2 - β)/d) g² q + 2β(1 - β) g m/d + β²/d + β²σ²/(d - 2)
        r = q - 2m + 1

    At g = 1 it is ``delta`` (derived here; Gated DeltaNet: Yang et al. 2412.06464). A gate below 1
    forgets: with noise the best constant gate and step depend on the length. With ``scale`` c the
    labels are cy, as layers without a division have them: |x| then is noise beside ε, and with
    κ = c E |x| it is κβ/d, 2κβ(1 - β) g m/d and β²c²(1 + σ²) that are added. With ``drift`` m' is
    multiplied by ρ.
    """
    n, d = _sizes(n, d, noise_var)
    _check_step(step)
    product: Real = 1 / d
    if scale is None:
        square = 1 / d + _normalised_noise(d, noise_var)
    else:
        check_variance(noise_var, "noise_var")
        check_finite(scale, "scale", "labels are cy with a number c")
        scale, noise_var = jnp.asarray(scale, float), jnp.asarray(noise_var, float)
        product, square = scale * mean_length(d) / d, scale**2 * (1 + noise_var)
    return _constant_steps(n, step, gate, drift, (1 / d, 1 / d), (product, product, square))


def lms(
    n: int,
    d: int,
    noise_var: Real,
    step: Real,
    gate: Real = 1.0,
    scale: Real = 1.0,
    eigenvalues: ArrayLike | None = None,  # [d]
    drift: Real = 1.0,
) -> Array:  # [n+1]
    """The delta rule with a constant step, a gate and labels cy, ŵ ← gŵ + β (cy - gŵ·x)x:

        m' = (1 - β) g m + βc
        q' = (1 - 2β + β²(d + 2)) g² q + 2βc(1 - β(d + 2)) g m + β²c²(d + 2 + dσ²)

    and r = q - 2m + 1. It falls where β(d + 2) < 2; its floor at g = c = 1 is βdσ²/(2 - β(d + 2))
    (classical; Widrow and Hoff 1960). With ``eigenvalues`` λ, those of the covariance of x, the
    curve is E (ŵ - w)ᵀΛ(ŵ - w), which begins at tr Λ/d. Without a gate it is λ·m; m is the diagonal
    of the error's second moment in Λ's basis and begins at 1/d (docs/theory, "Any covariance"):

        m' = m - 2βλm + β²(2λ²m + λ(λ·m)) + β²σ²λ

    With ``drift`` E ŵ·w, and with ``eigenvalues`` the diagonal of E ŵwᵀ, is multiplied by ρ after
    every step.
    """
    n, d = _sizes(n, d, noise_var)
    if is_concrete(step) and not np.all(np.asarray(step) > 0):
        raise ValueError(f"step = {step}: steps are positive")
    check_finite(scale, "scale", "labels are cy with a number c")
    scale, noise_var = jnp.asarray(scale, float), jnp.asarray(noise_var, float)
    if eigenvalues is not None:
        return _along_eigenvectors(n, d, noise_var, step, gate, scale, drift, eigenvalues)
    labels = scale, scale * (d + 2), scale**2 * (d + 2 + d * noise_var)
    return _constant_steps(n, step, gate, drift, (1.0, d + 2.0), labels)


def _constant_steps(
    n: int, step: Real, gate: Real, drift: Real, keys: tuple, labels: tuple
) -> Array:  # [n+1]
    """r of ŵ ← gŵ + β (v - gŵ·k)k from the multiples of I or w that E kkᵀ, E |k|²kkᵀ, E vk and
    E v|k|²k are, and from E v²|k|²."""
    _check_gate(gate)
    check_correlation(drift, "drift")
    beta, g, rho = (jnp.asarray(each, float) for each in (step, gate, drift))
    m, q = _curve(_step, jnp.zeros(2), jnp.zeros(n), beta, g, rho, keys, labels).T
    return _or_infinite(q - 2 * m + 1, q)


def _step(
    moments: Array, _: Array, beta: Array, g: Array, rho: Array, keys: tuple, labels: tuple
) -> Array:
    (moment, fourth), (product, third, square), (m, q) = keys, labels, moments
    kept = (1 - 2 * beta * moment + beta**2 * fourth) * g**2 * q
    kept += 2 * beta * (product - beta * third) * g * m
    after = rho * ((1 - beta * moment) * g * m + beta * product)
    return jnp.stack([after, kept + beta**2 * square])


def _along_eigenvectors(
    n: int,
    d: int,
    noise_var: Array,
    step: Real,
    gate: Real,
    scale: Array,
    drift: Real,
    eigenvalues: ArrayLike,
) -> Array:  # [n+1]
    """λ·(q - 2p + 1/d) of ``lms``, p and q the diagonals of E ŵwᵀ and E ŵŵᵀ in Λ's basis:

    p' = ρ[(1 - βλ) g p + βcλ/d]
    q' = g²(q - 2βλq + β²Kq) + 2βcg(λp - βKp) + β²c²(K1/d + σ²λ),  Kv = 2λ²v + λ(λ·v)
    """
    _check_gate(gate)
    if jnp.shape(eigenvalues) != (d,):
        raise ValueError(f"eigenvalues has shape {jnp.shape(eigenvalues)}: expected [d] = [{d}]")
    check_eigenvalues(eigenvalues, "eigenvalues", "a covariance of x")
    check_correlation(drift, "drift")
    beta, g, rho, values = (jnp.asarray(each, float) for each in (step, gate, drift, eigenvalues))
    given = beta, g, rho, values, scale, noise_var
    p, q = jnp.moveaxis(_curve(_vector_step, jnp.zeros((2, d)), jnp.zeros(n), *given), 1, 0)
    return _or_infinite((q - 2 * p + 1 / d) @ values, q)


def _vector_step(
    moments: Array,  # [2, d]
    _: Array,
    beta: Array,
    g: Array,
    rho: Array,
    values: Array,
    scale: Array,
    noise_var: Array,
) -> Array:  # [2, d]
    def fourth(v: Array) -> Array:  # the diagonal of E xxᵀ diag(v) xxᵀ
        return 2 * values**2 * v + values * (values @ v)

    (p, q), first = moments, jnp.full(len(values), 1 / len(values))
    kept = g**2 * (q - 2 * beta * values * q + beta**2 * fourth(q))
    kept += 2 * beta * scale * g * (values * p - beta * fourth(p))
    square = (beta * scale) ** 2 * (fourth(first) + noise_var * values)
    after = rho * ((1 - beta * values) * g * p + beta * scale * values * first)
    return jnp.stack([after, kept + square])


def _or_infinite(risks: Array, squares: Array) -> Array:  # [n+1], [n+1, ...] -> [n+1]
    """The risks, infinite where E |ŵ|² has grown beyond all numbers: what is taken away from it
    then has, too. Where it is NaN from the first step on, so is what was given."""
    grown = ~jnp.isfinite(squares.reshape(len(squares), -1)).all(1)
    return jnp.where(grown & ~jnp.isnan(squares[:2][-1]).any(), jnp.inf, risks)


def inner_steps(step: Real, count: int) -> Array:  # []
    """The step of one pass that does what ``count`` inner steps on the same token do:
    1 - (1 - β)^count, for normalised keys (TTT-linear: Sun et al. 2407.04620; derived here)."""
    _check_step(step)
    return 1 - (1 - jnp.asarray(step, float)) ** check_at_least(count, "count", 0)


def ridge(n: int, d: int, noise_var: float, penalty: float | None = None) -> np.ndarray:  # [n+1]
    """Ridge with ``penalty`` λ beside XᵀX; without one λ = dσ², the Bayes rule for w ~ N(0, I/d):

        r_t = E (1/d) Σ_k (λ² + dσ² x_k)/(x_k + λ)²,  x_k the eigenvalues of XᵀX

    This is what a mesa layer computes (von Oswald et al. 2309.05858, MesaNet 2506.05233). Exact, by
    quadrature over the expected density of eigenvalues, on the host in float64.
    """
    n, d = _sizes(n, d, noise_var)
    noise_var = float(noise_var)
    penalty = d * noise_var if penalty is None else float(penalty)
    if not 0 <= penalty < np.inf:
        raise ValueError(f"penalty = {penalty}: it is finite and not negative")
    if penalty == 0 and noise_var > 0:
        raise ValueError("penalty = 0 with noise: near t = d its risk is infinite; see risk.ols")
    curve = [1.0]
    for t in range(1, n + 1):
        nodes, counts = wishart_quadrature(t, d)
        unseen = max(d - t, 0) / d  # eigenvalues that are zero keep all of w
        filtered = (penalty**2 + d * noise_var * nodes) / (nodes + penalty) ** 2
        curve.append(unseen + float(counts @ filtered) / d)
    return np.array(curve)


def best_weights(
    task_covariance: ArrayLike,  # [n+1, n+1]  E w_i·w_j, the query's task last
    d: int,
    noise_var: Real,
) -> tuple[Array, Array]:  # [n], []
    """The best weights of linear attention where tasks drift, ŵ = Σ_i ω_i y_i x_i, and its risk:

        ω = (C + (d + 1) diag C + dσ²I)⁻¹c,  r = E |w_q|² - c·ω,  C_ij = E w_i·w_j,  c_i = E w_i·w_q

    Gates are such weights: constant ones are a geometric ω, and ``drift.additive`` has the best of
    them for a task that moves at one rate (derived here; weighting by gates: Li et al. 2504.04308).
    Raises ValueError where a C_ii + σ² is seen to be 0: that label is 0, and any weight of it is
    the best.
    """
    covariance = jnp.asarray(task_covariance, float)
    if covariance.ndim != 2 or covariance.shape[0] != covariance.shape[1]:
        raise ValueError(f"task_covariance has shape {covariance.shape}: expected [n+1, n+1]")
    check_symmetric(covariance, "task_covariance")
    check_at_least(d, "d")
    check_variance(noise_var, "noise_var")
    among, towards = covariance[:-1, :-1], covariance[:-1, -1]
    own = (d + 1) * jnp.diag(among) + d * jnp.asarray(noise_var, float)
    if is_concrete(own) and not np.all(np.asarray(own) > 0):
        raise ValueError("a task is 0, without noise: its label is 0, and has no best weight")
    weights = jnp.linalg.solve(among + jnp.diag(own), towards)
    return weights, covariance[-1, -1] - towards @ weights


def _sizes(n: int, d: int, noise_var: Any) -> tuple[int, int]:
    """n and d, where n may be 0."""
    check_at_least(n, "n", 0)
    return n, sizes(max(n, 1), d, noise_var)[1]


def _or_one(denominator: Array) -> Array:
    """1 in the place of 0, which stands below a risk of 0."""
    return jnp.where(denominator > 0, denominator, 1.0)


@functools.partial(jax.jit, static_argnums=0)
def _curve(rule: Callable, first: Array, along: Array, *given: Any) -> Array:  # [n+1, ...]
    """The first value and those after each step of the rule."""

    def step(value: Array, entry: Array) -> tuple[Array, Array]:
        value = rule(value, entry, *given)
        return value, value

    return jnp.concatenate([first[None], jax.lax.scan(step, first, along)[1]])


def _normalised_noise(d: int, noise_var: Real) -> Real:
    """E ε²/|x|² = σ²/(d - 2)."""
    if d > 2:
        return jnp.asarray(noise_var, float) / (d - 2)
    if is_concrete(noise_var) and not noise_var > 0:
        return 0.0
    raise ValueError(f"d = {d} with noise: labels divided by |x| have no variance; take d > 2")


def _check_gate(gate: Real) -> None:
    if is_concrete(gate) and not np.all((np.asarray(gate) >= 0) & (np.asarray(gate) <= 1)):
        raise ValueError(f"gate = {gate}: a gate lies in [0, 1]")


def _check_step(step: Real) -> None:
    if is_concrete(step) and not np.all((np.asarray(step) > 0) & (np.asarray(step) < 2)):
        raise ValueError(f"step = {step}: beyond (0, 2) the error of normalised keys does not fall")
