"""The gap of a subset is √(1ᵀ K 1)/n, K its centred Gram matrix; swaps only narrow it; and

    best subset ≤ greedy with swaps ≤ greedy,   mismatched ≤ worst subset.

The whitened objective is the largest deviation of any statistic that gradients see. docs/theory,
"The gap through the Gram matrix", "Greedy and swaps", "Random subsets", "The largest deviation".
"""

import itertools

import jax
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.selection import prefix
from lsa_lab.selection.gradient_matching import gap, match, random_gap
from lsa_lab.selection.whitening import whiten_gradients
from lsa_lab.tasks.pools import Pool

SHAPES = [(12, 4, 4), (9, 30, 3)]  # m, p, size


def gaps(gradients, subsets):  # [..., size] -> [...], by averages of the gradients themselves
    return np.linalg.norm(gradients[subsets].mean(-2) - gradients.mean(0), axis=-1)


def every_subset(m, size):
    return np.array(list(itertools.combinations(range(m), size)))


def gram_gap(gradients, indices):  # √(1ᵀ K 1)/n, K the Gram matrix of the given rows
    gram = gradients @ gradients.T
    return np.sqrt(gram[np.ix_(indices, indices)].sum()) / len(indices)


def best_swap(gradients, indices):
    outside = np.setdiff1d(np.arange(len(gradients)), indices)
    swapped = [np.r_[np.delete(indices, i), j] for i in range(len(indices)) for j in outside]
    return gaps(gradients, np.array(swapped)).min()


def draw(seed, shape):
    (m, p, _), rng = shape, np.random.default_rng(seed)
    return rng.normal(size=(m, p)) ** 3 + rng.normal(size=p)


def choose(gradients, size, **choices):
    return jax.device_get(match(gradients, size, **choices))


@pytest.mark.parametrize("shape", SHAPES)
@seeds
def test_gaps_are_sums_over_the_gram_matrix_in_order_and_end_where_no_swap_helps(shape, seed):
    (m, _, size), gradients = shape, draw(seed, shape)
    swapped = choose(gradients, size)
    indices, objective, history = swapped.indices, swapped.objective, swapped.history
    stated, centred = gaps(gradients, indices), gradients - gradients.mean(0)
    np.testing.assert_allclose(gram_gap(centred, indices), stated, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(objective, stated, rtol=1e-10, atol=1e-12)
    assert (np.diff(history[size - 1 :]) < 0).all()
    assert best_swap(gradients, indices) >= objective * (1 - 1e-6) - 1e-12
    greedy = choose(gradients, size, max_swaps=0).objective
    away = choose(gradients, size, reverse=True).objective
    every = gaps(gradients, every_subset(m, size))
    chain = [every.min() - objective, objective - greedy, away - every.max()]
    assert max(chain) < 1e-12 * every.max()
    singles = gaps(gradients, np.arange(m)[:, None])
    for reverse, best in ((False, singles.min()), (True, singles.max())):
        chosen = choose(gradients, 1, reverse=reverse).objective
        np.testing.assert_allclose(chosen, best, rtol=1e-10)


def test_control_uncentred_rows_greedy_alone_and_other_gradients_break_it():
    left, excess, errors = [], [], []
    for seed in range(10):
        gradients, other = (draw(seed + more, SHAPES[0]) for more in (0, 100))
        swapped, greedy = (choose(gradients, 4, max_swaps=k) for k in (1000, 0))
        stated = gaps(gradients, swapped.indices)
        errors.append(abs(gram_gap(gradients, swapped.indices) - stated))
        left.append(best_swap(gradients, greedy.indices) < 0.95 * greedy.objective)
        excess.append(np.subtract(*(gaps(other, s.indices) for s in (swapped, greedy))))
    assert errors[0] > 0.1
    assert sum(left) >= 3  # swaps that help
    assert max(excess) > 0.05  # by the mean of other gradients the order fails


def test_of_most_of_a_small_pool_a_random_subset_may_be_nearer_or_farther():
    pools = np.random.default_rng(0).standard_cauchy((200, 6, 1))
    middle = [np.sqrt((gaps(pool, every_subset(6, 4)) ** 2).mean()) for pool in pools]
    near, far = (
        jit_numpy(jax.vmap(lambda rows, c=choices: match(rows, 4, **c).objective))(pools)
        for choices in (dict(max_swaps=0), dict(reverse=True))
    )
    assert min((middle < near).sum(), (middle > far).sum()) > 10


@pytest.mark.parametrize("size", [1, 3, 6])
@seeds
def test_random_subsets_have_the_stated_mean_square(size, seed):
    """E|mean_S g - ḡ|² = (1 - n/m) S²/n over all subsets S of size n."""
    gradients = np.random.default_rng(seed).normal(size=(6, 3)) ** 3 + 2.0
    stated, scale = random_gap(gradients, size) ** 2, ((gradients - gradients.mean(0)) ** 2).mean()
    squares = (gaps(gradients, every_subset(6, size)) ** 2).mean()
    np.testing.assert_allclose(stated / scale, squares / scale, atol=1e-10)
    if size == 3:  # Control: draws with replacement
        drawn = np.array(list(itertools.product(range(6), repeat=size)))
        assert (gaps(gradients, drawn) ** 2).mean() > 1.2 * stated


linear_gradients, gap_of = jit_numpy(prefix.linear_gradients), jit_numpy(gap)
white = jit_numpy(whiten_gradients, static_argnums=1)
chosen = jit_numpy(lambda rows, whiten: match(rows, 12, whiten=whiten).indices, static_argnums=1)
D, M = 3, 40


def draw_pool(seed, size, points=D + 1):
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
    pool, checkpoints, indices, _ = draw_pool(seed, 12, points)
    stated = objective_and_largest_deviation(pool, checkpoints, indices)
    np.testing.assert_allclose(*stated, rtol=1e-6)
    if seed == 0 and points == D + 1:  # Control: d checkpoints
        few, largest = objective_and_largest_deviation(pool, checkpoints[:D], indices)
        assert few < 0.99 * largest


@seeds
def test_what_is_chosen_does_not_depend_on_the_checkpoints(seed):
    pool, checkpoints, _, rng = draw_pool(seed, 12)
    later = checkpoints + 0.1 * rng.normal(size=checkpoints.shape)
    first, other = (linear_gradients(points, pool) for points in (checkpoints, later))
    np.testing.assert_array_equal(chosen(first, True), chosen(other, True))
    if seed == 0:  # Control: plain matching
        assert set(chosen(first, False)) != set(chosen(other, False))


@pytest.mark.parametrize("size", [4, 12])  # with a ridge and without
@seeds
def test_the_gradient_deviates_little_wherever_checkpoints_combine_to(size, seed):
    pool, checkpoints, indices, rng = draw_pool(seed, size)
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
