"""The risk of one layer of linear attention after pretraining on finitely many prompts and tasks.

N prompts of n demonstrations, with tasks drawn from k fixed ones, fit one layer by (ridgeless)
regression; d grows with alpha = n/d, kappa = k/d and tau = N/d² fixed (Lu, Letey, Zavatone-Veth,
Maiti and Pehlevan 2405.11751; derived here in another way, docs/theory, "Pretraining on finite
data"). Everything is relative to the variance of the signal: w is N(0, I), x is N(0, I/d),
y = w·x + ε with variance ``noise_var`` of ε, and a risk E (y - ŷ)² contains the noise. Predicting 0
has the risk 1 + noise_var. The risks are limits for d → ∞: at d = 8 measured ones lie 10 to 20 %
above, at d = 40 3 %.

    >>> new, pretraining = ridgeless_risk(alpha=2.0, kappa=jnp.inf, tau=jnp.inf, noise_var=1.0)
    >>> print(new, pretraining)  # ρ + q/(1 + q), q = (1 + ρ)/α
    1.5 1.5
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_broadcast
from lsa_lab.theory.domains import RIDGE, check, check_domain
from lsa_lab.theory.spectra import Spectrum, marchenko_pastur, positive_root, solve_increasing


class Risks(NamedTuple):
    """The risks E (y - ŷ)² on new tasks and on the tasks of the pretraining."""

    new_tasks: Array
    pretraining_tasks: Array


def ridgeless_risk(
    alpha: ArrayLike, kappa: ArrayLike, tau: ArrayLike, noise_var: ArrayLike
) -> Risks:
    """Return the risks of least squares (tau > 1) or of the shortest interpolator (tau < 1).

    At tau = 1 they are infinite. They are limits for d → ∞.

    Args:
        alpha: n/d, positive and finite; all arguments broadcast.
        kappa: k/d, positive; infinite for a new task in every prompt.
        tau: N/d², positive; infinite for unlimited prompts.
        noise_var: the variance ρ of the label noise, for a signal of variance 1.

    Returns:
        The risks on new tasks and on the pretraining's tasks, in the arguments' common shape.

    Raises:
        ValueError: a number lies outside its domain, or shapes do not broadcast.
    """
    alpha, kappa, tau, noise_var = _check(alpha, kappa, tau, noise_var)
    q, c = (1 + noise_var) / alpha, 1 / kappa
    unfitted = jnp.maximum(1 - tau, 0)  # ν M(q + ν) = 1 - τ is a quadratic in ν
    linear = unfitted * (q + 1 - c * jnp.minimum(tau, 1))
    level = positive_root(jnp.minimum(tau, 1), linear, c * q * unfitted**2)
    return _compute_risks(level, jnp.maximum(1 - 1 / tau, 0), q, c, tau, noise_var)


def ridge_risk(
    alpha: ArrayLike, kappa: ArrayLike, tau: ArrayLike, noise_var: ArrayLike, penalty: ArrayLike
) -> Risks:
    """Return the risks of Γ that minimises (1/N) Σ (y - x·Γh)² + (penalty/d) |Γ|²_F.

    They are limits for d → ∞; the arguments are those of ``ridgeless_risk`` and a positive penalty.
    """
    alpha, kappa, tau, noise_var = _check(alpha, kappa, tau, noise_var)
    check_domain("penalty", penalty, RIDGE)
    alpha, kappa, tau, noise_var, penalty = jnp.broadcast_arrays(
        alpha, kappa, tau, noise_var, jnp.asarray(penalty, alpha.dtype)
    )
    return _ridge_risk(alpha, kappa, tau, noise_var, penalty)


@jax.jit
def _ridge_risk(alpha: Array, kappa: Array, tau: Array, noise_var: Array, penalty: Array) -> Risks:
    q, c = (1 + noise_var) / alpha, 1 / kappa

    def excess(level: Array) -> Array:  # grows with the level
        transform = marchenko_pastur(q + level, c).transform
        return (level * transform - 1) / tau + 1 - penalty / level

    level = solve_increasing(excess, q)
    # 1 - tr F/τ with F between 0 and 1, also where the interval of the level ends
    missed = jnp.clip(penalty / level, jnp.maximum(1 - 1 / tau, 0), 1)
    return _compute_risks(level, missed, q, c, tau, noise_var)


def _compute_risks(
    level: Array, missed: Array, q: Array, c: Array, tau: Array, noise_var: Array
) -> Risks:
    """Return the risks of a regression that leaves out the spectrum of R + qI below a level ν.

    R has the spectrum of Marchenko and Pastur; tr stands for the mean over it (docs/theory,
    "Pretraining on finite data").
    """
    above, at_q = marchenko_pastur(q + level, c), marchenko_pastur(q, c)
    pretraining = pretraining_risk(level, at_q, above, missed, q, tau, noise_var)
    bias = (q + level) ** 2 * above.square + q * above.share_square  # tr (1 - Γ)² + q tr Γ²
    noise = pretraining / tau * (1 + q) * (above.share_slope + q * above.square)
    return Risks(noise_var + bias + noise, pretraining)


def pretraining_risk(
    level: Array,  # ν
    at_q: Spectrum,  # the means at q
    above: Spectrum,  # the means at q + ν
    missed: Array,
    q: Array,
    tau: Array,
    noise_var: Array,
) -> Array:
    """Return E_old at a level ν, the risk on the pretraining's tasks.

        E_old (1 - tr F²/τ) = ρ + tr R - tr R²(R + q)⁻¹ + ν² tr R²(R + q)⁻¹(R + q + ν)⁻²

    F = (R + q)(R + q + ν)⁻¹. Where few prompts fit, 1 - tr F²/τ is a small difference; it is
    computed as ``missed``, 1 - tr F/τ, plus ν tr (R + q)(R + q + ν)⁻²/τ (docs/theory, "Pretraining
    on finite data").
    """
    unexplained = noise_var + q * at_q.share
    small = q**2 * at_q.transform + (level**2 - q**2) * above.transform
    small = small - level * (q + level) ** 2 * above.square
    shrunk = jnp.where(level < 1, small, at_q.left - above.left - level * above.share_square)
    within = above.share_slope + q * above.square  # tr (R + q)(R + q + ν)⁻²
    return (unexplained + shrunk) / (missed + level * within / tau)


def _check(alpha: ArrayLike, kappa: ArrayLike, tau: ArrayLike, noise_var: ArrayLike) -> list[Array]:
    """Return the arguments as arrays of one shape."""
    values = {"alpha": alpha, "kappa": kappa, "tau": tau, "noise_var": noise_var}
    check_broadcast(**values)
    check(**values)
    return list(jnp.broadcast_arrays(*(jnp.asarray(value, float) for value in values.values())))
