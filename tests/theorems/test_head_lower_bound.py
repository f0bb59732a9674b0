"""One layer writes G x̃ with rank G heads, and no fewer: H heads miss Σ_{i>H} σ_i(G)² at least.

x̃ = diag(r) x, r = Xᵀy/n; d - H for G = I. Papers: A4. Derived here; docs/theory, "The head lower
bound".
"""

import numpy as np
import pytest

from draws import forward, seeds
from lsa_lab.models.linear_attention import Params

D, NUM_HEADS = 3, 2
IMAGES = {
    "covariates": np.eye(D),
    "image": np.array([[1.0, -2.0, 0.5], [0.3, 0.2, 1.0]]),
    "more outputs": np.array([[1.0, 0, 1], [0, 2.0, 1], [1.0, -1.0, 0], [0.5, 1.0, 3]]),
}


def layer(image, num_heads):  # [k, d] -> [H, k, e], [H, e, d]
    """The layer nearest to G x̃: head i queries Σ_j v_ij x_j x_j and writes σ_i y to the g_i."""
    left, values, right = np.linalg.svd(image, full_matrices=False)
    written = np.zeros((num_heads, len(image), D + 1))
    queried = np.zeros((num_heads, D + 1, D))
    for i in range(min(num_heads, len(values))):
        written[i, :, D], queried[i, :D] = left[:, i] * values[i], np.diag(right[i])
    return written, queried


def coefficients(written, queried):  # -> [k, e, e, d]
    """Coefficients of S_βγ x_c in output a for β < γ, halved at β = γ, where they stand twice."""
    tensor = np.einsum("hab,hgc->abgc", written, queried)
    once = np.triu(np.ones((D + 1, D + 1)) - np.eye(D + 1) / 2)
    return (tensor + tensor.swapaxes(1, 2)) * once[None, :, :, None]


def residual(written, queried, image):
    """The sum of squares of coefficients minus those of (G x̃)_a = Σ_c G_ac S_cy x_c."""
    stated = np.zeros((len(image), D + 1, D + 1, D))
    stated[:, np.arange(D), D, np.arange(D)] = image
    return ((coefficients(written, queried) - stated) ** 2).sum()


def least_residual(image, num_heads):
    return np.sum(np.linalg.svd(image, compute_uv=False)[num_heads:] ** 2)


def draw(seed, k, num_heads, n=5):
    rng = np.random.default_rng(seed)
    shapes = (num_heads, k, D + 1), (num_heads, D + 1, D), (n + 1, D + 1)
    written, queried, tokens = (rng.normal(size=shape) for shape in shapes)
    tokens[-1, -1] = 0
    return written, queried, tokens


def network(written, queried, tokens):  # [k], what the layer writes to the query's first slots
    num_heads, k, e = written.shape
    w_kq, w_pv = np.zeros((2, 1, num_heads, e, e))
    w_kq[0, :, :, :D], w_pv[0, :, :k] = queried, written
    return forward(Params(w_kq, w_pv), tokens).heads[0, :, -1].sum(0)[:k]


def preprocess(tokens):  # [d]
    X, y = tokens[:-1, :-1], tokens[:-1, -1]
    return X.T @ y / len(y) * tokens[-1, :-1]


@pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES)
@seeds
def test_no_layer_misses_less_than_the_singular_values_allow_and_rank_many_heads_write_it(
    image, seed
):
    """A random layer, and the best one moved a little in a random direction."""
    written, queried, tokens = draw(seed, len(image), NUM_HEADS)
    least, best = least_residual(image, NUM_HEADS), layer(image, NUM_HEADS)
    assert residual(written, queried, image) >= least
    np.testing.assert_allclose(residual(*best, image), least, atol=1e-12)
    near = (each + 0.1 * step for each, step in zip(best, (written, queried), strict=True))
    assert residual(*near, image) >= least
    found = network(*layer(image, min(image.shape)), tokens)
    np.testing.assert_allclose(found, image @ preprocess(tokens), atol=1e-10)


def test_control_with_a_head_less_it_is_not_written():
    tokens, fewer = draw(0, D, 1)[2], layer(np.eye(D), D - 1)
    assert np.abs(network(*fewer, tokens) - preprocess(tokens)).max() > 1e-2


@seeds
def test_the_coefficients_are_those_of_linear_attention(seed):
    written, queried, tokens = draw(seed, 2, D)
    S, cubic = tokens[:-1].T @ tokens[:-1] / 5, coefficients(written, queried)
    stated = np.einsum("abgc,bg,c->a", cubic, np.triu(S), tokens[-1, :-1])
    tolerance = 1e-10 * (1 + np.abs(stated).max())
    np.testing.assert_allclose(network(written, queried, tokens), stated, atol=tolerance)
