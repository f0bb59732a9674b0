"""L steps of descent cannot tell sets apart whose gradients agree on the first min(L, d + 1) steps.

docs/theory, "Matched gradients predict alike", (2). Sides: the iterates of descent on one set, by
hand; forward passes of L layers over it and over a set that agrees with it there alone.
"""

import numpy as np
import pytest

import population
from draws import on_host, seeds
from lsa_lab.models import constructions

D, N, STEP = 3, 8, 0.2
DEPTHS = [1, 3, 6]
predict = on_host(population.predict)
descent = on_host(lambda steps: constructions.gradient_descent(steps, D))


def iterates(x, y, count):  # [count, d]
    path = [np.zeros(D)]
    for _ in range(count - 1):
        path.append(path[-1] + STEP * x.T @ (y - x @ path[-1]) / N)
    return np.stack(path)[:count]


def draw(seed, count):
    """Two sets with the same mean gradients at ``count`` iterates of the first, and a query.

    With u·w + v = 0 there, moments S and S + u uᵀ, b and b - v u have the same gradients S w - b.
    """
    rng = np.random.default_rng(seed)
    x, y, x_query = rng.normal(size=(N, D)), rng.normal(size=N), rng.normal(size=D)
    null = np.zeros(D + 1)
    if count <= D:
        steps = np.c_[iterates(x, y, max(count, 1)), np.ones(max(count, 1))][:count]
        free = np.linalg.svd(steps)[2][count:]
        null = rng.normal(size=len(free)) @ free
    u, v = null[:-1], null[-1]
    root = np.linalg.cholesky(x.T @ x / N + np.outer(u, u))
    basis = np.linalg.qr(rng.normal(size=(N, N)))[0][:, :D] * np.sqrt(N)
    other = basis @ root.T, basis @ np.linalg.solve(root, x.T @ y / N - v * u)
    return (x, y), other, x_query


def moved(seed, depth, less=0):
    first, second, x_query = draw(seed, min(depth, D + 1) - less)
    params = descent(np.full(depth, STEP))
    answers = [predict(params, *rows, x_query) for rows in (first, second)]
    return abs(answers[0] - answers[1]) / max(1, abs(answers[0]))


@pytest.mark.parametrize("depth", DEPTHS)
@seeds
def test_gradients_on_the_first_steps_are_enough(depth, seed):
    assert moved(seed, depth) < 1e-10


@pytest.mark.parametrize("depth", DEPTHS)
def test_control_one_step_less_is_not(depth):
    assert np.median([moved(seed, depth, less=1) for seed in range(10)]) > 1e-5
