"""Choices by greed and by swaps: units, ties, copies, precision and vmap."""

import jax
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.selection.gradient_matching import gap, match, random_gap
from lsa_lab.selection.whitening import whiten_gradients


def draw(m=40, p=6, seed=0):
    return np.random.default_rng(seed).normal(size=(m, p))


@pytest.mark.parametrize("reverse", [False, True])
def test_each_addition_is_the_best_single_one(reverse):
    gradients, differs = draw(12, 4) ** 3, False
    centred, best = gradients - gradients.mean(0), max if reverse else min
    selection = match(gradients, 6, max_swaps=0, reverse=reverse)
    chosen = selection.indices.tolist()

    def compute_gap(subset):
        return np.linalg.norm(centred[subset].mean(0))

    for t in range(6):
        left = [i for i in range(12) if i not in chosen[:t]]
        assert chosen[t] == best(left, key=lambda i: compute_gap([*chosen[:t], i]))
        differs |= chosen[t] != best(left, key=lambda i: compute_gap([i]))
    assert differs  # Control: the best alone is not the best to add
    gaps = [compute_gap(chosen[:t]) for t in range(1, 7)]
    np.testing.assert_allclose(selection.history, gaps, rtol=1e-10, atol=1e-12)


def test_the_units_and_the_origin_of_gradients_do_not_matter():
    gradients = draw()
    first = match(gradients, 8)
    for factor, shift in ((1e-25, 0.0), (1e25, 0.0), (1.0, 7.0)):
        other = match(factor * gradients + shift, 8)
        np.testing.assert_array_equal(other.indices, first.indices)
        np.testing.assert_allclose(other.objective, factor * first.objective, rtol=1e-9)


def test_equal_gradients_and_copies_are_chosen_once_each():
    for how in ({}, {"reverse": True}, {"whiten": True}):
        np.testing.assert_array_equal(match(np.ones((7, 3)), 4, **how).indices, [0, 1, 2, 3])
    for shift in (0.0, 1e6):
        np.testing.assert_allclose(whiten_gradients(np.full((7, 3), 0.1) + shift, 4), 0, atol=1e-9)
    copies = np.concatenate([draw(3, 2)] * 3)
    for whiten in (False, True):
        for size in (1, 2, 9):
            assert len(np.unique(match(copies, size, whiten=whiten).indices)) == size
    assert match(copies, 9).objective < 1e-12
    assert random_gap(copies, 9) == random_gap(np.ones((1, 3)), 1) == 0


def test_the_swap_budget_is_kept_and_mismatching_never_swaps():
    gradients = draw(seed=1) ** 3
    long, short = match(gradients, 8), match(gradients, 8, max_swaps=1)
    assert len(long.history) > len(short.history) == 9
    np.testing.assert_allclose(long.history[:9], short.history, rtol=1e-12)
    away = match(gradients, 8, reverse=True)
    assert len(away.history) == 8
    assert away.objective > 2 * random_gap(gradients, 8)


@pytest.mark.parametrize("whiten", [False, True])
def test_many_pools_in_single_precision_are_matched_as_each_in_double(whiten):
    pools = np.stack([draw(seed=seed) + 30 for seed in range(3)]).astype(np.float32)
    run = jit_numpy(jax.vmap(lambda pool: match(pool, 8, max_swaps=30, whiten=whiten)))
    many = run(pools)
    assert many.history.shape == (3, 38)
    assert many.objective.dtype == np.float32
    for pool, indices, history in zip(pools.astype(float), many.indices, many.history, strict=True):
        one = match(pool, 8, max_swaps=30, whiten=whiten)
        np.testing.assert_array_equal(indices, one.indices)
        np.testing.assert_allclose(history[: len(one.history)], one.history, atol=1e-5)
        np.testing.assert_array_equal(history[len(one.history) :], history[-1])


def test_whitened_matching_is_matching_of_whitened_rows():
    gradients = draw(40, 50)
    chosen, rows = match(gradients, 8, whiten=True), whiten_gradients(gradients, 8)
    np.testing.assert_array_equal(chosen.indices, match(rows, 8).indices)
    np.testing.assert_allclose(chosen.objective, gap(rows, chosen.indices), rtol=1e-9)
