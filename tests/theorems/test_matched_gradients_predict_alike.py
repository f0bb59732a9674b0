"""A gap of zero at d + 1 checkpoints makes a subset as good as the pool for gradient descent.

It fixes XᵀX/n and Xᵀy/n, all that such layers read, at any depth; yᵀy/n remains free, and d
checkpoints leave a direction of XᵀX free too (docs/theory, "Matched gradients predict alike").
Sides: the linear proxy's gradients; forward passes over the subset and over the pool.
"""

import numpy as np

import population
from draws import on_host, seeds
from lsa_lab.models import constructions, linear_attention
from lsa_lab.selection.prefix import linear_gradients
from lsa_lab.tasks.pools import Pool

D, SIZE = 3, 6
DESCENT = on_host(constructions.gradient_descent_plus_plus, static_argnums=2)(
    np.full(4, 0.3), np.full(4, 0.05), D
)
predict, gradients_of = on_host(population.predict), on_host(linear_gradients)


def draw(seed, num_checkpoints):
    """A pool whose first half has the gradients of the second at the checkpoints, and no more.

    With u·w + v = 0 at all of them, moments S and S + u uᵀ, b and b - v u have the same gradients;
    (u, v) = 0 if there are d + 1. The labels of the first half also gain what no covariate sees.
    """
    rng = np.random.default_rng(seed)
    x, y, x_query = rng.normal(size=(SIZE, D)), rng.normal(size=SIZE), rng.normal(size=D)
    checkpoints = rng.normal(size=(num_checkpoints, D))
    null = np.zeros(D + 1)
    if num_checkpoints <= D:
        null = np.linalg.svd(np.c_[checkpoints, np.ones(num_checkpoints)])[2][-1]
    u, v = null[:-1], null[-1]
    root = np.linalg.cholesky(x.T @ x / SIZE + np.outer(u, u))
    basis = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0] * np.sqrt(SIZE)
    other_x = basis[:, :D] @ root.T
    other_y = basis[:, :D] @ np.linalg.solve(root, x.T @ y / SIZE - v * u) + basis[:, D]
    return Pool(np.r_[other_x, x], np.r_[other_y, y]), checkpoints, x_query, rng


def gap(pool, checkpoints):
    gradients = gradients_of(checkpoints, pool)
    return np.linalg.norm(gradients[:SIZE].mean(0) - gradients.mean(0)) / np.abs(gradients).max()


def moved(params, pool, x_query):
    half = predict(params, pool.x[:SIZE], pool.y[:SIZE], x_query)
    whole = predict(params, pool.x, pool.y, x_query)
    return abs(half - whole) / max(1, abs(whole))


@seeds
def test_d_plus_one_checkpoints_are_enough_for_gradient_descent(seed):
    pool, checkpoints, x_query, _ = draw(seed, D + 1)
    assert gap(pool, checkpoints) < 1e-11
    assert moved(DESCENT, pool, x_query) < 1e-10


def test_control_d_checkpoints_are_too_few():
    draws = [draw(seed, D)[:3] for seed in range(10)]
    assert max(gap(pool, checkpoints) for pool, checkpoints, _ in draws) < 1e-11
    assert np.median([moved(DESCENT, pool, x_query) for pool, _, x_query in draws]) > 1e-2


def test_control_other_weights_read_the_labels_second_moment_too():
    differences = []
    for seed in range(10):
        pool, _, x_query, rng = draw(seed, D + 1)
        weights = [0.3 * rng.normal(size=DESCENT.w_kq.shape) for _ in range(2)]
        differences.append(moved(linear_attention.Params(*weights), pool, x_query))
    assert np.median(differences) > 1e-3
