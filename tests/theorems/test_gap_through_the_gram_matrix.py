"""The gap of a subset is √(1ᵀ K 1)/n, K its centred Gram matrix; swaps only narrow it; and

    best subset ≤ greedy with swaps ≤ greedy,   mismatched ≤ worst subset.

docs/theory, "The gap through the Gram matrix", "Greedy and swaps", "Random
subsets".
"""

import itertools

import jax
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.selection.gradient_matching import match, random_gap

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
    gap, centred = gaps(gradients, indices), gradients - gradients.mean(0)
    np.testing.assert_allclose(gram_gap(centred, indices), gap, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(objective, gap, rtol=1e-10, atol=1e-12)
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
    left, excess = [], []
    for seed in range(10):
        gradients, other = (draw(seed + more, SHAPES[0]) for more in (0, 100))
        swapped, greedy = (choose(gradients, 4, max_swaps=k) for k in (1000, 0))
        gap = gaps(gradients, swapped.indices)
        assert abs(gram_gap(gradients, swapped.indices) - gap) > 1e-3
        left.append(best_swap(gradients, greedy.indices) < 0.95 * greedy.objective)
        excess.append(np.subtract(*(gaps(other, s.indices) for s in (swapped, greedy))))
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
