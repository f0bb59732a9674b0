"""A2's Assumption 1 at the first layer: updates of Gaussian prompts have the noise of a Wishart.

Skewness and excess kurtosis of R·G in closed form; the latter between 12/(n e) and 12/n, whatever
the weights, the direction and the task. Sides: the network's updates of every prompt of n tokens
from a grid that has the Gaussian's moments up to the ninth, summed with the grid's weights; the
closed form. docs/theory, "The noise of an update is not Gaussian".
"""

import itertools

import jax
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.models import linear_attention
from population import gauss_hermite

E = 3
shapes = pytest.mark.parametrize(("heads", "n"), [(1, 1), (3, 2)])


def draw(seed, heads):
    """A direction [e, e], weights [H, e, e] twice, and a root of the tokens' second moment."""
    rng = np.random.default_rng(seed)
    matrices = rng.normal(size=(2, heads, E, E))
    return rng.normal(size=(E, E)), *matrices, rng.normal(size=(E, E))


@jit_numpy
def readings(direction, w_kq, w_pv, prompts):  # -> [m]  R·G of every prompt, by the forward pass
    """G is read column by column: what the layer adds to a query e_j."""
    params = linear_attention.Params(w_kq[None], w_pv[None])

    def written(prompt, query):
        tokens = jax.numpy.concatenate([prompt, query[None]])
        stream = linear_attention.forward(params, tokens).stream
        return stream[1, -1] - stream[0, -1]

    columns = jax.vmap(jax.vmap(written, (None, 0)), (0, None))(prompts, np.eye(E))  # [m, e, e]
    return jax.numpy.einsum("mji,ij->m", columns, direction)


def measured(seed, heads, n):  # -> skewness, excess kurtosis
    direction, w_kq, w_pv, root = draw(seed, heads)
    tokens, weights = gauss_hermite([5] * (n * E))
    values = readings(direction, w_kq, w_pv, tokens.reshape(-1, n, E) @ root.T)
    values = values - weights @ values
    second, third, fourth = (weights @ values**power for power in (2, 3, 4))
    return third / second**1.5, fourth / second**2 - 3


def stated(seed, heads, n):
    """√(8/n) tr B³/(tr B²)^{3/2} and (12/n) tr B⁴/(tr B²)², B = A Σ and A the symmetric part of
    Σ_h K_h Rᵀ P_h, from the cumulants of the quadratic form tr(A S)."""
    direction, w_kq, w_pv, root = draw(seed, heads)
    form = np.einsum("hij,kj,hkl->il", w_kq, direction, w_pv)
    b = (form + form.T) / 2 @ root @ root.T
    square = b @ b
    second, third, fourth = np.trace(square), np.trace(square @ b), np.trace(square @ square)
    return (8 / n) ** 0.5 * third / second**1.5, 12 / n * fourth / second**2


@shapes
@seeds
def test_the_noise_has_the_shape_of_a_quadratic_form(heads, n, seed):
    np.testing.assert_allclose(
        measured(seed, heads, n), stated(seed, heads, n), rtol=1e-7, atol=1e-9
    )


@seeds
def test_no_weights_make_it_gaussian(seed):
    for n in (1, 10, 1000):
        excess = stated(seed, 2, n)[1]
        assert 12 / (n * E) * (1 - 1e-12) <= excess <= 12 / n * (1 + 1e-12)


def test_control_tokens_that_are_signs_have_another_shape():
    direction, w_kq, w_pv, root = draw(0, 1)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=E)))[:, None]  # equal second moment
    values = readings(direction, w_kq, w_pv, signs @ root.T)
    values = values - values.mean()
    excess = (values**4).mean() / (values**2).mean() ** 2 - 3
    assert abs(excess - stated(0, 1, 1)[1]) > 1
