"""The risk of one layer on tasks of one covariance after pretraining on tasks of another.

The setting of ``asymptotics``, with tasks w of N(0, C) in the pretraining and N(0, T) in the test
(Letey, Zavatone-Veth, Lu and Pehlevan 2509.26551; docs/theory, "Tasks of another covariance"). Only
the variances of T along the eigenvectors of C matter.

    >>> risks = aligned_risk(jnp.ones(2), jnp.ones(2), alpha=2.0, kappa=jnp.inf, tau=jnp.inf,
    ...                      noise_var=1.0)
    >>> print(risks.new_tasks)  # as ridgeless_risk
    1.5
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import is_concrete
from lsa_lab.theory.asymptotics import Risks, pretraining_risk
from lsa_lab.theory.domains import check
from lsa_lab.theory.spectra import correlated_spectrum, solve_increasing


def aligned_risk(
    train: ArrayLike,
    test: ArrayLike,
    alpha: ArrayLike,
    kappa: ArrayLike,
    tau: ArrayLike,
    noise_var: ArrayLike,
) -> Risks:
    """Return the risks of least squares (tau > 1) or of the shortest interpolator (tau < 1).

    At tau = 1 they are infinite. They are limits for d → ∞: at d = 8 measured ones lie 10 to 20 %
    above, at d = 40 3 %.

    Args:
        train: the eigenvalues of C, [d].
        test: uᵀTu for the eigenvectors u of C in the same order, [d].
        alpha, kappa, tau, noise_var: as in ``ridgeless_risk``, one number each.

    Returns:
        The risks on the test's tasks and on the pretraining's, [] and [].

    Raises:
        ValueError: a number lies outside its domain, or ``train`` is 0.
    """
    train, test = (jnp.asarray(values, float) for values in (train, test))
    chex.assert_rank([train, test], 1, custom_message="train and test are variances [d]")
    chex.assert_equal_shape([train, test])
    check(train=train, test=test, alpha=alpha, kappa=kappa, tau=tau, noise_var=noise_var)
    if is_concrete(train) and not np.any(np.asarray(train) > 0):
        raise ValueError("train is 0: there is no task to learn")
    place = [jnp.asarray(value, float) for value in (alpha, kappa, tau, noise_var)]
    chex.assert_rank(place, 0, custom_message="alpha to noise_var are numbers; use jax.vmap")
    return _aligned_risk(train, test, *place)


@jax.jit
def _aligned_risk(
    train: Array, test: Array, alpha: Array, kappa: Array, tau: Array, noise_var: Array
) -> Risks:
    unit = train.mean()  # the level is looked for near 1
    train, test, noise_var = train / unit, test / unit, noise_var / unit
    q, c = (1 + noise_var) / alpha, 1 / kappa

    def unfitted(nu: Array) -> Array:  # ν M(q + ν) - 1 + τ, in the form that loses less at this τ
        at = correlated_spectrum(q + nu, train, c)
        few = tau - (at.share + q * at.transform).mean()
        return jnp.where(tau < 0.5, few, (nu * at.transform).mean() - (1 - tau))

    level = jnp.where(tau < 1, solve_increasing(unfitted, q), 0.0)
    at_q, above = (correlated_spectrum(z, train, c) for z in (q, q + level))
    mean_q, mean_above = (jax.tree.map(jnp.mean, spectrum) for spectrum in (at_q, above))
    missed = jnp.maximum(1 - 1 / tau, 0)
    old = pretraining_risk(level, mean_q, mean_above, missed, q, tau, noise_var)
    spread = (test.mean() + noise_var) / alpha  # h has the variances T + spread in the test
    bias = (test * (q + level) ** 2 * above.square).mean() + spread * above.share_square.mean()
    noise = old / tau * ((test + spread) * (above.share_slope + q * above.square)).mean()
    return Risks(unit * (noise_var + bias + noise), unit * old)
