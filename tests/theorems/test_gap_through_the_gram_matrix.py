"""The gap of a subset is √(1ᵀ K 1)/n, K its centred Gram matrix, and swaps only narrow it.

docs/theory, "The gap through the Gram matrix", "Greedy and swaps". Sides: match, which carries sums
of centred gradients and picks by their products; NumPy, which averages the gradients themselves and
tries every swap.
"""

import functools

import jax
import numpy as np
import pytest

from draws import seeds
from lsa_lab.selection.gradient_matching import match

SHAPES = [(12, 4, 4), (9, 30, 3)]  # m, p, size


def draw(seed, m, p):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, p)) ** 3 + rng.normal(size=p)


def direct_gap(gradients, indices):
    return np.linalg.norm(gradients[indices].mean(0) - gradients.mean(0))


def gram_gap(gradients, indices):
    """√(1ᵀ K 1)/n, K the Gram matrix of the given rows."""
    gram = gradients @ gradients.T
    return np.sqrt(gram[np.ix_(indices, indices)].sum()) / len(indices)


def best_swap(gradients, indices):
    outside = np.setdiff1d(np.arange(len(gradients)), indices)
    swapped = [np.r_[np.delete(indices, i), j] for i in range(len(indices)) for j in outside]
    return min(direct_gap(gradients, subset) for subset in swapped)


@functools.cache
def chosen(seed, shape, max_swaps=1000):
    m, p, size = shape
    gradients = draw(seed, m, p)
    return gradients, jax.device_get(match(gradients, size, max_swaps=max_swaps))


@pytest.mark.parametrize("shape", SHAPES)
@seeds
def test_the_gap_is_a_sum_over_the_centred_gram_matrix(shape, seed):
    gradients, selection = chosen(seed, shape)
    centred = gradients - gradients.mean(0)[None]
    direct = direct_gap(gradients, selection.indices)
    np.testing.assert_allclose(gram_gap(centred, selection.indices), direct, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(selection.objective, direct, rtol=1e-10, atol=1e-12)


def test_control_the_gram_matrix_must_be_centred():
    gradients, selection = chosen(0, SHAPES[0])
    direct = direct_gap(gradients, selection.indices)
    assert abs(gram_gap(gradients, selection.indices) - direct) > 0.1


@pytest.mark.parametrize("shape", SHAPES)
@seeds
def test_swaps_never_widen_the_gap_and_end_where_none_helps(shape, seed):
    gradients, selection = chosen(seed, shape)
    assert (np.diff(selection.history[shape[2] - 1 :]) < 0).all()
    after = best_swap(gradients, selection.indices)
    assert after >= selection.objective * (1 - 1e-6) - 1e-12


def test_control_greedy_alone_leaves_swaps_that_help():
    left = []
    for seed in range(10):
        gradients, greedy = chosen(seed, SHAPES[0], 0)
        after = best_swap(gradients, greedy.indices)
        left.append(after < 0.95 * greedy.objective)
    assert sum(left) >= 3
