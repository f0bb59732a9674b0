"""Gradients in blocks, in a file or made anew for every walk: the choice that ``match`` makes."""

import numpy as np
import pytest

from lsa_lab.selection.gradient_matching import match, match_blocks, walks


def draw(m=60, p=7, seed=0, dtype=np.float64):
    gradients = np.random.default_rng(seed).normal(size=(m, p)) ** 3 + 5
    return gradients.astype(dtype)


def same(found, expected, tolerance):
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.history, expected.history, rtol=tolerance, atol=tolerance)
    for name in ("objective", "best_swap", "random", "repeats"):
        own, other = (getattr(each.certificate, name) for each in (found, expected))
        np.testing.assert_allclose(own, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("dtype", "tolerance", "reverse"), [(np.float64, 1e-10, False), (np.float32, 1e-5, True)]
)
def test_the_choice_is_that_of_match(dtype, tolerance, reverse):
    gradients = draw(dtype=dtype)
    expected = match(gradients, 8, reverse=reverse)
    assert reverse or len(expected.history) > 8  # there are swaps
    parts = [gradients[:25], gradients[25:30], gradients[30:]]
    for blocks in (gradients, parts, lambda: iter(parts)):
        same(match_blocks(blocks, 8, reverse=reverse), expected, tolerance)


def test_what_is_at_hand_does_not_matter(monkeypatch):
    gradients = draw()
    expected = match(gradients, 8)
    monkeypatch.setattr(walks, "_KEPT", 0)
    monkeypatch.setattr(walks, "_ENTRIES", 20)  # of 7 numbers a row: pieces of 2 rows
    same(match_blocks(gradients, 8, together=1), expected, 1e-10)
    few = match_blocks(gradients, 8, max_swaps=1)
    same(few, match(gradients, 8, max_swaps=1), 1e-10)


def test_fewer_walks_than_additions_and_swaps(tmp_path):
    gradients = draw(m=200, p=3)
    np.save(tmp_path / "gradients.npy", gradients)
    file = np.load(tmp_path / "gradients.npy", mmap_mode="r")
    walks = []

    def walk():
        walks.append(1)
        yield file

    chosen = match_blocks(walk, 20, together=64)
    same(chosen, match(gradients, 20), 1e-10)
    assert len(walks) < len(chosen.history)


def test_copies_and_the_whole_pool():
    copies = np.tile(draw(5), (4, 1))
    same(match_blocks(copies, 12), match(copies, 12), 1e-10)
    same(match_blocks(copies, 20), match(copies, 20), 1e-10)


def test_what_cannot_be_walked_through_is_refused():
    gradients = draw()
    with pytest.raises(TypeError, match="an iterator, which can be walked through once"):
        match_blocks(iter([gradients]), 3)
    with pytest.raises(ValueError, match="no blocks"):
        match_blocks([], 3)
    with pytest.raises(ValueError, match="size = 61 of 60 candidates"):
        match_blocks(gradients, 61)
    with pytest.raises(AssertionError, match="same width"):
        match_blocks([gradients, gradients[:, :2]], 3)
    with pytest.raises(ValueError, match="give floats"):
        match_blocks(np.ones((4, 2), int), 3)
    gradients[3, 2] = np.nan
    with pytest.raises(ValueError, match="gradients"):
        match_blocks(gradients, 3)
