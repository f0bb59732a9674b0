"""Sets whose mean gradients agree at enough checkpoints teach gradient descent the same.

A gap of zero at d + 1 checkpoints fixes XᵀX/n and Xᵀy/n, all that such layers read, at any depth;
yᵀy/n remains free, and d checkpoints leave a direction of XᵀX free too. For L steps the first
min(L, d + 1) iterates of one set's own path are enough (docs/theory, "Matched gradients predict
alike"). Sides: the linear proxy's gradients, iterates of descent by hand; forward passes over both.
"""

import numpy as np
import pytest

import population
from draws import jit_numpy, seeds
from lsa_lab.models import constructions, linear_attention
from lsa_lab.selection.prefix import linear_gradients
from lsa_lab.tasks.pools import Pool

D, SIZE, STEP = 3, 6, 0.2
DEPTHS = pytest.mark.parametrize("depth", [1, 3, 6])
moving = jit_numpy(constructions.gradient_descent_plus_plus, static_argnums=2)
DESCENT = moving(np.full(4, 0.3), np.full(4, 0.05), D)
descent = jit_numpy(lambda steps: constructions.gradient_descent(steps, D))
predict, gradients_of = jit_numpy(population.predict), jit_numpy(linear_gradients)


def draw(seed, points_of):
    """Two sets with the same mean gradients at the points that the first has, the points, a query.

    With u·w + v = 0 at all of them, moments S and S + u uᵀ, b and b - v u have the same gradients;
    (u, v) = 0 if there are d + 1. The labels of the second also gain what no covariate sees.
    """
    rng = np.random.default_rng(seed)
    x, y, x_query = rng.normal(size=(SIZE, D)), rng.normal(size=SIZE), rng.normal(size=D)
    points = points_of(x, y, rng)
    free = np.linalg.svd(np.c_[points, np.ones(len(points))])[2][len(points) :]
    null = rng.normal(size=len(free)) @ free
    u, v = null[:-1], null[-1]
    root = np.linalg.cholesky(x.T @ x / SIZE + np.outer(u, u))
    basis = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0] * np.sqrt(SIZE)
    other_y = basis[:, :D] @ np.linalg.solve(root, x.T @ y / SIZE - v * u) + basis[:, D]
    return (x, y), (basis[:, :D] @ root.T, other_y), points, x_query


def anywhere(count):
    return lambda x, y, rng: rng.normal(size=(count, D))


def on_the_path(count):  # the first iterates of the first set
    def iterates(x, y, _):
        path = [np.zeros(D)]
        for _ in range(count):
            path.append(path[-1] + STEP * x.T @ (y - x @ path[-1]) / SIZE)
        return np.array(path)[:count]

    return iterates


def pooled(first, second):
    return [np.concatenate(pair) for pair in zip(first, second, strict=True)]


def gap(first, second, points):
    """The first set's gap in the pool of both."""
    gradients = gradients_of(points, Pool(*pooled(first, second)))
    return np.linalg.norm(gradients[:SIZE].mean(0) - gradients.mean(0)) / np.abs(gradients).max()


def moved(params, first, second, x_query):
    answers = [predict(params, *rows, x_query) for rows in (first, second)]
    return abs(answers[0] - answers[1]) / max(1, abs(answers[0]))


@seeds
def test_d_plus_one_checkpoints_are_enough_for_gradient_descent(seed):
    *sets, points, x_query = draw(seed, anywhere(D + 1))
    assert gap(*sets, points) < 1e-11
    assert moved(DESCENT, sets[0], pooled(*sets), x_query) < 1e-10


def test_control_d_checkpoints_are_too_few():
    cases = [draw(seed, anywhere(D)) for seed in range(10)]
    assert max(gap(*case[:3]) for case in cases) < 1e-11
    moves = [moved(DESCENT, sets[0], pooled(*sets), query) for *sets, _, query in cases]
    assert np.median(moves) > 1e-2


def test_control_other_weights_read_the_labels_second_moment_too():
    differences = []
    for seed in range(10):
        *sets, _, x_query = draw(seed, anywhere(D + 1))
        weights = 0.3 * np.random.default_rng(seed).normal(size=(2, *DESCENT.w_kq.shape))
        case = linear_attention.Params(*weights), sets[0], pooled(*sets), x_query
        differences.append(moved(*case))
    assert np.median(differences) > 1e-3


def moved_by_steps(seed, depth, less=0):
    *sets, _, x_query = draw(seed, on_the_path(min(depth, D + 1) - less))
    return moved(descent(np.full(depth, STEP)), *sets, x_query)


@DEPTHS
@seeds
def test_gradients_on_the_first_steps_are_enough(depth, seed):
    assert moved_by_steps(seed, depth) < 1e-10


@DEPTHS
def test_control_one_step_less_is_not(depth):
    assert np.median([moved_by_steps(seed, depth, less=1) for seed in range(10)]) > 1e-5
