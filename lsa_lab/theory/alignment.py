"""What one layer costs on tasks of one covariance after pretraining on tasks of another.

The setting of ``asymptotics``, with tasks w of N(0, C) in the pretraining and N(0, T) in the test
(Letey, Zavatone-Veth, Lu and Pehlevan 2509.26551; docs/theory, "Tasks of another covariance"). Of T
the variances along the eigenvectors of C decide.

    >>> risks = aligned_risk(jnp.ones(2), jnp.ones(2), alpha=2.0, kappa=jnp.inf, tau=jnp.inf,
    ...                      noise_var=1.0)
    >>> print(risks.new_tasks)  # ridgeless_risk's
    1.5
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_ratio, check_variance, is_concrete
from lsa_lab.theory.asymptotics import Risks, Spectrum, pretraining_risk, root_of


def aligned_risk(
    train: ArrayLike,  # [d]
    test: ArrayLike,  # [d]
    alpha: ArrayLike,  # []
    kappa: ArrayLike,  # []
    tau: ArrayLike,  # []
    noise_var: ArrayLike,  # []
) -> Risks:
    """Least squares where tau > 1, the shortest interpolator where tau < 1, infinite at tau = 1.

    ``train``: the eigenvalues of C; ``test``: uᵀTu for its eigenvectors u in that order. Raises
    ValueError for a variance below 0, a ratio that is not above it, and ``train`` of zeros.
    """
    train, test = (jnp.asarray(values, float) for values in (train, test))
    chex.assert_rank([train, test], 1, custom_message="train and test are variances [d]")
    chex.assert_equal_shape([train, test])
    for name, value in dict(train=train, test=test, noise_var=noise_var).items():
        check_variance(value, name)
    for name, value in dict(alpha=alpha, kappa=kappa, tau=tau).items():
        check_ratio(value, name)
    if is_concrete(alpha) and not np.isfinite(np.asarray(alpha)).all():
        raise ValueError(f"alpha = {alpha}: prompts are finite; take a large number")
    if is_concrete(train) and not np.any(np.asarray(train) > 0):
        raise ValueError("train is 0: there is no task to learn")
    place = [jnp.asarray(value, float) for value in (alpha, kappa, tau, noise_var)]
    chex.assert_rank(place, 0, custom_message="one place: use jax.vmap for more")
    return _aligned_risk(train, test, *place)


@jax.jit
def _aligned_risk(
    train: Array, test: Array, alpha: Array, kappa: Array, tau: Array, noise_var: Array
) -> Risks:
    unit = train.mean()  # the level is looked for near 1
    train, test, noise_var = train / unit, test / unit, noise_var / unit
    q, c = (1 + noise_var) / alpha, 1 / kappa

    def unfitted(nu: Array) -> Array:  # ν M(q + ν) - 1 + τ, in the form that loses less at this τ
        at = _spectrum(q + nu, train, c)
        few = tau - (at.share + q * at.transform).mean()
        return jnp.where(tau < 0.5, few, (nu * at.transform).mean() - (1 - tau))

    level = jnp.where(tau < 1, root_of(unfitted, q), 0.0)
    own, at = (_spectrum(z, train, c) for z in (q, q + level))
    mean_own, mean_at = (jax.tree.map(jnp.mean, spectrum) for spectrum in (own, at))
    missed = jnp.maximum(1 - 1 / tau, 0)
    old = pretraining_risk(level, mean_own, mean_at, missed, q, tau, noise_var)
    spread = (test.mean() + noise_var) / alpha  # h has the variances T + spread in the test
    bias = (test * (q + level) ** 2 * at.square).mean() + spread * at.share_square.mean()
    noise = old / tau * ((test + spread) * (at.share_slope + q * at.square)).mean()
    return Risks(unit * (noise_var + bias + noise), unit * old)


def _spectrum(z: Array, train: Array, c: Array) -> Spectrum:  # of [d]
    """Along the eigenvectors of C, with ``train`` its eigenvalues λ: E 1/(R + z) = 1/(s λ + z) with
    s = 1 - c mean s λ/(s λ + z), and the others derived from it by z."""

    def excess(s: Array) -> Array:
        return s - 1 + c * (s * train / (s * train + z)).mean()

    s = root_of(excess, z)
    at = 1 / (s * train + z)
    slope = c * (train * at**2).mean()
    straight = s / (1 + z * slope)  # s - z s'
    slope = slope * straight  # s'
    share = s * train * at
    return Spectrum(
        at,
        (slope * train + 1) * at**2,
        share,
        straight * train * at**2,
        train * (s**2 * train + z**2 * slope) * at**2,
        train * (s * train + z * c * share.mean()) * at,
    )
