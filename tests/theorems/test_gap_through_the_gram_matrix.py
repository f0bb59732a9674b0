"""The gap of a subset is √(1ᵀ K 1)/n, K its centred Gram matrix; swaps only narrow it; and

    best subset ≤ greedy with swaps ≤ greedy,   mismatched ≤ worst subset.

docs/theory, "The gap through the Gram matrix", "Greedy and swaps", "Random
subsets".
"""

import functools
import itertools

import jax
import numpy as np
import pytest

from draws import seeds
from lsa_lab.selection.gradient_matching import match, random_gap

SHAPES = [(12, 4, 4), (9, 30, 3), (9, 1, 3)]  # m, p, size
shapes = pytest.mark.parametrize("shape", SHAPES)


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


@functools.cache
def choose(seed, shape, **choices):
    (m, p, size), rng = shape, np.random.default_rng(seed)
    gradients = rng.normal(size=(m, p)) ** 3 + rng.normal(size=p)
    return gradients, jax.device_get(match(gradients, size, **choices))


@shapes
@seeds
def test_the_gap_is_a_sum_over_the_centred_gram_matrix_and_ends_where_no_swap_helps(shape, seed):
    gradients, selection = choose(seed, shape)
    gap, centred = gaps(gradients, selection.indices), gradients - gradients.mean(0)
    np.testing.assert_allclose(gram_gap(centred, selection.indices), gap, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(selection.objective, gap, rtol=1e-10, atol=1e-12)
    assert (np.diff(selection.history[shape[2] - 1 :]) < 0).all()
    after = best_swap(gradients, selection.indices)
    assert after >= selection.objective * (1 - 1e-6) - 1e-12


def test_control_the_gram_matrix_must_be_centred_and_greedy_alone_leaves_swaps_that_help():
    gradients, selection = choose(0, SHAPES[0])
    gap = gaps(gradients, selection.indices)
    assert abs(gram_gap(gradients, selection.indices) - gap) > 0.1
    left = []
    for seed in range(10):
        gradients, greedy = choose(seed, SHAPES[0], max_swaps=0)
        left.append(best_swap(gradients, greedy.indices) < 0.95 * greedy.objective)
    assert sum(left) >= 3


@shapes
@seeds
def test_gaps_are_in_order_and_one_demonstration_is_chosen_exactly(shape, seed):
    (m, _, size), (gradients, swapped) = shape, choose(seed, shape)
    greedy = choose(seed, shape, max_swaps=0)[1].objective
    away = choose(seed, shape, reverse=True)[1].objective
    every = gaps(gradients, every_subset(m, size))
    chain = [every.min() - swapped.objective, swapped.objective - greedy, away - every.max()]
    assert max(chain) < 1e-12 * every.max()
    singles = gaps(gradients, np.arange(m)[:, None])
    for reverse, best in ((False, singles.min()), (True, singles.max())):
        chosen = match(gradients, 1, reverse=reverse)
        np.testing.assert_allclose(chosen.objective, best, rtol=1e-10)


def test_of_most_of_a_small_pool_a_random_subset_may_be_nearer_or_farther():
    subsets, nearer, farther = every_subset(6, 4), 0, 0
    for seed in range(200):
        gradients = np.random.default_rng(seed).standard_cauchy((6, 1))
        middle = np.sqrt((gaps(gradients, subsets) ** 2).mean())
        nearer += middle < float(match(gradients, 4, max_swaps=0).objective)
        farther += middle > float(match(gradients, 4, reverse=True).objective)
    assert min(nearer, farther) > 10


def test_control_judged_by_the_mean_of_other_gradients_the_order_fails():
    excess = []
    for seed in range(10):
        other = choose(seed + 100, SHAPES[1])[0]
        subsets = [choose(seed, SHAPES[1], max_swaps=k)[1].indices for k in (1000, 0)]
        excess.append(-np.diff(gaps(other, np.stack(subsets)))[0])
    assert max(excess) > 0.05


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
