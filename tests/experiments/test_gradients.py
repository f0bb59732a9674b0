"""The experiments on gradients of demonstrations: their measures beside plain loops."""

import numpy as np

from experiments.flow import grads


def descend(pool, prior, steps):
    x, y, weights = pool[:, :-1], pool[:, -1], prior
    for _ in range(steps):
        weights = weights + x.T @ (y - x @ weights) / np.linalg.norm(x, ord=2) ** 2
    return weights


def square_gradients(pool, x_query, prior):
    """Return |∂ŷ/∂e_i|² and the rest of |∂a/∂e_i|² of one layer with step 1, by its definition."""
    e = pool.shape[1]
    w_kq, w_pv = np.diag([1.0] * (e - 1) + [0.0]), np.zeros((e, e))
    w_pv[-1] = [*prior, -1]
    query = w_kq @ [*x_query, 0]
    jacobians = [(row @ query) * w_pv + np.outer(w_pv @ row, query) for row in pool]
    return [(jacobian**2).sum() for jacobian in jacobians]


def test_grads_recomputed_takes_what_is_learnt_for_the_prior():
    config = grads.Config(3, query_density=1.0, pool=6, shots=3, depth=40, queries=5, runs=1)
    cases = grads.draw_cases(np.random.default_rng(0), config, 1.0, 1, 0.5, False)
    for q in range(5):
        case = grads.Case(*(leaf[q] for leaf in cases))
        picks = dict(zip(grads.RULES, np.asarray(grads.select_all(case, config)), strict=True))
        once = square_gradients(case.pool, case.x_query, case.prior)
        assert picks["GradS"].tolist() == np.argsort(once)[: -config.shots - 1 : -1].tolist()
        chosen = []
        while len(chosen) < config.shots:
            prior = descend(case.pool[chosen], case.prior, 40) if chosen else case.prior
            sizes = square_gradients(case.pool, case.x_query, prior)
            sizes = [-1.0 if i in chosen else size for i, size in enumerate(sizes)]
            chosen.append(int(np.argmax(sizes)))
        assert picks[grads.RECOMPUTED].tolist() == chosen


def test_bm25_is_its_sum_over_shared_coordinates():
    x = np.array([[1.0, 0.0, 2.0], [0.0, 0.5, 1.0], [3.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    x_query = np.array([2.0, 0.0, -1.0])
    counts, expected = np.abs(x) / np.abs(x).mean(), np.zeros(4)
    lengths = counts.sum(1)
    for i, row in enumerate(counts):
        for j in np.flatnonzero(x_query):
            holders = np.count_nonzero(x[:, j])
            rarity = np.log(1 + (4 - holders + 0.5) / (holders + 0.5))
            share = 1 - 0.75 + 0.75 * lengths[i] / lengths.mean()
            expected[i] += rarity * row[j] * 2.5 / (row[j] + 1.5 * share)
    np.testing.assert_allclose(grads.score_bm25(x, x_query), expected, rtol=1e-12)
