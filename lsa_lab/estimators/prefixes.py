"""Estimators on every prefix of a prompt."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import Real, check_number, check_prompt, check_range
from lsa_lab.prompts import Prompt
from lsa_lab.scaling import scale_by_power, scale_near_one

_WIDE = 8  # entries; the outer product of shorter vectors is slower as a matrix product


def prefixes(rule: Callable[[Prompt], Array], prompt: Prompt) -> Array:  # [n+1, d]
    """Return the weights of ``rule`` on the first 0, 1, ..., n demonstrations; 0 before the first.

    Each length compiles one program: ``recursive_ridge`` is the fast form of ridge.
    """
    prompt = check_prompt(prompt)
    n, d = prompt.x.shape
    rows = [jnp.zeros(d, prompt.x.dtype)]
    rows += [rule(prompt.replace(x=prompt.x[:t], y=prompt.y[:t])) for t in range(1, n + 1)]
    return jnp.stack(rows)


def recursive_ridge(prompt: Prompt, penalty: Real) -> Array:  # [n+1, d]
    """Return the minimiser of |y - Xw|² + penalty |w|² over the first 0, 1, ..., n demonstrations.

    With penalty dσ² it is the Bayes rule for w ~ N(0, I/d) at every length. Computed by
    ``recursive_least_squares`` in n updates, without a solve, on a scaled prompt.
    """
    prompt = check_prompt(prompt)
    advice = "without one the first steps have no minimiser"
    return _recursive_ridge(prompt, check_number(penalty, "penalty", prompt, advice))


@functools.partial(jax.jit, inline=True)  # a call would hide the constant ones from a gradient
def _recursive_ridge(prompt: Prompt, penalty: Array) -> Array:  # [n+1, d]
    (_, x_exponent), (y, y_exponent) = scale_near_one(prompt.x), scale_near_one(prompt.y[:, None])
    root = jnp.frexp(jnp.sqrt(jax.lax.stop_gradient(penalty)))[1]
    exponent = jnp.maximum(x_exponent, root)  # [1, 1]
    x, ones = scale_by_power(prompt.x, -exponent), jnp.ones_like(prompt.y)
    penalty = scale_by_power(penalty, -2 * exponent.reshape(()))
    later = recursive_least_squares(ones, ones, x, y, penalty)[..., 0]
    later = scale_by_power(later, y_exponent - exponent)
    return jnp.concatenate([jnp.zeros_like(later, shape=(1, later.shape[1])), later])


def kalman_filter(prompt: Prompt, noise_var: Real, drift: Real) -> Array:  # [n+1, d]
    """Return E[w_{t+1} | the first t demonstrations], t = 0, ..., n, of a task that drifts:

        w_1 ~ N(0, I/d),  w_{t+1} = ρ w_t + √((1 - ρ²)/d) z_t,  y_t = w_t·x_t + ε_t

    with the label noise's variance ``noise_var`` and ρ = ``drift``; at ρ = 1 it is
    ``recursive_ridge`` with penalty dσ². Kalman 1960; its risk has no closed form here:

        K = Px/(xᵀPx + σ²),  m ← ρ(m + K(y - x·m)),  P ← ρ²(P - K(Px)ᵀ) + (1 - ρ²)I/d
    """
    prompt = check_prompt(prompt)
    noise_var = check_number(noise_var, "noise_var", prompt, "without noise it is singular")
    check_range(drift, "drift", 1)
    prior = jnp.eye(prompt.x.shape[1], dtype=prompt.x.dtype) / prompt.x.shape[1]
    return filter_labels(prompt, prior, noise_var, jnp.asarray(drift, prompt.x.dtype))[0]


@jax.jit
def filter_labels(
    prompt: Prompt, prior: Array, noise_var: Array, rho: Array
) -> tuple[Array, Array]:  # [n+1, d], [n]
    """Return the means of a Kalman filter from w_1 ~ N(0, prior), and log p(y_t | the labels
    before) without -½ log 2π. The drift keeps the prior."""

    def step(carried: tuple[Array, Array], row: tuple[Array, Array]) -> tuple[tuple, tuple]:
        (mean, covariance), (x, y) = carried, row
        moved, error = covariance @ x, y - x @ mean
        variance = x @ moved + noise_var
        gain = moved / variance
        mean = rho * (mean + gain * error)
        covariance = rho**2 * (covariance - outer(gain, moved)) + (1 - rho**2) * prior
        return (mean, covariance), (mean, -(error**2 / variance + jnp.log(variance)) / 2)

    first = jnp.zeros_like(prompt.x[0])
    later, evidence = jax.lax.scan(step, (first, prior), (prompt.x, prompt.y))[1]
    return jnp.concatenate([first[None], later]), evidence


@jax.custom_jvp
def recursive_least_squares(
    weights: Array,  # [T]
    gates: Array,  # [T]
    x: Array,  # [T, k]
    y: Array,  # [T, v]
    penalty: Array,  # []
) -> Array:  # [T, k, v]
    """Return the minimiser of Σ β_i |y_i - Sᵀx_i|² + penalty |S|² after every row.

    With P = (Σ βxxᵀ + penalty I)⁻¹ = MᵀM, M lower triangular, z = Mx and t_k = g + β Σ_{j≤k} z_j²,

        S ← S + β Mᵀz/t_d (y - Sᵀx)ᵀ
        m_k ← √(t_{k-1}/(g t_k)) (m_k - β z_k/t_{k-1} Σ_{j<k} z_j m_j)

    for the rows m_k of M (a square root of the covariance, Carlson 1973). Rows shrink by a factor,
    where P - Px (Px)ᵀ/... would subtract: the precision does not depend on the penalty (3e-6 after
    512 rows in float32).

    A gate g below 1 discounts all earlier sums and the penalty, as is classical, but no direction
    below k eps of the best known one, which is rounding: nothing overflows where nothing is
    written. The caller checks that gates lie in (0, 1] and that the penalty is positive. A penalty
    below tiny^¾, 2e-29 in float32, is replaced by that.
    """
    return _roots_and_states(weights, gates, x, y, penalty)[1]


def _roots_and_states(
    weights: Array, gates: Array, x: Array, y: Array, penalty: Array
) -> tuple[Array, Array]:  # [T, k, k], [T, k, v]
    """Return M and S after every row."""
    width, limits = x.shape[1], jnp.finfo(x.dtype)
    below = jnp.tril(jnp.ones((width, width), x.dtype), -1)

    def step(carried: tuple[Array, Array], row: tuple) -> tuple[tuple, tuple]:
        (root, state), (beta, g, x, y) = carried, row
        z = root @ x
        after = g + beta * jnp.cumsum(z**2)
        before = jnp.concatenate([g[None], after[:-1]])
        state = state + outer(beta / after[-1] * (z @ root), y - x @ state)
        root = root - (beta * z / before)[:, None] * (below @ (z[:, None] * root))
        root = root * jnp.sqrt(before / after)[:, None]
        pivots = jnp.diagonal(root) ** 2  # of an inverse: the largest is the least known direction
        discounts = width * float(limits.eps) * pivots < pivots.min()
        discounts &= pivots < float(limits.max) ** 0.5
        root = root * jnp.where(discounts, 1 / jnp.sqrt(g), 1)[:, None]
        return (root, state), (root, state)

    penalty = jnp.maximum(penalty, float(limits.tiny) ** 0.75)
    first = jnp.eye(width, dtype=x.dtype) / jnp.sqrt(penalty)
    start = first, jnp.zeros((width, y.shape[1]), x.dtype)
    return jax.lax.scan(step, start, (weights, gates, x, y))[1]


@recursive_least_squares.defjvp
def _regression_derivative(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """Return S and dS = P (dR - dH S), H = Σ βxxᵀ + penalty I and R = Σ βxyᵀ, gated sums."""
    (beta, gates, x, y, penalty), width = primals, primals[2].shape[1]
    roots, states = _roots_and_states(*primals)

    def start(penalty: Array) -> Array:  # [k, k+v]  H beside R
        return penalty * jnp.eye(width, width + y.shape[1], dtype=x.dtype)

    def add(sums: Array, row: tuple) -> tuple[Array, Array]:
        return row[0] * sums + outer(*row[1:]), sums

    def add_change(sums: Array, row: tuple) -> tuple[Array, Array]:
        gate, gate_change, before, weighted_change, pair, weighted, pair_change = row
        sums = gate * sums + gate_change * before
        sums = sums + outer(weighted_change, pair) + outer(weighted, pair_change)
        return sums, sums

    pairs, pair_changes = (jnp.concatenate(rows[2:4], 1) for rows in (primals, tangents))  # [x, y]
    weighted = beta[:, None] * x
    weighted_changes = tangents[0][:, None] * x + beta[:, None] * tangents[2]
    before = jax.lax.scan(add, start(penalty), (gates, weighted, pairs))[1]
    rows = gates, tangents[1], before, weighted_changes, pairs, weighted, pair_changes
    changes = jax.lax.scan(add_change, start(tangents[4]), rows)[1]
    right = changes[..., width:] - changes[..., :width] @ states
    return states, roots.mT @ (roots @ right)


def outer(left: Array, right: Array) -> Array:  # [k], [v] -> [k, v]
    """Return left rightᵀ, where both are wide by a matrix product, whose derivative is one too.

    In a scan over a batch of prompts sums take a fifth to a quarter longer on a CPU.
    """
    if min(left.shape[0], right.shape[0]) < _WIDE:
        return left[:, None] * right[None]
    return jnp.matmul(left[:, None], right[None], precision=jax.lax.Precision.HIGHEST)
