"""E|mean_S g - ḡ|² = (1 - n/m) S²/n over all subsets S of size n (docs/theory, "Random subsets").

Sides: the closed form; the mean over every subset there is.
"""

import itertools

import numpy as np
import pytest

from draws import seeds
from lsa_lab.selection.gradient_matching import certify, random_expectation


def draw(seed, m):
    return np.random.default_rng(seed).normal(size=(m, 3)) ** 3 + 2.0


def enumerated(gradients, subsets):
    means = gradients[np.array(list(subsets))].mean(1)
    return ((means - gradients.mean(0)[None]) ** 2).sum(1).mean()


@pytest.mark.parametrize(("m", "size"), [(6, 1), (7, 3), (8, 7), (5, 5)])
@seeds
def test_the_closed_form_is_the_mean_over_all_subsets(m, size, seed):
    gradients = draw(seed, m)
    every = enumerated(gradients, itertools.combinations(range(m), size))
    scale = ((gradients - gradients.mean(0)[None]) ** 2).sum(1).mean()
    np.testing.assert_allclose(
        random_expectation(gradients, size) / scale, every / scale, atol=1e-10
    )
    certificate = certify(gradients, np.arange(size))
    np.testing.assert_allclose(certificate.random**2 / scale, every / scale, atol=1e-10)


@pytest.mark.parametrize("size", [2, 3])
def test_control_draws_with_replacement_have_another_expectation(size):
    gradients = draw(0, 6)
    every = enumerated(gradients, itertools.product(range(6), repeat=size))
    assert every > 1.2 * random_expectation(gradients, size)
