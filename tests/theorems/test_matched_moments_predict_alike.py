"""A subset with the pool's second moment is as good as the pool, at any depth of linear attention.

docs/theory, "Matched moments predict alike".
"""

import numpy as np

from draws import draw_rotation, draw_stack, draw_transformer, jit_numpy, seeds
from lsa_lab.models import constructions, transformer
from population import answer

D, SIZE, PARTS = 3, 6, 5
SOFTMAX = transformer.Config(D + 1, 2, 2, D)
moving = jit_numpy(constructions.gradient_descent_plus_plus, static_argnums=2)
DESCENT = moving(np.full(4, 0.3), np.full(4, 0.05), D)
softmax = jit_numpy(lambda params, rows: transformer.predict(params, rows, SOFTMAX))


def draw(seed):
    """A pool of groups with one moment, U E with orthogonal U, a query and weights."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(SIZE, D + 1))
    pool = np.concatenate([draw_rotation(rng, SIZE) @ rows for _ in range(PARTS)])
    return pool, rng.normal(size=D), draw_stack(rng, 3, 2, D + 1), rng


def move(params, pool, indices, x_query):
    part, whole = (answer(params, r[:, :-1], r[:, -1], x_query) for r in (pool[indices], pool))
    return abs(part - whole) / max(1, abs(whole))


def feature_gap(pool, indices):  # of e eᵀ, off-diagonal entries once, times √2
    rows, columns = np.triu_indices(D + 1)
    features = pool[:, rows] * pool[:, columns] * np.where(rows == columns, 1, np.sqrt(2))
    return np.linalg.norm(features[indices].mean(0) - features.mean(0))


@seeds
def test_a_group_with_the_moment_of_the_pool_is_as_good_as_the_pool(seed):
    pool, x_query, params, rng = draw(seed)
    group = np.arange(SIZE, 2 * SIZE)
    assert feature_gap(pool, group) < 1e-12
    assert move(params, pool, group, x_query) < 1e-10
    assert move(DESCENT, pool, group, x_query) < 1e-10
    others = rng.permutation(len(pool))[:SIZE]
    part, whole = (rows.T @ rows / len(rows) for rows in (pool[others], pool))
    np.testing.assert_allclose(feature_gap(pool, others), np.linalg.norm(part - whole), rtol=1e-10)


def test_control_other_subsets_move_the_prediction_and_softmax_sees_more_than_the_moment():
    moves, softmax_moves = [], []
    for seed in range(10):
        pool, x_query, params, rng = draw(seed)
        moves.append(move(params, pool, np.arange(SIZE) * PARTS, x_query))  # of several groups
        params = draw_transformer(rng, 2, 2, D, D + 1, 0.5)
        rows = [np.vstack([r, np.append(x_query, 0)]) for r in (pool[:SIZE], pool)]
        part, whole = (softmax(params, r) for r in rows)
        softmax_moves.append(abs(part - whole) / max(1, abs(whole)))
    assert np.median(moves) > 1e-3
    assert np.median(softmax_moves) > 1e-2
