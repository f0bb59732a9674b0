"""d + 1 affinely independent checkpoints determine XᵀX/n and Xᵀy/n, and d do not: sets whose mean
gradients agree at enough checkpoints teach gradient descent the same, at any depth.

ḡ(w) = S w - b is affine in w. yᵀy/n remains free. For L steps the first min(L, d + 1) iterates of
one set's own path are enough. A subset with the pool's second moment is as good as the pool, at any
depth of linear attention. Papers: A3. docs/theory, "Checkpoints determine moments", "Matched
gradients predict alike", "Matched moments predict alike".
"""

import numpy as np
import pytest

from draws import descend, draw_rotation, draw_stack, draw_transformer, jit_numpy, seeds
from lsa_lab.models import constructions, transformer
from lsa_lab.selection.prefix import linear_gradients
from lsa_lab.tasks.pools import Pool
from population import answer

D, SIZE, STEP, PARTS = 3, 6, 0.2, 5
SOFTMAX = transformer.Config(D + 1, 2, 2, D)
softmax = jit_numpy(lambda params, rows: transformer.predict(params, rows, SOFTMAX))
moving = jit_numpy(constructions.gradient_descent_plus_plus, static_argnums=2)
DESCENT = moving(np.full(4, 0.3), np.full(4, 0.05), D)
descent = jit_numpy(lambda steps: constructions.gradient_descent(steps, D))
gradients = jit_numpy(linear_gradients)


def mean_gradients(points, x, y):  # [C, d]
    return gradients(points, Pool(x, y)).mean(0).reshape(points.shape)


@pytest.mark.parametrize(("d", "n"), [(2, 5), (4, 3), (1, 1)])
@seeds
def test_mean_gradients_at_d_plus_one_checkpoints_give_the_moments(d, n, seed):
    rng = np.random.default_rng(seed)
    x, y, turn = rng.normal(size=(n, d)), rng.normal(size=n), draw_rotation(rng, d + 1)
    points = turn[:, :-1] / turn[:, -1:]
    recovered = mean_gradients(points, x, y).T @ np.diag(turn[:, -1]) @ turn
    size = np.abs(points).max()  # a point far out costs digits
    stated = x.T @ np.column_stack([x, -y]) / n  # [S, -b]
    np.testing.assert_allclose(recovered, stated, rtol=1e-10, atol=1e-13 * size + 1e-11)


def draw(seed, choose_points):
    """Two sets with the same mean gradients at the points that the first has, the points, a query.

    With u·w + v = 0 at all of them, moments S and S + u uᵀ, b and b - v u have the same gradients;
    (u, v) = 0 if there are d + 1. The labels of the second also gain what no covariate sees.
    """
    rng = np.random.default_rng(seed)
    x, y, x_query = rng.normal(size=(SIZE, D)), rng.normal(size=SIZE), rng.normal(size=D)
    points = choose_points(x, y, rng)
    affine = np.c_[points, np.ones(len(points))]
    free = np.linalg.svd(affine)[2][np.linalg.matrix_rank(affine) :]
    null = rng.normal(size=len(free)) @ free
    u, v = null[:-1], null[-1]
    root = np.linalg.cholesky(x.T @ x / SIZE + np.outer(u, u))
    basis = draw_rotation(rng, SIZE) * np.sqrt(SIZE)
    other_y = basis[:, :D] @ np.linalg.solve(root, x.T @ y / SIZE - v * u) + basis[:, D]
    return [(x, y), (basis[:, :D] @ root.T, other_y)], points, x_query


def anywhere(count):
    return lambda x, y, rng: rng.normal(size=(count, D))


def on_a_line(x, y, rng):
    first, step = rng.normal(size=(2, 1, D))
    return first + np.arange(9.0)[:, None] * step


def on_the_path(count):  # the first iterates of the first set
    return lambda x, y, _: np.reshape([descend(x, y, [STEP] * k) for k in range(count)], (count, D))


def relative_move(found, expected):
    return abs(found - expected) / max(1, abs(expected))


