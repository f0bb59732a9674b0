"""A prefix of masked linear attention sees the linear proxy's gradients and nothing else.

The prediction after a prefix z is w(z)·x, at any depth, so that ∇ℓ_i(z) = J(z)ᵀ (w(z)·x_i -
y_i) x_i with J = ∂w/∂z. What matches the linear gradients at w(z) therefore matches the prefix's,
and, where J has rank d, the other way round (derived here; docs/theory, "Prefix gradients"). Sides:
automatic differentiation of the loss through the model; the layer map's last row and its Jacobian.
"""

import functools

import jax
import numpy as np

from draws import jit_numpy, seeds
from lsa_lab.models import linear_attention, moments, transformer
from lsa_lab.selection.prefix import prefix_gradients
from lsa_lab.tasks.pools import Pool

NUM_LAYERS = 3
D, K, M = 3, 4, 6
SOFTMAX = transformer.Config(D + 1, 2, 2, D)
through_the_model = jit_numpy(functools.partial(prefix_gradients, linear_attention.forward))
through_softmax = jit_numpy(
    functools.partial(prefix_gradients, functools.partial(transformer.forward, config=SOFTMAX))
)


def draw(seed, num_layers):
    rng = np.random.default_rng(seed)
    weights = [0.3 * rng.normal(size=(num_layers, 2, D + 1, D + 1)) for _ in range(2)]
    pool = Pool(rng.normal(size=(M, D)), rng.normal(size=M))
    return linear_attention.Params(*weights), rng.normal(size=(K, D + 1)), pool, rng


def implied_weights(params, prefix):  # [d], twice
    weights = -moments.layer_maps(params, prefix.T @ prefix / K)[-1, -1, :-1]
    return weights, weights


slopes = jit_numpy(jax.jacobian(implied_weights, argnums=1, has_aux=True))  # [d, k, e] and [d]


def linear_side(params, prefix, pool):
    jacobian, w = slopes(params, prefix)
    residuals = pool.x @ w - pool.y
    return residuals[:, None] * pool.x @ jacobian.reshape(D, -1)


@seeds
def test_prefix_gradients_are_a_linear_map_of_linear_gradients(seed):
    params, prefix, pool, _ = draw(seed, NUM_LAYERS)
    gradients = through_the_model(params, prefix[None], pool)
    expected = linear_side(params, prefix, pool)
    size = np.abs(expected).max()
    np.testing.assert_allclose(gradients, expected, rtol=1e-9, atol=1e-10 * max(1, size))
    assert np.linalg.matrix_rank(gradients, tol=1e-9 * size) <= D


def test_control_softmax_gradients_have_more_directions():
    ranks = []
    for seed in range(5):
        _, prefix, pool, rng = draw(seed, 1)
        w_q, w_k, w_v, w_o = (rng.normal(size=(2, 2, D, D + 1)) for _ in range(4))
        params = transformer.Params(w_q, w_k, w_v, w_o.swapaxes(2, 3))
        gradients = through_softmax(params, prefix[None], pool)
        ranks.append(np.linalg.matrix_rank(gradients, tol=1e-3 * np.abs(gradients).max()))
    assert np.median(ranks) > D


def test_control_without_the_mask_there_is_no_such_map():
    """A query that is a key makes the answer nonlinear in x, and no w(z) exists."""
    params, prefix, pool, _ = draw(0, NUM_LAYERS)
    forward = functools.partial(linear_attention.forward, keys="all")
    gradients = jit_numpy(functools.partial(prefix_gradients, forward))(params, prefix[None], pool)
    assert np.abs(gradients - linear_side(params, prefix, pool)).max() > 1e-2
