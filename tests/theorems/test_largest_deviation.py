"""The whitened objective is the largest deviation of any statistic that the gradients see.

docs/theory, "The largest deviation". Sides: ``whiten_gradients``; the statistic that
deviates most, by least squares in hand-made products, and gradients away from the checkpoints.
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
D, M = 3, 40  # nine statistics of second order: six products of covariates, three with the label


def draw(seed, size, points):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(M, D)) @ rng.normal(size=(D, D)) + rng.normal(size=D)
    y = x @ rng.normal(size=D) + rng.normal(size=M)
    return Pool(x, y), rng.normal(size=(points, D)), rng.permutation(M)[:size], rng


@jit_numpy
def objective(checkpoints, pool, indices):
    rows = whiten_gradients(prefix.linear_gradients(checkpoints, pool), len(indices))
    return gap(rows, indices)


def largest(rows, indices):
    """max over u of |mean_S u·row - mean u·row| / std(u·row)."""
    rows = rows - rows.mean(0)
    delta = rows[indices].mean(0)
    best = np.linalg.lstsq(rows.T @ rows / len(rows), delta)[0]
    return abs(best @ delta) / np.std(rows @ best)


def quadratic(pool):
    products = [pool.x[:, i] * pool.x[:, j] for i in range(D) for j in range(i + 1)]
    return np.stack([*products, *(pool.y * pool.x.T)], axis=1)


@pytest.mark.parametrize("points", [D + 1, D + 3])
@seeds
def test_with_d_plus_one_checkpoints_all_statistics_of_second_order_count(points, seed):
    pool, checkpoints, indices, _ = draw(seed, 12, points)
    omega = objective(checkpoints, pool, indices)
    np.testing.assert_allclose(omega, largest(quadratic(pool), indices), rtol=1e-6)


@seeds
def test_what_is_chosen_does_not_depend_on_the_checkpoints(seed):
    pool, checkpoints, _, rng = draw(seed, 12, D + 1)
    later = checkpoints + 0.1 * rng.normal(size=checkpoints.shape)
    first, other = (chosen(linear_gradients(w, pool), True) for w in (checkpoints, later))
    np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("size", [4, 12])  # with a ridge and without
@seeds
def test_the_gradient_deviates_little_wherever_checkpoints_combine_to(size, seed):
    pool, checkpoints, indices, rng = draw(seed, size, D + 1)
    gradients = linear_gradients(checkpoints, pool)
    rows = white(gradients, size)
    values, kept = (np.linalg.svd(r - r.mean(0), compute_uv=False)[0] for r in (gradients, rows))
    ridge = values**2 * (1 / kept**2 - 1 / M)  # of C: kept² = M s² / (s² + M ridge)
    shares = rng.normal(size=D + 1)
    shares /= shares.sum()
    combined = linear_gradients(shares[None] @ checkpoints, pool)
    deviation = np.linalg.norm(combined[indices].mean(0) - combined.mean(0))
    spread = np.linalg.norm(np.cov(combined.T, bias=True), 2) + max(ridge, 0) * shares @ shares
    omega = gap_of(rows, indices)
    assert deviation <= omega * np.sqrt(spread) * (1 + 1e-8)
    plain = np.linalg.norm(gradients[indices].mean(0) - gradients.mean(0))
    assert deviation <= plain * np.linalg.norm(shares) * (1 + 1e-8)


def test_control_d_checkpoints_miss_statistics_and_plain_matching_minds_them():
    pool, checkpoints, indices, rng = draw(0, 12, D + 1)
    few = objective(checkpoints[:D], pool, indices)
    assert few < 0.99 * largest(quadratic(pool), indices)
    later = checkpoints + 0.1 * rng.normal(size=checkpoints.shape)
    first, other = (chosen(linear_gradients(w, pool), False) for w in (checkpoints, later))
    assert set(first) != set(other)
