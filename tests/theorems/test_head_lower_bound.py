"""One layer that preprocesses needs d heads (derived here; docs/theory, "The head lower bound").

Its coefficients are N_{aβγc} = T/2 + K with K antisymmetric in (β, γ), and H is the rank of N as a
matrix. That rank is d at least, whatever K; d heads do it; a search with fewer ends away from 0.
Sides: ranks and residuals of the coefficients; linear attention with those heads.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsa_lab.models import linear_attention
from lsa_lab.theory import head_bound

SEEDS = st.integers(0, 2**32 - 1)
residual = jax.jit(head_bound.residual)


def rank(d, seed, antisymmetric=True):
    """The rank of N = T/2 + K, where K cancels half of T where it may and adds a random low rank.

    Not ``antisymmetric``, K = -T/2 cancels all of it.
    """
    rng = np.random.default_rng(seed)
    e, y, a = d + 1, d, np.arange(d)
    T = np.zeros((d, e, e, d))
    T[a, a, y, a] = T[a, y, a, a] = 1
    K = np.zeros_like(T)
    K[a, a, y, a] = rng.choice([-0.5, 0, 0.5], size=d)
    for _ in range(rng.integers(0, 3)):
        K = K + np.einsum("a,b,g,c->abgc", *(rng.normal(size=size) for size in (d, e, e, d)))
    K = K - K.swapaxes(1, 2) if antisymmetric else -T / 2
    return np.linalg.matrix_rank((T / 2 + K).reshape(d * e, e * d), tol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@given(seed=SEEDS)
def test_no_antisymmetric_part_brings_the_rank_below_d(d, seed):
    assert rank(d, seed) >= d


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_control_a_part_that_changes_what_is_written_brings_it_below(d):
    assert rank(d, 0, antisymmetric=False) < d


@partial(jax.jit, static_argnames="num_heads")
def random_layer(seed, num_heads, d=3, n=5):
    keys = jax.random.split(jax.random.key(seed), 3)
    values = jax.random.normal(keys[0], (num_heads, d, d + 1))
    scores = jax.random.normal(keys[1], (num_heads, d + 1, d))
    tokens = jax.random.normal(keys[2], (n + 1, d + 1)).at[-1, -1].set(0)
    return values, scores, tokens


@jax.jit
def written_to_query(values, scores, tokens):
    """What the layer, as linear attention, writes to the covariate slots of the query."""
    params = linear_attention.Params(
        jnp.pad(scores, ((0, 0), (0, 0), (0, 1)))[None],
        jnp.pad(values, ((0, 0), (0, 1), (0, 0)))[None],
    )
    return linear_attention.forward(params, tokens).heads[0, :, -1].sum(0)[:-1]


@pytest.mark.parametrize("num_heads", [1, 4])
@given(seed=SEEDS)
def test_the_coefficients_are_those_of_linear_attention(num_heads, seed):
    values, scores, tokens = random_layer(seed, num_heads)
    S = np.array(tokens[:-1].T @ tokens[:-1]) / 5
    upper = np.triu(np.ones((4, 4)))
    cubic = np.array(head_bound.coefficients(values, scores)) * upper[None, :, :, None]
    stated = np.einsum("abgc,bg,c->a", cubic, S, np.array(tokens[-1, :-1]))
    written = written_to_query(values, scores, tokens)
    np.testing.assert_allclose(written, stated, atol=1e-10 * (1 + np.abs(stated).max()))


def test_d_heads_preprocess():
    values, scores = head_bound.layer(3)
    assert residual(values, scores) == 0
    tokens = random_layer(0, 1)[2]
    r = np.array(tokens[:-1, :-1]).T @ np.array(tokens[:-1, -1]) / 5
    written = written_to_query(values, scores, tokens)
    np.testing.assert_allclose(written, r * np.array(tokens[-1, :-1]), atol=1e-10)


def test_control_fewer_heads_miss_a_coordinate_each():
    values, scores = head_bound.layer(3)
    assert residual(values[1:], scores[1:]) == 1
    assert residual(0 * values, scores) == 3


@pytest.mark.parametrize("d", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_a_search_finds_d_heads_and_no_fewer(d):
    assert head_bound.smallest_residuals(d, d, 3 * d)[0] < 1e-10
    for num_heads in range(1, d):
        assert head_bound.smallest_residuals(d, num_heads, 5 * d)[0] > d - num_heads - 1e-6
