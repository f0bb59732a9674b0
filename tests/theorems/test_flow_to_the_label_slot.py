"""Weights that write to the label slot alone: the flow to the prediction is all of A1's Eq. 2.

docs/theory, "Attention with a prior". Sides: the derivatives of the prediction and of the whole
token; the Jacobian P (s I + d (Kq)ᵀ), whose rows but the last are 0. Derived here.
"""

from functools import partial

import jax
import numpy as np
import pytest

from draws import seeds
from lsa_lab.models import linear_attention
from lsa_lab.models.trace import layer_predictions
from lsa_lab.theory import amplification

E = 5


@partial(jax.jit, static_argnames="keys")
def flows(w_kq, w_pv, tokens, keys):  # [e, e], [e]
    """Derivatives of the query's token, and of the prediction, to the one demonstration."""
    params = linear_attention.Params(w_kq[None, None], w_pv[None, None])

    def answer(demonstration):
        trace = linear_attention.forward(params, tokens.at[0].set(demonstration), keys=keys)
        return trace.stream[-1, -1], layer_predictions(trace)[-1]

    return jax.jacfwd(answer)(tokens[0])


def sizes(seed, e, keys, rows=1):
    """The norms of both flows and of the closed form; the last ``rows`` of P are not zero."""
    rng = np.random.default_rng(seed)
    w_kq, w_pv = rng.normal(size=(2, e, e))
    w_pv[:-rows] = 0
    tokens = jax.numpy.array(rng.normal(size=(2, e)))
    of_token, of_prediction = flows(w_kq, w_pv, tokens, keys)
    stated = amplification.one_shot_jacobian(w_kq, w_pv, tokens[0], tokens[1])
    return [np.linalg.norm(flow) for flow in (of_prediction, of_token, stated)]


@pytest.mark.parametrize("keys", ["demonstrations", "all"])
@seeds
def test_the_flow_to_the_prediction_is_all_of_it(keys, seed):
    of_prediction, of_token, stated = sizes(seed, E, keys)
    assert abs(of_prediction - stated) < 1e-10 * (1 + stated)
    assert abs(of_token - stated) < 1e-10 * (1 + stated)


def test_control_a_second_row_takes_its_share():
    of_prediction, of_token, stated = sizes(0, 5, "demonstrations", rows=2)
    assert abs(of_token - stated) < 1e-10 * (1 + stated)
    assert of_prediction < 0.9 * stated
