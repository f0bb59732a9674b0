"""best subset ≤ greedy with swaps ≤ greedy, and mismatched ≤ worst subset.

docs/theory, "Greedy and swaps". Sides: match; every subset of a small pool, averaged by NumPy. A
random subset lies between greedy and the mismatched one mostly, not always: that is no link of the
chain.
"""

import itertools

import numpy as np

from draws import seeds
from lsa_lab.selection.gradient_matching import match

M, P, SIZE = 9, 6, 3
SUBSETS = np.array(list(itertools.combinations(range(M), SIZE)))


def draw(seed):
    return np.random.default_rng(seed).normal(size=(M, P))


def all_gaps(gradients, subsets=SUBSETS):
    return np.linalg.norm(gradients[subsets].mean(1) - gradients.mean(0)[None], axis=1)


def chain(seed):
    """Gaps: best subset, with swaps, greedy, root mean square of all, mismatched, worst subset."""
    gradients = draw(seed)
    gaps = all_gaps(gradients)
    swapped, greedy = match(gradients, SIZE), match(gradients, SIZE, max_swaps=0)
    away = match(gradients, SIZE, reverse=True)
    middle = [swapped.objective, greedy.objective, np.sqrt((gaps**2).mean()), away.objective]
    return np.array([gaps.min(), *map(float, middle), gaps.max()])


def out_of_order(gaps):
    return np.maximum(gaps[:-1] - gaps[1:], 0) / gaps[-1]


@seeds
def test_gaps_are_in_order(seed):
    excess = out_of_order(chain(seed))
    assert excess[[0, 1, 4]].max() < 1e-12


def test_of_most_of_a_small_pool_a_random_subset_may_be_nearer_or_farther():
    pools = [np.random.default_rng(seed).standard_cauchy((6, 1)) for seed in range(200)]
    subsets, nearer, farther = np.array(list(itertools.combinations(range(6), 4))), 0, 0
    for gradients in pools:
        middle = np.sqrt((all_gaps(gradients, subsets) ** 2).mean())
        nearer += middle < float(match(gradients, 4, max_swaps=0).objective)
        farther += middle > float(match(gradients, 4, reverse=True).objective)
    assert min(nearer, farther) > 10


def test_control_the_order_fails_when_the_pool_changes():
    """Judged by the mean of other gradients nothing holds the same subsets in order."""
    excess = []
    for seed in range(10):
        gradients, other = draw(seed), draw(seed + 100)
        subsets = [np.asarray(match(gradients, SIZE, max_swaps=k).indices) for k in (1000, 0)]
        gaps = all_gaps(other, np.stack(subsets))
        excess.append(gaps[0] - gaps[1])
    assert max(excess) > 0.05


@seeds
def test_one_demonstration_is_chosen_exactly(seed):
    gradients = draw(seed)
    every = np.arange(M)[:, None]
    for reverse, best in ((False, np.min), (True, np.max)):
        chosen = match(gradients, 1, reverse=reverse)
        np.testing.assert_allclose(chosen.objective, best(all_gaps(gradients, every)), rtol=1e-10)
