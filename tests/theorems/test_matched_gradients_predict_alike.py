"""d + 1 affinely independent checkpoints determine XᵀX/n and Xᵀy/n, and d do not: sets whose mean
gradients agree at enough checkpoints teach gradient descent the same, at any depth.

ḡ(w) = S w - b is affine in w. yᵀy/n remains free. For L steps the first min(L, d + 1) iterates of
one set's own path are enough. Papers: A3. docs/theory, "Checkpoints determine moments", "Matched
gradients predict alike".
"""

import numpy as np
import pytest

from draws import draw_rotation, draw_stack, jit_numpy, seeds
from lsa_lab.models import constructions
from lsa_lab.selection.prefix import linear_gradients
from lsa_lab.tasks.pools import Pool
from population import answer

D, SIZE, STEP = 3, 6, 0.2
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
    def iterates(x, y, _):
        path = [np.zeros(D)]
        for _ in range(count):
            path.append(path[-1] + STEP * x.T @ (y - x @ path[-1]) / SIZE)
        return np.array(path)[:count]

    return iterates


def errors(seed, choose_points, params, pooled=True):
    """The gap of mean gradients at the points, and how far the answers of the stack are apart."""
    (first, second), points, x_query = draw(seed, choose_points)
    if pooled:  # the first set beside both
        second = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    answers = [answer(params, *rows, x_query) for rows in (first, second)]
    move = abs(answers[0] - answers[1]) / max(1, abs(answers[0]))
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
    others = range(seed, seed + 10)
    moves = [errors(other, on_the_path(count - 1), params, False)[1] for other in others]
    assert np.median(moves) > 1e-5
