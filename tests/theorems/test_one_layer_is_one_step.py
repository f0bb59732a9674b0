"""One layer of linear attention is one step of gradient descent from any w_0.

von Oswald et al. 2212.07677; docs/theory, "One layer is one step": W_pv = η [0 0; w_0ᵀ -1],
W_kq = diag(I, 0), the query's label slot starting at -w_0·x_query. The same layer again is the next
step (derived here): slot i holds y_i - (w_l - w_0)·x_i, to which every layer adds its own w_0·x_i
to get the residual of w_l. Sides: two layers of linear attention; descent, one demonstration after
the other.
"""

import numpy as np

from draws import jit_numpy, seed_and
from lsa_lab.models import linear_attention
from lsa_lab.models.trace import layer_predictions

N, D = 7, 3
forward = jit_numpy(linear_attention.forward, static_argnames="normalise")


def one_step(x, y, initial, step_size):
    """w_0 - (η/n) Σ_i (w_0·x_i - y_i) x_i, one demonstration after the other."""
    w = np.array(initial)
    for covariates, label in zip(x, y, strict=True):
        w -= step_size / len(y) * (np.dot(initial, covariates) - label) * covariates
    return w


def disagreement(seed, step_size, query_slot=-1.0, later_initial=1.0, normalise=True):
    """Predictions against w_l·x_query and slots against y - (w_l - w_0)·x, over two layers."""
    rng = np.random.default_rng(seed)
    x, y, initial = rng.normal(size=(N + 1, D)), rng.normal(size=N), rng.normal(size=D)
    slots = np.append(y, query_slot * initial @ x[-1])
    w_pv, w_kq = np.zeros((2, 2, D + 1, D + 1))
    w_pv[:, D, :D], w_pv[:, D, D] = [initial, later_initial * initial], -1
    w_kq[:, :D, :D] = np.eye(D)
    params = linear_attention.Params(w_kq[:, None], step_size * w_pv[:, None])
    trace = forward(params, np.column_stack([x, slots]), normalise=normalise)

    differences, w = [], np.array(initial)
    for layer, prediction in enumerate(layer_predictions(trace)[1:], start=1):
        w = one_step(x[:-1], y, w, step_size)
        of_slots = trace.stream[layer, :-1, -1] - (y - x[:-1] @ (w - initial))
        differences.append(max(np.max(np.abs(of_slots)), abs(prediction - x[-1] @ w)))
    return differences


@seed_and(step_size=(0.01, 1.0))
def test_every_layer_is_one_step_from_any_initial_weights(seed, step_size):
    assert max(disagreement(seed, step_size)) < 1e-10


def test_control_an_empty_query_slot_a_forgotten_mean_or_a_layer_without_w_0_breaks_it():
    assert min(disagreement(0, 0.5, query_slot=0.0)) > 1e-2
    assert min(disagreement(0, 0.5, normalise=False)) > 1e-2
    first, second = disagreement(0, 0.5, later_initial=0.0)
    assert first < 1e-10
    assert second > 1e-2
