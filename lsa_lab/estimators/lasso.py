"""The lasso, by coordinate descent and Newton steps on its support."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve

from lsa_lab.arguments import Real, check_number, check_prompt
from lsa_lab.prompts import Prompt
from lsa_lab.scaling import scale_by_power, scale_near_one

_GAP_IN_EPS = 64  # a duality gap of so many units in the last place of |y|²/2n is none
_MAX_ROUNDS = 1_000
_FACE_STEPS = 8  # after each sweep; a ninth seldom changes the weights
_NEGATIVE = "a negative penalty has no minimiser"


def lasso(prompt: Prompt, penalty: Real) -> Array:  # [d]
    """Return the minimiser of |y - Xw|²/2n + penalty |w|₁ (Tibshirani 1996).

    It runs rounds of coordinate descent and Newton steps on the support, until the duality gap is
    below 64 eps |y|²/2n, a round changes last bits only, or 1 000 rounds are over (docs/theory,
    "The Lasso"). The derivative follows from the optimality conditions and needs independent
    columns on the support. Labels and columns may have any unit.
    """
    prompt = check_prompt(prompt, factored=True)
    penalty = check_number(penalty, "penalty", prompt, _NEGATIVE, positive=False)
    return _solve(prompt.x, prompt.y, penalty)


def _scale(
    x: Array, y: Array, penalty: Array
) -> tuple[Array, Array, Array, Array, Array]:  # [n, d], [n], [d], [d], [1]
    """Scale labels and columns to near 1; return them, the penalties and the exponents of 2."""
    (x, x_exponent), (y, y_exponent) = scale_near_one(x, 0), scale_near_one(y)
    exponents = x_exponent.reshape(-1)
    penalties = scale_by_power(jnp.broadcast_to(penalty, exponents.shape), -exponents - y_exponent)
    return x, y, jnp.minimum(penalties, jnp.finfo(x.dtype).max), exponents, y_exponent


def _compute_gap(weights: Array, slope: Array, residual_sq: Array, penalty: Array) -> Array:  # []
    """Return the duality gap, a bound on the objective minus its minimum (derived here).

    With ρ = y - Xw, g = Xᵀρ/n and s = min(1, λ/|g|_∞), the point θ = sρ/n satisfies |Xᵀθ|_∞ <= λ.
    The objective at w minus the dual objective yᵀθ - n|θ|²/2 is a sum of terms that are not
    negative, (1 - s)² |ρ|²/2n + Σ_j (λ|w_j| - s w_j g_j).
    """
    outside = jnp.abs(slope) > penalty
    scale = jnp.min(jnp.where(outside, penalty / jnp.where(outside, jnp.abs(slope), 1), 1))
    slack = penalty * jnp.abs(weights) - scale * weights * slope
    return (1 - scale) ** 2 * residual_sq / 2 + jnp.sum(slack)


@jax.jit
def _solve(x: Array, y: Array, penalty: Array) -> Array:  # [d]
    n, d = x.shape
    x, y, penalty, exponents, y_exponent = _scale(x, y, penalty)
    gram, moment, label_sq = x.T @ x / n, x.T @ y / n, y @ y / n

    def departure(weights):  # zero at the minimiser: the fixed point of a proximal gradient step
        return weights - _soft_threshold(weights + moment - gram @ weights, penalty)

    def minimise(_, start):
        return _descend(gram, moment, label_sq, penalty, start)

    def tangent_solve(linear, right):
        return jnp.linalg.solve(jax.jacobian(linear)(right), right)

    weights = jax.lax.custom_root(departure, jnp.zeros(d, x.dtype), minimise, tangent_solve)
    return scale_by_power(weights, y_exponent - exponents)


def _descend(
    gram: Array, moment: Array, label_sq: Array, penalty: Array, start: Array
) -> Array:  # [d]
    eps = jnp.finfo(gram.dtype).eps

    def one_round(state):
        before, _, count = state
        weights = _sweep(gram, moment, penalty, before)
        weights = jax.lax.fori_loop(
            0, _FACE_STEPS, lambda _, w: _face_step(gram, moment, penalty, w), weights
        )
        slope = moment - gram @ weights
        residual_sq = jnp.maximum(label_sq - weights @ (moment + slope), 0)
        gap = _compute_gap(weights, slope, residual_sq, penalty)
        is_still = jnp.max(jnp.abs(weights - before)) <= 2 * eps * jnp.max(jnp.abs(weights))
        # Strictly below: where the labels are 0, only the change of the weights ends the loop.
        return weights, (gap < _GAP_IN_EPS * eps * label_sq / 2) | is_still, count + 1

    def unfinished(state):
        _, done, count = state
        return ~done & (count < _MAX_ROUNDS)

    return jax.lax.while_loop(unfinished, one_round, (start, jnp.array(False), 0))[0]


def _sweep(gram: Array, moment: Array, penalty: Array, weights: Array) -> Array:  # [d]
    """Minimise over each weight in turn: w_j ← soft(r_j - Σ_{k≠j} H_jk w_k, λ) / H_jj."""
    curvature = jnp.diagonal(gram)
    is_used = curvature > 0  # a column of zeros has no weight
    divisor = jnp.where(is_used, curvature, 1)

    def coordinate(j, weights):
        force = moment[j] - gram[j] @ weights + curvature[j] * weights[j]
        best = _soft_threshold(force, penalty[j]) / divisor[j]
        return weights.at[j].set(jnp.where(is_used[j], best, 0))

    return jax.lax.fori_loop(0, moment.shape[0], coordinate, weights)


def _face_step(gram: Array, moment: Array, penalty: Array, weights: Array) -> Array:  # [d]
    """Move to the minimum among weights of these signs, or until the first weight is zero.

    H_SS p = (r - Hw - λ sign w)_S. Coordinate descent alone takes thousands of sweeps to leave a
    support that is larger than n. H_SS is then singular; adding a multiple of eps keeps p finite
    and a direction of descent, and p becomes so long that some weight is dropped.
    """
    signs = jnp.sign(weights)
    is_active = signs != 0
    lift = 10 * jnp.finfo(gram.dtype).eps * jnp.trace(gram)
    face = jnp.where(is_active[:, None] & is_active[None], gram, 0)
    face = face + jnp.diag(jnp.where(is_active, lift, 1))
    force = jnp.where(is_active, moment - gram @ weights - penalty * signs, 0)
    move = solve(face, force, assume_a="pos")
    shrinks = move * signs < 0
    zero_at = jnp.where(shrinks, -weights / jnp.where(shrinks, move, 1), jnp.inf)
    length = jnp.minimum(jnp.min(zero_at), 1)
    moved = jnp.where(zero_at <= length, 0, weights + length * move)
    return jnp.where(jnp.isfinite(moved).all(), moved, weights)


def _soft_threshold(values: Array, threshold: Array) -> Array:
    return values - jnp.clip(values, -threshold, threshold)
