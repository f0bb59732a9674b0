"""A subset with the pool's second moment is as good as the pool, at any depth of linear attention.

docs/theory, "Matched moments predict alike".
"""

import numpy as np

from draws import draw_rotation, draw_stack, jit_numpy, seeds
from lsa_lab.models import constructions, transformer
from lsa_lab.selection.baselines import moment_features
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


@seeds
def test_a_group_with_the_moment_of_the_pool_is_as_good_as_the_pool(seed):
    pool, x_query, params, _ = draw(seed)
    group, features = np.arange(SIZE, 2 * SIZE), np.asarray(moment_features(pool))
    assert np.linalg.norm(features[group].mean(0) - features.mean(0)) < 1e-12
    assert move(params, pool, group, x_query) < 1e-10
    assert move(DESCENT, pool, group, x_query) < 1e-10


def test_control_other_subsets_move_the_prediction_and_softmax_sees_more_than_the_moment():
    moves, softmax_moves = [], []
    for seed in range(10):
        pool, x_query, params, rng = draw(seed)
        moves.append(move(params, pool, np.arange(SIZE) * PARTS, x_query))  # of several groups
        w_q, w_k, w_v, w_o = rng.normal(size=(4, 2, 2, D, D + 1)) / 2
        params, query = transformer.Params(w_q, w_k, w_v, w_o.swapaxes(2, 3)), np.append(x_query, 0)
        answers = [softmax(params, np.vstack([rows, query])) for rows in (pool[:SIZE], pool)]
        softmax_moves.append(abs(answers[0] - answers[1]) / max(1, abs(answers[1])))
    assert np.median(moves) > 1e-3
    assert np.median(softmax_moves) > 1e-2
