"""A prefix of masked linear attention sees the linear proxy's gradients and nothing else.

The prediction after a prefix z is w(z)·x, at any depth, so that the gradient of example i in z is
J(z)ᵀ (w(z)·x_i - y_i) x_i with J = ∂w/∂z. Papers: A3. Derived here; docs/theory, "Prefix
gradients".
"""

import functools

import jax
import numpy as np

from draws import draw_stack, draw_transformer, jit_numpy, seeds
from lsa_lab.models import linear_attention, moments, transformer
from lsa_lab.selection.prefix import prefix_gradients
from lsa_lab.tasks.pools import Pool

D, K, M = 3, 4, 6
SOFTMAX = functools.partial(transformer.forward, config=transformer.Config(D + 1, 2, 2, D))
UNMASKED = functools.partial(linear_attention.forward, keys="all")
linear, unmasked, softmax = (
    jit_numpy(functools.partial(prefix_gradients, forward))
    for forward in (linear_attention.forward, UNMASKED, SOFTMAX)
)


def draw(seed):
    rng = np.random.default_rng(seed)
    pool = Pool(rng.normal(size=(M, D)), rng.normal(size=M))
    return draw_stack(rng, 3, 2, D + 1), rng.normal(size=(K, D + 1)), pool, rng


@jit_numpy
@functools.partial(jax.jacobian, argnums=1, has_aux=True)
def slopes(params, prefix):  # ∂w/∂z [d, k, e] and w [d]
    weights = -moments.layer_maps(params, prefix.T @ prefix / K)[-1, -1, :-1]
    return weights, weights


def linear_side(params, prefix, pool):
    jacobian, w = slopes(params, prefix)
    return (pool.x @ w - pool.y)[:, None] * pool.x @ jacobian.reshape(D, -1)


@seeds
def test_prefix_gradients_are_a_linear_map_of_linear_gradients(seed):
    params, prefix, pool, rng = draw(seed)
    gradients, expected = linear(params, prefix[None], pool), linear_side(params, prefix, pool)
    size = np.abs(expected).max()
    np.testing.assert_allclose(gradients, expected, rtol=1e-9, atol=1e-10 * max(1, size))
    assert np.linalg.matrix_rank(gradients, tol=1e-9 * size) <= D
    if seed == 0:  # Control: softmax has more directions, and without the mask there is no such map
        found = softmax(draw_transformer(rng, 2, 2, D, D + 1), prefix[None], pool)
        assert np.linalg.matrix_rank(found, rtol=1e-3) > D
        found = unmasked(params, prefix[None], pool)
        assert np.abs(found - expected).max() > 1e-2
