"""Attention whose weights know w_0: L layers are L steps of descent from w_0, and its flows.

Sides: ``prior_attention`` and its derivatives; descent, one demonstration after the other, and the
flows of one layer, ∂ŷ/∂x = η((y - w_0·x) x_q - (x·x_q) w_0)/n and ∂ŷ/∂y = η x·x_q/n. Derived here;
docs/theory, "Attention with a prior".
"""

import jax
import numpy as np

from draws import jit_numpy, seeds
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import layer_predictions
from lsa_lab.theory import amplification

L = 5
SHAPE = (7, 3)  # n, d
build = jit_numpy(constructions.prior_attention)
forward = jit_numpy(linear_attention.forward)
flow = jit_numpy(jax.jacrev(lambda *given: layer_predictions(linear_attention.forward(*given)), 1))
contribution, degeneracy, self_coupling = map(
    jit_numpy, (amplification.contribution, amplification.degeneracy, amplification.self_coupling)
)


def draw(seed, shape):
    """Step sizes, w_0, x and the query [n+1, d], and labels."""
    rng = np.random.default_rng(seed)
    (n, d), x = shape, rng.normal(size=(shape[0] + 1, shape[1]))
    return rng.uniform(0.05, 0.5, L), rng.normal(size=d), x, rng.normal(size=n)


def disagreements(seed, shape, query_slot=0.0, share=1.0, sign=-1.0):  # [2, L+1]
    """Every layer's slots and prediction against descent from w_0; the weights know a share of it.

    ``query_slot`` in units of -w_0·x_query. With ``sign`` +1, P = (-w_0, 1) and a plus read-out.
    """
    step_sizes, prior, x, y = draw(seed, shape)
    params = build(step_sizes, share * prior)
    rows = np.column_stack([x, np.append(y, -query_slot * prior @ x[-1])])
    stream = forward(params.replace(w_pv=-sign * params.w_pv), rows).stream
    predicted = (1 - query_slot) * prior @ x[-1] + sign * stream[:, -1, -1]
    w, differences = prior, []
    for layer, step_size in enumerate([*step_sizes, 0]):
        of_slots = stream[layer, :-1, -1] - (y - x[:-1] @ (w - prior))
        differences.append([np.abs(of_slots).max(), abs(predicted[layer] - x[-1] @ w)])
        gradient = sum((w @ a - b) * a for a, b in zip(x[:-1], y, strict=True)) / len(y)
        w = w - step_size * gradient
    return np.transpose(differences)


@seeds
def test_layers_are_steps_of_descent_from_what_the_weights_know(seed):
    assert disagreements(seed, SHAPE).max() < 1e-10
    assert disagreements(seed, SHAPE, query_slot=1.0).max() < 1e-10


def test_control_other_knowledge_or_the_plus_sign_is_another_path():
    assert disagreements(0, SHAPE, share=0.5)[:, 1:].min() > 1e-3
    of_prediction = disagreements(0, SHAPE, sign=1.0)[1]
    assert of_prediction[1] < 1e-10  # one layer does not see the sign
    assert of_prediction[2:].min() > 1e-3


def flow_disagreement(seed, shape, depth):
    """∂ŷ_depth/∂[x_i, y_i] against the flow of one layer."""
    step_sizes, prior, x, y = draw(seed, shape)
    params = build(step_sizes, prior)
    flows = flow(params, np.column_stack([x, np.append(y, 0.0)]))[depth, :-1]
    relevance, residual = x[:-1] @ x[-1], y - x[:-1] @ prior
    of_x = residual[:, None] * x[-1] - relevance[:, None] * prior
    stated = step_sizes[0] / len(y) * np.column_stack([of_x, relevance])
    return np.abs(flows - stated).max() / (1 + np.abs(stated).max())


@seeds
def test_the_flow_of_one_layer_has_residual_and_relevance_as_factors(seed):
    assert flow_disagreement(seed, SHAPE, depth=1) < 1e-10


def test_control_two_layers_have_another_flow():
    assert flow_disagreement(0, SHAPE, depth=2) > 1e-2


@seeds
def test_a_learned_pair_adds_nothing_but_flows_and_no_pair_couples_to_itself(seed):
    step_sizes, prior, x, y = draw(seed, SHAPE)
    params = build(step_sizes, prior)
    weights, query = (params.w_kq[0, 0], params.w_pv[0, 0]), np.append(x[-1], 0.0)
    learned, new = np.append(x[0], x[0] @ prior), np.append(x[0], y[0])
    assert np.abs(contribution(*weights, learned, query)).max() < 1e-10
    state = degeneracy(*weights, learned, query)
    assert state.learned
    assert not state.flow_vanishes
    added = contribution(*weights, new, query)[-1]
    assert abs(added + step_sizes[0] * (x[0] @ x[-1]) * (y[0] - prior @ x[0])) < 1e-10
    assert self_coupling(*weights, new) == 0
