"""The shape of the noise in the first implicit update of random demonstrations.

    G = Σ_h w_pv_h S w_kq_h,   S = (1/n) Σ_i z_i z_iᵀ,   z_i ~ N(0, Σ) independent

(A2, Lemma 1, its ΔW divided by n; docs/theory, "The noise of an update is not Gaussian"). Given a
task w the tokens [x, w·x + ε] of Gaussian prompts are such z. A later layer that reads fresh
demonstrations has the same law, with w_pv W and Wᵀ w_kq W in place of w_pv and w_kq.
"""

import chex
import flax.struct
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import check_at_least, check_symmetric, is_concrete
from lsa_lab.prompts import near_one


class Shape(flax.struct.PyTreeNode):
    """Departures of a random number from a Gaussian one, for which both are 0."""

    skewness: Array  # []
    excess_kurtosis: Array  # []


def shape(direction: Array, w_kq: Array, w_pv: Array, second_moment: Array, n: int) -> Shape:
    """Return the shape of R·G = tr(A S), A the symmetric part of Σ_h K_h Rᵀ P_h: with B = A Σ,

        skewness √(8/n) tr B³ / (tr B²)^{3/2},   excess kurtosis (12/n) tr B⁴ / (tr B²)².

    From the cumulants 2^{r-1} (r-1)! tr(B^r) / n^{r-1} of a quadratic form in Gaussian tokens
    (classical). tr B⁴ lies between (tr B²)² / rank A and (tr B²)²: for no weights, directions and
    tasks is the excess kurtosis below 12 / (n e) or above 12 / n, and G is never Gaussian. Raises
    ValueError if A Σ is 0: a constant has no shape.
    """
    _check(w_kq, w_pv, second_moment)
    chex.assert_shape(direction, second_moment.shape, custom_message="direction is [e, e], as G")
    check_at_least(n, "n")
    direction, w_kq, w_pv = (near_one(w)[0] for w in (direction, w_kq, w_pv))  # of any size
    a = jnp.einsum("hij,kj,hkl->il", w_kq, direction, w_pv)
    b = near_one((a + a.T) / 2 @ near_one(second_moment)[0])[0]
    if is_concrete(b) and not np.any(np.asarray(b)):
        raise ValueError("R·G is 0 for all demonstrations: a constant has no shape")
    square = b @ b
    second, third, fourth = jnp.trace(square), jnp.trace(square @ b), jnp.trace(square @ square)
    return Shape((8 / n) ** 0.5 * third / second**1.5, 12 / n * fourth / second**2)


def _check(w_kq: Array, w_pv: Array, second_moment: Array) -> None:
    e = second_moment.shape[-1]
    chex.assert_shape(second_moment, (e, e), custom_message="second_moment is one, [e, e]")
    words = "w_kq and w_pv are [H, e, e], those of one layer"
    chex.assert_shape([w_kq, w_pv], (None, e, e), custom_message=words)
    check_symmetric(second_moment, "second_moment")
