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
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_ratio, check_variance, is_concrete
from lsa_lab.theory.asymptotics import Risks, root_of


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
    alpha, kappa, tau, noise_var = place
    q, c = (train.mean() + noise_var) / alpha, 1 / kappa

    def resolvent(z: Array) -> Array:  # [d], E (R + z)⁻¹ along the eigenvectors of C
        def excess(s: Array) -> Array:
            return s - 1 + c * (s * train / (s * train + z)).mean()

        return 1 / (root_of(excess, q) * train + z)

    level = root_of(lambda nu: nu * resolvent(q + nu).mean() - 1 + tau, q)
    level = jnp.where(tau < 1, level, 0.0)  # ν M(q + ν) = 1 - τ
    z = q + level
    at = resolvent(z)
    # s = 1 - c + c z M and M = mean 1/(s λ + z), derived by z: M' = - mean (s' λ + 1)/(s λ + z)²
    mixed, plain = (train * at**2).mean(), (at**2).mean()
    slope = -(plain + c * at.mean() * mixed) / (1 + c * z * mixed)
    square = (c * (at.mean() + z * slope) * train + 1) * at**2  # [d], E (R + z)⁻²
    unexplained = noise_var + q - q**2 * resolvent(q).mean()
    shrunk = q**2 * resolvent(q).mean() + (level**2 - q**2) * at.mean()
    shrunk = shrunk - level * z**2 * square.mean()
    free = level * (2 * at.mean() - level * square.mean())  # 1 - tr (R + q)²(R + z)⁻²
    old = (unexplained + shrunk) / (1 - 1 / tau + free / tau)
    read = test + (test.mean() + noise_var) / alpha  # the variances of h on tasks of the test
    bias = (read * (1 - 2 * z * at + z**2 * square)).mean() - 2 * (test * (1 - z * at)).mean()
    noise = old / tau * (read * (at - level * square)).mean()
    return Risks(noise_var + test.mean() + bias + noise, old)
