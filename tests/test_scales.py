"""What has no unit is the same of small numbers as of large ones, and stated where all are zero.

Where a sum may vanish, a guard divides by one in its place: it must not meet what is only small.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import estimators
from lsa_lab.analyses import alignment, clipping, common_map, heads, probes
from lsa_lab.prompts import Prompt, near_one
from lsa_lab.selection import gradient_matching, scores
from lsa_lab.theory import generalization

SCALES = (1.0, 1e-3, 1e3, 0.0)
RNG = np.random.default_rng(0)
ROWS, OTHERS = (jnp.asarray(RNG.normal(size=(6, 3))) for _ in range(2))
STREAM = jnp.stack([ROWS, OTHERS])
MANY = jnp.asarray(RNG.normal(size=(60, 3)))
PROMPT = Prompt(ROWS[:, :2], ROWS[:, 2], ROWS[0, :2], jnp.zeros(()))


def labels(scale):
    return PROMPT.replace(y=scale * PROMPT.y)


def over(result, scale):
    return result / jnp.where(scale > 0, scale, 1)


# A function of a scale that does not depend on it, and what it is at 0.
UNITLESS = {
    "the cosine of weights": (
        lambda s: alignment.distances(jnp.zeros(6), s * ROWS, OTHERS, ROWS[0]).cosine,
        0,
    ),
    "a common map's residual": (lambda s: common_map.best_common_map(ROWS, s * STREAM).residual, 0),
    "what no map explains": (lambda s: common_map.best_common_map(ROWS, s * STREAM).unexplained, 0),
    "the shares of heads": (lambda s: heads.normalised(s * ROWS), 0),
    "a condition number": (lambda s: clipping.condition_number(s * ROWS), jnp.inf),
    "a stable rank": (lambda s: clipping.stable_rank(s * ROWS), 0),
    "a probe": (lambda s: s * probes.fit(s * MANY, MANY @ ROWS.T), 0),
    "descent on features": (lambda s: probes.descend(s * ROWS, PROMPT.y[1:], 3), 0),
    "descent by correlation": (
        lambda s: over(
            estimators.preprocessed_gradient_descent(labels(s), 0.1, 3, normalise=True), s
        ),
        0,
    ),
    "the lasso": (lambda s: over(estimators.lasso(labels(s), 0.1 * s + 1e-30), s), 0),
    "the norm of a flow": (lambda s: over(scores.flow_norm(s * ROWS), s), 0),
    "the similarity of a query": (lambda s: scores.similarity(ROWS, s * ROWS[0, :2]), 0),
    "white gradients": (lambda s: jnp.abs(gradient_matching.whitened(s * ROWS, 3)), 0),
    "a bound on the gap": (
        lambda s: generalization.trajectory_bound(s * STREAM[:, :3], 1e3 * s**2 + 1e-30, 1.0, 9),
        0,
    ),
}


@pytest.mark.parametrize("name", UNITLESS)
def test_small_numbers_are_treated_as_large_ones_are(name):
    call, at_zero = UNITLESS[name]
    first, *others, zero = jax.jit(jax.vmap(call))(jnp.array(SCALES))
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(zero, jnp.full_like(zero, at_zero))
    assert jnp.abs(first).max() > 1e-3


def test_what_is_brought_near_one_loses_no_bit_and_comes_back():
    values = jnp.asarray([[3e-200, -1e-210, 0.0], [0.0, 0.0, 0.0], [7e180, 1.0, -0.1]])
    scaled, exponents = near_one(values, -1)
    largest = jnp.abs(scaled).max(1)
    assert largest[1] == 0
    assert ((largest[::2] >= 0.5) & (largest[::2] < 1)).all()
    assert (jnp.ldexp(scaled, jnp.broadcast_to(exponents, (3, 3))) == values).all()
