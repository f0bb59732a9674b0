"""w_pv = a bᵀ, w_kq = c dᵀ and w_pv = a cᵀ, w_kq = b dᵀ are one head; half of each are two.

S is symmetric, so b·Sc = c·Sb; docs/theory, "Heads are not unique". Sides: the forward pass of a
head under every key mask; that of other heads with its symmetrised tensor.
"""

from functools import partial

import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.models import head_gauge, linear_attention

MASKS = ("demonstrations", "all", "causal")
E, N = 4, 3
canonical, orthogonal = jit_numpy(head_gauge.canonical), jit_numpy(head_gauge.orthogonal)


@partial(jit_numpy, static_argnames="keys")
def stream(params, tokens, keys="demonstrations"):
    return linear_attention.forward(params, tokens, keys=keys).stream


def swap(seed):
    """A head of width one, and half of it beside half of its swap; tokens without any zero."""
    rng = np.random.default_rng(seed)
    a, b, c, d = rng.normal(size=(4, E))
    writes = np.stack([np.outer(a, b), np.outer(a, c)])
    asks = np.stack([np.outer(c, d), np.outer(b, d)])
    one_head = linear_attention.Params(w_kq=asks[None, :1], w_pv=writes[None, :1])
    halves = linear_attention.Params(w_kq=asks[None], w_pv=writes[None] / 2)
    return one_head, halves, rng.normal(size=(N + 1, E))


@pytest.mark.parametrize("keys", MASKS)
@seeds
def test_half_a_head_and_half_its_swap_are_the_head(keys, seed):
    one_head, halves, tokens = swap(seed)
    expected = stream(one_head, tokens, keys)
    size = 1 + np.abs(expected).max()
    np.testing.assert_allclose(stream(halves, tokens, keys), expected, rtol=0, atol=1e-13 * size)


def test_control_half_a_head_and_half_of_another_are_not():
    one_head, halves, tokens = swap(0)
    other = halves.replace(w_kq=halves.w_kq.swapaxes(2, 3))  # d cᵀ for c dᵀ
    assert np.abs(stream(other, tokens) - stream(one_head, tokens)).max() > 0.1


@seeds
def test_the_spectrum_tells_them_apart_and_the_canonical_heads_do_not(seed):
    one_head, halves, _ = swap(seed)
    assert (orthogonal(halves)[1] > 1e-6).sum() == 2
    (heads, values), (again, same) = canonical(one_head), canonical(halves)
    size = values.max()
    assert (values > 1e-6 * size).sum() == 2  # one head would do: canonical is not fewest
    np.testing.assert_allclose(same, values, rtol=0, atol=1e-12 * size)
    ours, theirs = (np.multiply.outer(p.w_pv[0, 0], p.w_kq[0, 0]) for p in (heads, again))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * size)  # their signs cancel


@pytest.mark.parametrize("keys", MASKS)
@seeds
def test_canonical_heads_compute_the_same(keys, seed):
    rng = np.random.default_rng(seed)
    params = linear_attention.Params(*0.2 * rng.normal(size=(2, 2, 3, E, E)))
    tokens = rng.normal(size=(N + 1, E))
    heads, _ = canonical(params)
    expected = stream(params, tokens, keys)
    size = 1 + np.abs(expected).max()
    np.testing.assert_allclose(stream(heads, tokens, keys), expected, rtol=0, atol=1e-12 * size)
