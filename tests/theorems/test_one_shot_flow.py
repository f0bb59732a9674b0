"""∂a/∂d = P (s I + d (Kq)ᵀ), s = d·Kq, and its norm; J d = 2 s P d, and s P d is exactly what a
demonstration adds in one layer.

With n demonstrations each has this flow over n, whether or not the query may read itself. Papers:
A1, Eq. 2 (2508.00385). docs/theory, "The one-shot flow", "Flow times input", "Attention with a
prior".
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, relative_error, seeds
from lsa_lab.models import linear_attention
from lsa_lab.models.trace import layer_predictions
from lsa_lab.theory import amplification

SHAPE = (3, 5, "all")  # n, e, keys
shapes = pytest.mark.parametrize("shape", [(1, 3, "demonstrations"), SHAPE])
one_shot_jacobian = jit_numpy(amplification.one_shot_jacobian)
contribution = jit_numpy(amplification.contribution)


def draw(seed, shape):
    """Weights K and P [e, e] and tokens [n+1, e]."""
    rng, (n, e, _) = np.random.default_rng(seed), shape
    return *rng.normal(size=(2, e, e)), rng.normal(size=(n + 1, e))


@partial(jit_numpy, static_argnames=("keys", "num_layers"))
def network(w_kq, w_pv, tokens, keys, num_layers=1):
    """n ∂a/∂d [e, e] and n ∂ŷ/∂d [e] at the first demonstration, and n times what it adds [e]."""
    weights = [jnp.broadcast_to(w, (num_layers, 1, *w.shape)) for w in (w_kq, w_pv)]

    def answer(rows):
        params = linear_attention.Params(*weights)
        trace = linear_attention.forward(params, rows, keys=keys, normalise=False)
        return trace.stream[-1, -1], layer_predictions(trace)[-1]

    flows = jax.jacfwd(lambda d: answer(jnp.concatenate([d[None], tokens[1:]])))(tokens[0])
    return *flows, answer(tokens)[0] - answer(tokens.at[0].set(0.0))[0]


def errors(seed, shape, transposed=False, num_layers=1):
    """Of the flow, of the prediction's flow, of flow times input and of the contribution."""
    w_kq, w_pv, tokens = draw(seed, shape)
    flow, prediction_flow, added = network(w_kq, w_pv, tokens, shape[2], num_layers)
    scores, (d, *_, q) = w_kq.T if transposed else w_kq, tokens
    stated, product = one_shot_jacobian(scores, w_pv, d, q), d @ scores @ q * (w_pv @ d)
    pairs = (flow, stated), (-prediction_flow, stated[-1]), (flow @ d, 2 * product)
    pairs += (added, product), (contribution(scores, w_pv, d, q), added)
    return [relative_error(left, right) for left, right in pairs]


@shapes
@seeds
def test_the_flow_through_one_layer_is_equation_2_and_times_input_twice_what_it_adds(shape, seed):
    assert max(errors(seed, shape)) < 1e-10


def norm_errors(seed, cross_term=True, rows=1):
    """Of the norm for any P, for an orthogonal one, and for one that writes to the last rows, which
    is the norm of the prediction's flow."""
    w_kq, w_pv, (d, *_, q) = draw(seed, SHAPE)
    s, asked = d @ w_kq @ q, w_kq @ q
    stated = s**2 * np.sum(w_pv**2) + np.sum((w_pv @ d) ** 2) * np.sum(asked**2)
    stated += cross_term * 2 * s * (w_pv @ asked) @ (w_pv @ d)
    orthogonal = (len(d) + 2 * cross_term) * s**2 + (d @ d) * np.sum(asked**2)
    few = w_pv * (np.arange(len(d)) >= len(d) - rows)[:, None]
    flows = [one_shot_jacobian(w_kq, w, d, q) for w in (w_pv, np.linalg.qr(w_pv)[0], few)]
    pairs = zip((stated, orthogonal, np.sum(flows[2][-1] ** 2)), flows, strict=True)
    return [relative_error(expected, np.sum(flow**2)) for expected, flow in pairs]


@seeds
def test_its_norm_is_the_expanded_square_and_weights_of_one_row_send_all_to_the_prediction(seed):
    assert max(norm_errors(seed)) < 1e-10


def test_control_transposed_scores_two_layers_a_norm_without_the_cross_term_and_a_second_row():
    assert min(errors(0, SHAPE, transposed=True)) > 1e-2
    assert min(errors(0, SHAPE, num_layers=2)) > 1e-2
    assert min(norm_errors(0, cross_term=False, rows=2)) > 1e-3
