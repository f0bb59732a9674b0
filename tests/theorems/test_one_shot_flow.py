"""A1's Eq. 2: ∂a/∂d = P (s I + d (Kq)ᵀ), s = d·Kq, and its norm (2508.00385).

docs/theory, "The one-shot flow", "Attention with a prior". Sides: automatic differentiation of one
layer of linear attention; the closed form. With n demonstrations each has this flow over n, whether
or not the query may read itself.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.models import linear_attention
from lsa_lab.models.trace import layer_predictions
from lsa_lab.theory import amplification

SHAPES = [(1, 3, "demonstrations"), (3, 5, "all")]  # n, e, keys
shapes = pytest.mark.parametrize("shape", SHAPES)
closed_form = jit_numpy(amplification.one_shot_jacobian)


def draw(seed, shape):
    """Weights K and P [e, e] and tokens [n+1, e]."""
    rng = np.random.default_rng(seed)
    n, e, _ = shape
    return *rng.normal(size=(2, e, e)), rng.normal(size=(n + 1, e))


@partial(jit_numpy, static_argnames=("keys", "num_layers"))
def network_flow(w_kq, w_pv, tokens, keys, num_layers=1):
    """∂a/∂d [e, e] and ∂ŷ/∂d [e] at the first demonstration."""
    weights = [jnp.broadcast_to(w, (num_layers, 1, *w.shape)) for w in (w_kq, w_pv)]

    def answer(demonstration):
        rows = jnp.concatenate([demonstration[None], tokens[1:]])
        trace = linear_attention.forward(linear_attention.Params(*weights), rows, keys=keys)
        return trace.stream[-1, -1], layer_predictions(trace)[-1]

    return jax.jacfwd(answer)(tokens[0])


def disagreement(seed, shape, transposed=False, num_layers=1):
    w_kq, w_pv, tokens = draw(seed, shape)
    flow, of_prediction = network_flow(w_kq, w_pv, tokens, shape[2], num_layers)
    scores = w_kq.T if transposed else w_kq
    stated = closed_form(scores, w_pv, tokens[0], tokens[-1]) / shape[0]
    differences = [np.abs(flow - stated).max(), np.abs(of_prediction + stated[-1]).max()]
    return max(differences) / (1 + np.abs(stated).max())


@shapes
@seeds
def test_the_flow_through_one_layer_is_equation_2(shape, seed):
    assert disagreement(seed, shape) < 1e-10


def test_control_a_transposed_score_or_a_second_layer_breaks_it():
    assert disagreement(0, SHAPES[1], transposed=True) > 1e-2
    assert disagreement(0, SHAPES[1], num_layers=2) > 1e-2


def share_of_the_prediction(seed, shape, rows=1):
    """Its part of the flow's norm, where P writes to the last ``rows`` slots."""
    w_kq, w_pv, tokens = draw(seed, shape)
    w_pv[:-rows] = 0
    flow, of_prediction = network_flow(w_kq, w_pv, tokens, shape[2])
    return np.linalg.norm(of_prediction) / np.linalg.norm(flow)


@shapes
@seeds
def test_weights_that_write_to_the_label_slot_alone_send_all_of_it_to_the_prediction(shape, seed):
    assert abs(share_of_the_prediction(seed, shape) - 1) < 1e-10


def test_control_a_second_row_takes_its_share():
    assert share_of_the_prediction(0, SHAPES[1], rows=2) < 0.9


def norm_disagreement(seed, shape, joint=True, orthogonal=False):
    w_kq, w_pv, tokens = draw(seed, shape)
    d, q = tokens[0], tokens[-1]
    w_pv = np.linalg.qr(w_pv)[0] if orthogonal else w_pv
    flow, _ = network_flow(w_kq, w_pv, tokens, shape[2])
    size, s = (shape[0] ** 2) * np.sum(np.square(flow)), d @ w_kq @ q
    stated = s**2 * np.sum(w_pv**2) + np.sum((w_pv @ d) ** 2) * np.sum((w_kq @ q) ** 2)
    stated += joint * 2 * s * (w_pv @ w_kq @ q) @ (w_pv @ d)
    if orthogonal:
        stated = (len(d) + 2 * joint) * s**2 + (d @ d) * np.sum((w_kq @ q) ** 2)
    return abs(size - stated) / (1 + size)


@shapes
@seeds
def test_its_norm_is_the_expanded_square(shape, seed):
    assert norm_disagreement(seed, shape) < 1e-10
    assert norm_disagreement(seed, shape, orthogonal=True) < 1e-10


def test_control_the_norm_is_not_a_sum_of_relevance_and_content():
    assert norm_disagreement(0, SHAPES[1], joint=False) > 1e-3
    assert norm_disagreement(0, SHAPES[1], joint=False, orthogonal=True) > 1e-3