def errors(seed, choose_points, params, pooled=True):
    """The gap of mean gradients at the points, and how far the answers of the stack are apart."""
    (first, second), points, x_query = draw(seed, choose_points)
    if pooled:  # the first set beside both
        second = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    move = relative_move(*(answer(params, *rows, x_query) for rows in (second, first)))
    if not len(points):
        return 0.0, move
    gap = np.subtract(*(mean_gradients(points, *rows) for rows in (first, second)))
    return np.linalg.norm(gap) / np.abs(gradients(points, Pool(*first))).max(), move


@seeds
def test_d_plus_one_checkpoints_are_enough_for_gradient_descent(seed):
    gap, move = errors(seed, anywhere(D + 1), DESCENT)
    assert gap < 1e-11
    assert move < 1e-10


def test_control_fewer_checkpoints_those_on_a_line_and_other_weights_do_not_determine_it():
    """Other weights read the second moment of the labels too."""
    for points in (anywhere(D), on_a_line):
        gaps, moves = np.transpose([errors(seed, points, DESCENT) for seed in range(10)])
        assert gaps.max() < 1e-11
        assert np.median(moves) > 1e-2
    stacks = [draw_stack(np.random.default_rng(seed), 4, 1, D + 1) for seed in range(10)]
    moves = [errors(seed, anywhere(D + 1), stack)[1] for seed, stack in enumerate(stacks)]
    assert np.median(moves) > 1e-3


@pytest.mark.parametrize("depth", [1, 3, 6])
@seeds
def test_gradients_on_the_first_steps_are_enough_and_control_one_step_less_is_not(depth, seed):
    params, count = descent(np.full(depth, STEP)), min(depth, D + 1)
    assert errors(seed, on_the_path(count), params, pooled=False)[1] < 1e-10
    if seed == 0:
        points = on_the_path(count - 1)
        moves = [errors(other, points, params, pooled=False)[1] for other in range(10)]
        assert np.median(moves) > 1e-5


def feature_gap(pool, indices):  # of e eᵀ, off-diagonal entries once, times √2
    rows, columns = np.triu_indices(D + 1)
    features = pool[:, rows] * pool[:, columns] * np.where(rows == columns, 1, np.sqrt(2))
    return np.linalg.norm(features[indices].mean(0) - features.mean(0))


def move_by_moments(seed, indices, params=None):
    """A pool of groups with one moment, U E with orthogonal U, and the change by choosing rows."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(SIZE, D + 1))
    pool = np.concatenate([draw_rotation(rng, SIZE) @ rows for _ in range(PARTS)])
    x_query, stack = rng.normal(size=D), draw_stack(rng, 3, 2, D + 1)

    def run(rows):
        if params == "softmax":
            separate = draw_transformer(np.random.default_rng(seed), 2, 2, D, D + 1, 0.5)
            return softmax(separate, np.vstack([rows, np.append(x_query, 0.0)]))
        return answer(params or stack, rows[:, :-1], rows[:, -1], x_query)

    return pool, relative_move(run(pool[indices]), run(pool))


@seeds
def test_a_group_with_the_moment_of_the_pool_is_as_good_as_the_pool(seed):
    group, others = np.arange(SIZE, 2 * SIZE), np.arange(SIZE) * PARTS  # of several groups
    pool, move = move_by_moments(seed, group)
    assert max(move, move_by_moments(seed, group, DESCENT)[1]) < 1e-10
    assert feature_gap(pool, group) < 1e-12
    part, whole = (rows.T @ rows / len(rows) for rows in (pool[others], pool))
    np.testing.assert_allclose(feature_gap(pool, others), np.linalg.norm(part - whole), rtol=1e-10)
    if seed == 0:  # Controls: other subsets, and softmax, which sees more than the moment
        draws = range(10)
        assert np.median([move_by_moments(draw, others)[1] for draw in draws]) > 1e-3
        assert np.median([move_by_moments(draw, group, "softmax")[1] for draw in draws]) > 1e-2
