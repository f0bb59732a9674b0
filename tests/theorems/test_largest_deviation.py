"""The whitened objective is the largest deviation of any statistic that the gradients see.

docs/theory, "The largest deviation".
"""

import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.selection import prefix
from lsa_lab.selection.gradient_matching import gap, match
from lsa_lab.selection.whitening import whiten_gradients
from lsa_lab.tasks.pools import Pool

linear_gradients, gap_of = jit_numpy(prefix.linear_gradients), jit_numpy(gap)
white = jit_numpy(whiten_gradients, static_argnums=1)
chosen = jit_numpy(lambda rows, whiten: match(rows, 12, whiten=whiten).indices, static_argnums=1)
D, M = 3, 40


def draw(seed, size, points=D + 1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(M, D)) @ rng.normal(size=(D, D)) + rng.normal(size=D)
    y = x @ rng.normal(size=D) + rng.normal(size=M)
    return Pool(x, y), rng.normal(size=(points, D)), rng.permutation(M)[:size], rng


def objective_and_largest_deviation(pool, checkpoints, indices):
    """max over u of |mean_S u·row - mean u·row| / std(u·row), of all products of second order."""
    products = [pool.x[:, i] * pool.x[:, j] for i in range(D) for j in range(i + 1)]
    rows = np.stack([*products, *(pool.y * pool.x.T)], axis=1)
    rows = rows - rows.mean(0)
    delta = rows[indices].mean(0)
    best = np.linalg.lstsq(rows.T @ rows / M, delta)[0]
    omega = gap_of(white(linear_gradients(checkpoints, pool), len(indices)), indices)
    return omega, abs(best @ delta) / np.std(rows @ best)


@pytest.mark.parametrize("points", [D + 1, D + 3])
@seeds
def test_with_d_plus_one_checkpoints_all_statistics_of_second_order_count(points, seed):
    pool, checkpoints, indices, _ = draw(seed, 12, points)
    stated = objective_and_largest_deviation(pool, checkpoints, indices)
    np.testing.assert_allclose(*stated, rtol=1e-6)
    if seed == 0 and points == D + 1:  # Control: d checkpoints
        few, largest = objective_and_largest_deviation(pool, checkpoints[:D], indices)
        assert few < 0.99 * largest


@seeds
def test_what_is_chosen_does_not_depend_on_the_checkpoints(seed):
    pool, checkpoints, _, rng = draw(seed, 12)
    later = checkpoints + 0.1 * rng.normal(size=checkpoints.shape)
    first, other = (linear_gradients(points, pool) for points in (checkpoints, later))
    np.testing.assert_array_equal(chosen(first, True), chosen(other, True))
    if seed == 0:  # Control: plain matching
        assert set(chosen(first, False)) != set(chosen(other, False))


@pytest.mark.parametrize("size", [4, 12])  # with a ridge and without
@seeds
def test_the_gradient_deviates_little_wherever_checkpoints_combine_to(size, seed):
    pool, checkpoints, indices, rng = draw(seed, size)
    gradients = linear_gradients(checkpoints, pool)
    rows = white(gradients, size)
    values, kept = (np.linalg.svd(r - r.mean(0), compute_uv=False)[0] for r in (gradients, rows))
    ridge = values**2 * (1 / kept**2 - 1 / M)  # of C: kept² = M s² / (s² + M ridge)
    shares = rng.normal(size=D + 1)
    shares /= shares.sum()
    combined = linear_gradients(shares[None] @ checkpoints, pool)
    deviation, plain = gap_of(combined, indices), gap_of(gradients, indices)
    spread = np.linalg.norm(np.cov(combined.T, bias=True), 2) + max(ridge, 0) * shares @ shares
    assert deviation <= gap_of(rows, indices) * np.sqrt(spread) * (1 + 1e-8)
    assert deviation <= plain * np.linalg.norm(shares) * (1 + 1e-8)
