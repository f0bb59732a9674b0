"""E|mean_S g - ḡ|² = (1 - n/m) S²/n over all subsets S of size n (docs/theory, "Random subsets").

Sides: the closed form; the mean over every subset there is.
"""

import itertools

import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.selection.gradient_matching import random_gap

M = 6
root_mean_square = jit_numpy(random_gap, static_argnums=1)


def draw(seed):
    return np.random.default_rng(seed).normal(size=(M, 3)) ** 3 + 2.0


def enumerated(gradients, subsets):
    means = gradients[np.array(list(subsets))].mean(1)
    return ((means - gradients.mean(0)[None]) ** 2).sum(1).mean()


@pytest.mark.parametrize("size", [1, 3, M])
@seeds
def test_the_closed_form_is_the_mean_over_all_subsets(size, seed):
    gradients = draw(seed)
    every = enumerated(gradients, itertools.combinations(range(M), size))
    scale = ((gradients - gradients.mean(0)[None]) ** 2).sum(1).mean()
    found = root_mean_square(gradients, size) ** 2
    np.testing.assert_allclose(found / scale, every / scale, atol=1e-10)


@pytest.mark.parametrize("size", [2, 3])
def test_control_draws_with_replacement_have_another_expectation(size):
    gradients = draw(0)
    every = enumerated(gradients, itertools.product(range(M), repeat=size))
    assert every > 1.2 * root_mean_square(gradients, size) ** 2
