"""Gradient descent on n demonstrations: ŷ_L = v_L·y, v_{l+1} = v_l + η(k - G v_l), → G⁺k; of one
demonstration v_L = (x·x_q/|x|²)(1 - Π_l (1 - η_l |x|²)).

G = XXᵀ/n, k = X x_query/n. With one step size and η|x|² < 1 the ratio of two flows falls iff the
first demonstration is the longer. Derived here; docs/theory, "The one-shot descent flow", "The
many-shot descent flow".
"""

import numpy as np

from draws import forward, jit_numpy, preconditioned, relative_error, seed_and, seeds, sizes
from lsa_lab.models.trace import layer_predictions
from lsa_lab.theory import amplification

L = 6
one_shot = jit_numpy(amplification.one_shot_descent_flow)


def many_shot(step_sizes, x, x_query):  # [L, n]
    gram, similarity, flow = x @ x.T / len(x), x @ x_query / len(x), [np.zeros(len(x))]
    for step in step_sizes:
        flow.append(flow[-1] + step * (similarity - gram @ flow[-1]))
    return np.stack(flow[1:])


def error(seed, n, d, **rule):
    rng = np.random.default_rng(seed)
    x, y, x_query = rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=d)
    step_sizes = n / np.linalg.norm(x, 2) ** 2 * rng.uniform(0.2, 1.8, size=L)
    params, rows = preconditioned(np.multiply.outer(step_sizes, np.eye(d))), np.vstack([x, x_query])
    predictions, *flow = (  # each unit label predicts its flow
        layer_predictions(forward(params, np.c_[rows, np.append(labels, 0.0)], **rule))[1:]
        for labels in (y, *np.eye(n))
    )
    flow = np.stack(flow, 1)
    stated = many_shot(step_sizes, x, x_query)
    errors = [relative_error(flow, stated), relative_error(predictions, stated @ y)]
    if n == 1:
        errors.append(relative_error(one_shot(step_sizes, x[0], x_query), flow[:, 0]))
        square, relevance = x[0] @ x[0], x[0] @ x_query
        written_out = relevance / square * (1 - np.cumprod(1 - step_sizes * square))
        errors.append(relative_error(flow[:, 0], written_out))
    return max(errors)


@sizes
@seeds
def test_the_flow_from_the_labels_is_itself_a_descent(n, d, seed):
    assert error(seed, n, d) < 1e-10


@sizes
@seeds
def test_its_limit_is_the_pseudo_inverse(n, d, seed):
    rng = np.random.default_rng(seed)
    left, _, right = np.linalg.svd(rng.normal(size=(n, d)), full_matrices=False)
    x_query = rng.normal(size=d)
    x = left * np.sqrt(n * rng.uniform(0.3, 1.0, size=min(n, d))) @ right
    limit = np.linalg.pinv(x @ x.T / n, rcond=1e-9) @ x @ x_query / n
    np.testing.assert_allclose(many_shot(np.ones(100), x, x_query)[-1], limit, atol=1e-10)
    # Control: steps beyond the limit leave it.
    beyond = many_shot(np.full(100, 2.5 * n / np.linalg.norm(x, 2) ** 2), x, x_query)
    assert np.abs(beyond[-1]).max() > 1e3


def log_ratios(seed, step_size, lengths):  # [L], of the flows of two demonstrations
    rng = np.random.default_rng(seed)
    pair, x_query = rng.normal(size=(2, 3)), rng.normal(size=3)
    pair = pair * (np.array(lengths) / np.linalg.norm(pair, axis=1))[:, None]
    flows = [one_shot(np.full(L, step_size), x, x_query) for x in pair]
    return np.log(np.abs(flows[0] / flows[1]))


@seed_and(short=(0.2, 0.9), share=(0.2, 0.9))
def test_depth_favours_the_shorter_demonstration(seed, short, share):
    assert np.all(np.diff(log_ratios(seed, share, (1.0, short))) < 0)
    assert np.all(np.diff(log_ratios(seed, share, (short, 1.0))) > 0)
    assert np.ptp(log_ratios(seed, share, (short, short))) < 1e-10


def test_control_a_query_that_reads_itself_a_forgotten_n_and_steps_that_overshoot_break_it():
    assert error(0, 5, 3, keys="all") > 1e-2
    assert error(0, 5, 3, normalise=False) > 1e-2
    # Every second layer alone favours the shorter one.
    assert set(np.sign(np.diff(log_ratios(0, 1.8, (1.0, 0.8))))) == {-1.0, 1.0}
