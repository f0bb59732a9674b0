"""Attention whose weights know w_0: L layers are L steps of descent from w_0, and its flows.

Papers: A1's model. One layer is one step from any w_0 by von Oswald et al. 2212.07677; the later
layers and the flows are derived here. docs/theory, "One layer is one step", "Attention with a
prior".
"""

import itertools

import jax
import numpy as np
import pytest

from draws import forward, jit_numpy, seeds, sizes
from lsa_lab.models import constructions, linear_attention, trace
from lsa_lab.theory import amplification

L = 5
build = jit_numpy(constructions.prior_attention)
flow = jit_numpy(
    jax.jacrev(lambda *args: trace.layer_predictions(linear_attention.forward(*args)), 1)
)
contribution, jacobian = map(
    jit_numpy, (amplification.contribution, amplification.one_shot_jacobian)
)


def draw(seed, n, d):  # step sizes, w_0, x and the query [n+1, d], and labels
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n + 1, d)), rng.normal(size=n)
    return rng.uniform(0.05, 0.5, L), rng.normal(size=d), x, y


def errors(seed, n, d, query_slot=0.0, share=1.0, sign=-1.0, normalise=True):  # [2, L+1]
    """Every layer's slots and prediction against descent from w_0; the weights know a share of it.

    ``query_slot`` in units of -w_0·x_query. With ``sign`` +1, P = (-w_0, 1) and a plus read-out.
    """
    step_sizes, prior, x, y = draw(seed, n, d)
    params = build(step_sizes, share * prior)
    rows = np.column_stack([x, np.append(y, -query_slot * prior @ x[-1])])
    params = params.replace(w_pv=-sign * params.w_pv)
    stream = forward(params, rows, normalise=normalise).stream
    predicted = (1 - query_slot) * prior @ x[-1] + sign * stream[:, -1, -1]
    w, differences = prior, []
    for layer, step_size in enumerate([*step_sizes, 0]):
        slots = stream[layer, :-1, -1] - (y - x[:-1] @ (w - prior))
        differences.append([np.abs(slots).max(), abs(predicted[layer] - x[-1] @ w)])
        w = w + step_size * (y - x[:-1] @ w) @ x[:-1] / n
    return np.transpose(differences)


def flow_error(seed, n, d, depth):
    """∂ŷ_depth/∂[x_i, y_i] against η((y - w_0·x) x_q - (x·x_q) w_0)/n and η x·x_q/n."""
    step_sizes, prior, x, y = draw(seed, n, d)
    flows = flow(build(step_sizes, prior), np.column_stack([x, np.append(y, 0.0)]))[depth, :-1]
    relevance, residual = x[:-1] @ x[-1], y - x[:-1] @ prior
    by_x = residual[:, None] * x[-1] - relevance[:, None] * prior
    stated = step_sizes[0] / n * np.column_stack([by_x, relevance])
    return np.abs(flows - stated).max() / (1 + np.abs(stated).max())


@sizes
@seeds
def test_layers_are_steps_of_descent_from_what_the_weights_know_and_have_these_flows(n, d, seed):
    assert errors(seed, n, d).max() < 1e-10
    assert errors(seed, n, d, query_slot=1.0).max() < 1e-10
    assert flow_error(seed, n, d, depth=1) < 1e-10  # residual and relevance are its factors


def test_control_other_knowledge_the_plus_sign_a_sum_or_two_layers_differ():
    assert errors(0, 5, 3, share=0.5)[:, 1:].min() > 1e-3
    assert errors(0, 5, 3, normalise=False)[:, 1:].min() > 1e-3
    prediction = errors(0, 5, 3, sign=1.0)[1]
    assert prediction[1] < 1e-10  # one layer does not see the sign
    assert prediction[2:].min() > 1e-3
    assert flow_error(0, 5, 3, depth=2) > 1e-2


@seeds
def test_a_learned_pair_adds_nothing_but_flows_and_no_pair_couples_to_itself(seed):
    step_sizes, prior, x, y = draw(seed, 5, 3)
    params = build(step_sizes, prior)
    weights, query = (params.w_kq[0, 0], params.w_pv[0, 0]), np.append(x[-1], 0.0)
    learned, new = np.append(x[0], x[0] @ prior), np.append(x[0], y[0])
    assert np.abs(contribution(*weights, learned, query)).max() < 1e-10
    assert np.abs(jacobian(*weights, learned, query)).max() > 1e-6
    added = contribution(*weights, new, query)[-1]
    assert abs(added + step_sizes[0] * (x[0] @ x[-1]) * (y[0] - prior @ x[0])) < 1e-10
    assert amplification.self_coupling(*weights, new) == 0


def removed(d, density, step, aligned=False):
    """The share of the mean error that one step on one demonstration, η = step/E|x|⁴, removes.

    x_i is 0, or ±1/√(density d); every unknown w - w_0 and query, or those along each other.
    """
    x = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=d)))
    masses = np.where(x == 0, 1 - density, density / 2).prod(1)
    x, fourth = x / np.sqrt(density * d), 1 / (density * d) + 1 - 1 / d
    left = np.eye(d) - step / fourth * x[:, :, None] * x[:, None]  # of each unknown, by the query
    errors = np.einsum("xwq,x->wq", left**2, masses)
    share = np.diagonal(errors).mean() if aligned else errors.mean() * d
    return 1 - share, (2 * step - step**2) / (d * fourth)


@pytest.mark.parametrize(("d", "density"), [(1, 1.0), (3, 0.3)])
def test_one_step_removes_a_share_of_the_error_that_the_fourth_moment_limits(d, density):
    for step in np.linspace(0.1, 5.0, 50):
        found, stated = removed(d, density, step)
        assert abs(found - stated) < 1e-10
        assert found <= removed(d, density, 1.0)[0] + 1e-12
    if d > 1:  # Control: a query along the unknown weight
        assert abs(np.subtract(*removed(d, density, 1.0, aligned=True))) > 1e-2
