"""What may be done to the tokens and weights of any linear attention without changing it.

docs/theory, "Symmetries of linear attention". Sides: the forward pass over transformed tokens and
weights; the stream of the plain ones, transformed. Beside every symmetry stands a near miss that is
none.
"""

import numpy as np

from draws import jit_numpy, relative_error, seed_and, seeds
from lsa_lab.models import linear_attention

N, E = 7, 4
forward = jit_numpy(linear_attention.forward, static_argnames="keys")


def draw(seed, num_layers):
    """Weights with two heads, tokens [T, e], an order of the demonstrations, a rotation [e, e]."""
    rng = np.random.default_rng(seed)
    params = linear_attention.Params(*0.3 * rng.normal(size=(2, num_layers, 2, E, E)))
    tokens, order = rng.normal(size=(N + 1, E)), np.append(rng.permutation(N), N)
    tokens[-1, -1] = 0
    return params, tokens, order, np.linalg.qr(rng.normal(size=(E, E)))[0]


def under_permutation(seed, keys, num_layers=2):
    params, tokens, order, _ = draw(seed, num_layers)
    permuted = forward(params, tokens[order], keys=keys).stream
    stream = forward(params, tokens, keys=keys).stream
    return relative_error(permuted, stream[:, order]), relative_error(
        permuted[-1, -1], stream[-1, -1]
    )


@seeds
def test_permuted_demonstrations_permute_the_stream_unless_reading_is_causal(seed):
    assert max(under_permutation(seed, "demonstrations")) < 1e-10
    assert max(under_permutation(seed, "all")) < 1e-10
    assert under_permutation(seed, "causal", num_layers=1)[1] < 1e-10


def under_scaling(seed, factor, power):
    """One layer is homogeneous: what it writes for c E is c³ times what it writes for E."""
    params, tokens, _, _ = draw(seed, 1)
    heads = forward(params, factor * tokens).heads
    return relative_error(heads, factor**power * forward(params, tokens).heads)


@seed_and(factor=(-2.0, 2.0))
def test_a_layer_writes_a_cubic_of_its_tokens(seed, factor):
    assert under_scaling(seed, factor, power=3) < 1e-10


def under_gauge(seed, stretch, half=False):
    """Tokens B e_i with W_pv → B W_pv B^{-1} and W_kq → B^{-T} W_kq B^{-1}: the stream is B e.

    B has singular values from 1/stretch to stretch; ``half`` forgets W_kq.
    """
    params, tokens, _, rotation = draw(seed, 2)
    B = rotation * np.geomspace(1 / stretch, stretch, E) @ rotation[::-1]
    inverse = np.linalg.inv(B)
    w_kq = params.w_kq if half else inverse.T @ params.w_kq @ inverse
    gauged = linear_attention.Params(w_kq, B @ params.w_pv @ inverse)
    return relative_error(
        forward(gauged, tokens @ B.T).stream, forward(params, tokens).stream @ B.T
    )


@seeds
def test_a_change_of_basis_of_tokens_and_weights_changes_nothing(seed):
    assert under_gauge(seed, stretch=1.0) < 1e-10
    assert under_gauge(seed, stretch=3.0) < 1e-10


def under_scales(seed, of_kq, of_pv):
    params, tokens, _, _ = draw(seed, 2)
    scaled = linear_attention.Params(params.w_kq * of_kq, params.w_pv * of_pv)
    return relative_error(forward(scaled, tokens).stream, forward(params, tokens).stream)


@seed_and(scale=(0.2, 5.0))
def test_only_the_product_of_the_scales_of_w_kq_and_w_pv_matters(seed, scale):
    assert under_scales(seed, 1 / scale, scale) < 1e-10


def test_control_the_near_misses_change_the_stream():
    assert min(under_permutation(0, "causal")) > 1e-2  # two layers see the order
    assert under_scaling(0, 2.0, power=2) > 1e-2
    assert under_gauge(0, stretch=3.0, half=True) > 1e-2
    assert under_scales(0, 2.0, 2.0) > 1e-2
