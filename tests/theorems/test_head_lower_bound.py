"""One layer writes G x̃ with rank G heads, and no fewer: H heads miss Σ_{i>H} σ_i(G)² at least.

x̃ = diag(r) x, r = Xᵀy/n; d - H for G = I. Derived here; docs/theory, "The head lower bound".
Sides: the residual of a layer's coefficients; singular values of G, and linear attention itself.
"""

import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.models import linear_attention
from lsa_lab.theory import head_bound

NUM_HEADS = 2
D, K = 3, 2
residual = jit_numpy(head_bound.residual)
layer = jit_numpy(head_bound.layer, static_argnums=1)
least_residual = jit_numpy(head_bound.least_residual, static_argnums=1)
coefficients = jit_numpy(head_bound.coefficients)
IMAGES = {"covariates": np.eye(D), "image": np.array([[1.0, -2.0, 0.5], [0.3, 0.2, 1.0]])}
IMAGES["more outputs"] = np.array([[1.0, 0, 1], [0, 2.0, 1], [1.0, -1.0, 0], [0.5, 1.0, 3]])
each_image = pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES)


def random_layer(seed, k, num_heads, n=5):
    rng = np.random.default_rng(seed)
    shapes = (num_heads, k, D + 1), (num_heads, D + 1, D), (n + 1, D + 1)
    written, queried, tokens = (rng.normal(size=shape) for shape in shapes)
    tokens[-1, -1] = 0
    return written, queried, tokens


@jit_numpy
def written_to_query(written, queried, tokens):  # [k]
    """What the layer, as linear attention, writes to the first slots of the query."""
    k = written.shape[1]
    w_kq = jnp.pad(queried, ((0, 0), (0, 0), (0, 1)))
    w_pv = jnp.pad(written, ((0, 0), (0, D + 1 - k), (0, 0)))
    trace = linear_attention.forward(linear_attention.Params(w_kq[None], w_pv[None]), tokens)
    return trace.heads[0, :, -1].sum(0)[:k]


def preprocessed(tokens):  # [d]
    X, y = tokens[:-1, :-1], tokens[:-1, -1]
    return X.T @ y / len(y) * tokens[-1, :-1]


@each_image
@seeds
def test_no_layer_misses_less_than_the_singular_values_allow(image, seed):
    """A random layer, and the best one moved a little in a random direction."""
    written, queried, _ = random_layer(seed, len(image), NUM_HEADS)
    least = least_residual(image, NUM_HEADS)
    assert residual(written, queried, image) >= least
    best = layer(image, NUM_HEADS)
    np.testing.assert_allclose(residual(*best, image), least, atol=1e-12)
    near = (each + 0.1 * step for each, step in zip(best, (written, queried), strict=True))
    assert residual(*near, image) >= least


@each_image
@seeds
def test_as_many_heads_as_the_rank_write_it(image, seed):
    tokens = random_layer(seed, len(image), 1)[2]
    written = written_to_query(*layer(image, min(image.shape)), tokens)
    np.testing.assert_allclose(written, image @ preprocessed(tokens), atol=1e-10)


def test_control_with_a_head_less_it_is_not_written():
    tokens, fewer = random_layer(0, D, 1)[2], layer(np.eye(D), D - 1)
    assert np.abs(written_to_query(*fewer, tokens) - preprocessed(tokens)).max() > 1e-2


@seeds
def test_the_coefficients_are_those_of_linear_attention(seed):
    written, queried, tokens = random_layer(seed, K, 4)
    S, cubic = tokens[:-1].T @ tokens[:-1] / 5, coefficients(written, queried)
    stated = np.einsum("abgc,bg,c->a", cubic, np.triu(S), tokens[-1, :-1])
    tolerance = 1e-10 * (1 + np.abs(stated).max())
    np.testing.assert_allclose(written_to_query(written, queried, tokens), stated, atol=tolerance)


@each_image
def test_searches_end_at_the_least_residual(image):
    for num_heads in range(1, min(image.shape) + 1):
        ends = head_bound.searched_residuals(image, num_heads, 4)
        assert -1e-9 < ends[0] - least_residual(image, num_heads) < 1e-6
