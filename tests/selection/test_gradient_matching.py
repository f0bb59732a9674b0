"""What match is promised beyond its theorems: ties, copies, refusals, precision, blocks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.selection.gradient_matching import (
    certify,
    match,
    match_blocks,
    random_expectation,
    walks,
    whitened,
    whitening,
)


def draw(m=40, p=6, seed=0):
    return np.random.default_rng(seed).normal(size=(m, p))


def direct_gap(gradients, indices):
    return np.linalg.norm(gradients[np.asarray(indices)].mean(0) - gradients.mean(0))


def test_the_history_is_the_gap_of_every_beginning():
    gradients = draw(12, 4) ** 3
    greedy = match(gradients, 6, max_swaps=0)
    beginnings = [direct_gap(gradients, greedy.indices[:t]) for t in range(1, 7)]
    np.testing.assert_allclose(greedy.history, beginnings, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
def test_each_addition_is_the_best_single_one(reverse):
    gradients, mismatched = draw(12, 4) ** 3, False
    best = max if reverse else min
    greedy = match(gradients, 6, max_swaps=0, reverse=reverse).indices.tolist()
    for t in range(6):
        left = [i for i in range(12) if i not in greedy[:t]]
        assert greedy[t] == best(left, key=lambda i: direct_gap(gradients, [*greedy[:t], i]))
        alone = best(left, key=lambda i: direct_gap(gradients, [i]))
        mismatched |= alone != greedy[t]
    assert mismatched  # Control: the best alone is not the best to add


def test_the_units_and_the_origin_of_gradients_do_not_matter():
    gradients = draw()
    first = match(gradients, 8)
    for factor, shift in ((1e-25, 0.0), (1e25, 0.0), (1.0, 7.0)):
        other = match(factor * gradients + shift, 8)
        np.testing.assert_array_equal(other.indices, first.indices)
        np.testing.assert_allclose(other.objective, factor * first.objective, rtol=1e-9)


def test_ties_go_to_the_lowest_index():
    np.testing.assert_array_equal(match(np.ones((7, 3)), 4).indices, [0, 1, 2, 3])
    np.testing.assert_array_equal(match(np.ones((7, 3)), 4, reverse=True).indices, [0, 1, 2, 3])
    # Copies of one another, to the last bit or beside it, in whatever row a product sums them.
    for dtype in (np.float32, np.float64):
        gradients = np.tile(draw(13, 37).astype(dtype), (4, 1))
        assert max(match(gradients, 6).indices) < 13


def test_copies_are_chosen_once_each_and_counted():
    gradients = np.concatenate([draw(3, 2), draw(3, 2), draw(20, 2, 1) * 100])
    chosen = match(gradients - gradients.mean(0)[None], 6)
    assert len(np.unique(chosen.indices)) == 6
    assert match(draw(), 8).certificate.repeats == 0
    assert certify(gradients, np.array([0, 3, 7, 1])).repeats == 1
    assert certify(np.ones((9, 2)), [0, 1, 2, 3]).repeats == 3


def test_a_whole_pool_matches_itself():
    chosen = match(draw(5, 3), 5)
    assert sorted(chosen.indices.tolist()) == list(range(5))
    assert chosen.objective < 1e-12
    assert chosen.certificate.one_swap_optimal
    assert chosen.certificate.random == 0
    assert match(np.ones((1, 3)), 1).certificate.random == 0


def test_the_swap_budget_is_kept_and_mismatching_swaps_never():
    gradients = draw(seed=1) ** 3
    long = match(gradients, 8)
    assert len(long.history) > 9
    short = match(gradients, 8, max_swaps=1)
    assert len(short.history) == 9
    assert not short.certificate.one_swap_optimal
    np.testing.assert_allclose(long.history[:9], short.history, rtol=1e-12)
    away = match(gradients, 8, reverse=True)
    assert len(away.history) == 8
    assert away.objective > 2 * away.certificate.random


def test_the_certificate_is_that_of_any_subset():
    gradients = draw()
    chosen = match(gradients, 8)
    for one, other in zip(
        jax.tree.leaves(certify(gradients, chosen.indices)),
        jax.tree.leaves(chosen.certificate),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    rival = certify(gradients, np.arange(8))
    np.testing.assert_allclose(rival.objective, direct_gap(gradients, np.arange(8)), rtol=1e-10)
    assert not rival.one_swap_optimal
    np.testing.assert_allclose(rival.random**2, random_expectation(gradients, 8), rtol=1e-12)


def test_many_pools_are_matched_under_vmap():
    pools = jnp.asarray(np.stack([draw(seed=seed) for seed in range(3)]))
    many = jax.jit(jax.vmap(lambda gradients: match(gradients, 8, max_swaps=30)))(pools)
    assert many.history.shape == (3, 38)
    for gradients, indices, history in zip(pools, many.indices, many.history, strict=True):
        one = match(gradients, 8, max_swaps=30)
        np.testing.assert_array_equal(indices, one.indices)
        np.testing.assert_allclose(history[: len(one.history)], one.history, rtol=1e-9)
        np.testing.assert_array_equal(history[len(one.history) :], history[-1])


def test_single_precision_chooses_as_double_precision_does():
    gradients = (draw() + 30).astype(np.float32)  # the mean lies far from zero
    chosen = match(gradients, 8)
    assert chosen.objective.dtype == np.float32
    np.testing.assert_array_equal(chosen.indices, match(gradients.astype(float), 8).indices)
    exact = direct_gap(gradients.astype(float), chosen.indices)
    np.testing.assert_allclose(chosen.objective, exact, atol=1e-5)


def test_whitened_matching_is_matching_of_whitened_rows():
    gradients = draw(30, 50)
    chosen = match(gradients, 8, whiten=True)
    rows = whitened(gradients, 8)
    np.testing.assert_array_equal(chosen.indices, match(rows, 8).indices)
    np.testing.assert_allclose(chosen.objective, direct_gap(rows, chosen.indices), rtol=1e-9)
    assert chosen.objective < 0.8 * chosen.certificate.random
    assert chosen.certificate.one_swap_optimal
    away = match(gradients, 8, reverse=True, whiten=True)
    assert away.objective > 1.2 * away.certificate.random


def test_whitened_matching_of_equal_gradients_copies_and_few():
    np.testing.assert_array_equal(match(np.ones((7, 3)), 4, whiten=True).indices, [0, 1, 2, 3])
    for shift in (0.0, 1e6):
        np.testing.assert_allclose(whitened(np.full((7, 3), 0.1) + shift, 4), 0, atol=1e-300)
    copies = np.concatenate([draw(3, 2)] * 3)
    chosen = match(copies, 6, whiten=True)
    assert len(np.unique(chosen.indices)) == 6
    assert chosen.certificate.repeats == 3
    for size in (1, 2, 5):
        assert len(np.unique(match(draw(5, 3), size, whiten=True).indices)) == size


def test_a_decomposition_that_fails_is_done_by_qr_iterations(swap):
    gradients, algorithms, asked = draw(30, 9), jax.lax.linalg.SvdAlgorithm, []
    expected = whitened(gradients, 8)
    decompose = jax.lax.linalg.svd

    def fail_by_default(rows, **how):
        asked.append(how["algorithm"])
        broken = jnp.nan if how["algorithm"] == algorithms.DEFAULT else 1.0
        return jax.tree.map(lambda part: broken * part, decompose(rows, **how))

    swap(jax.lax.linalg, "svd", fail_by_default)
    again = jax.jit(lambda rows: whitening._whitened.__wrapped__(rows, 8))(gradients)
    np.testing.assert_allclose(again @ again.T, expected @ expected.T, rtol=1e-12, atol=1e-12)
    assert asked == [algorithms.DEFAULT, algorithms.QR]


def test_whitened_matching_in_single_precision_and_under_vmap():
    pools = np.stack([draw(seed=seed) + 30 for seed in range(3)]).astype(np.float32)
    many = jax.jit(jax.vmap(lambda pool: match(pool, 8, max_swaps=30, whiten=True)))(pools)
    assert many.objective.dtype == np.float32
    for pool, indices in zip(pools, many.indices, strict=True):
        one = match(pool.astype(float), 8, max_swaps=30, whiten=True)
        np.testing.assert_array_equal(indices, one.indices)


@pytest.mark.parametrize(
    ("gradients", "size", "words"),
    [
        (np.where(np.arange(5) == 3, np.nan, 1.0)[:, None], 2, r"NaN.*first at \(3, 0\)"),
        (np.full((4, 2), np.inf), 2, "infinite"),
        (np.ones((4, 2), int), 2, "give floats"),
    ],
)
def test_impossible_pools_are_refused_with_what_came(gradients, size, words):
    with pytest.raises(ValueError, match=words):
        match(gradients, size)


def test_no_number_of_swaps_is_negative():
    with pytest.raises(ValueError, match="max_swaps = -1"):
        match(draw(), 2, max_swaps=-1)


def cubes(m=60, p=7, seed=0, dtype=np.float64):
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
    gradients = cubes(dtype=dtype)
    expected = match(gradients, 8, reverse=reverse)
    assert reverse or len(expected.history) > 8  # there are swaps
    parts = [gradients[:25], gradients[25:30], gradients[30:]]
    for blocks in (gradients, parts, lambda: iter(parts)):
        same(match_blocks(blocks, 8, reverse=reverse), expected, tolerance)


def test_what_is_at_hand_does_not_matter(monkeypatch):
    gradients = cubes()
    expected = match(gradients, 8)
    monkeypatch.setattr(walks, "_KEPT", 0)
    monkeypatch.setattr(walks, "_ENTRIES", 20)  # of 7 numbers a row: pieces of 2 rows
    same(match_blocks(gradients, 8, together=1), expected, 1e-10)
    few = match_blocks(gradients, 8, max_swaps=1)
    same(few, match(gradients, 8, max_swaps=1), 1e-10)


def test_fewer_walks_than_additions_and_swaps(tmp_path):
    gradients = cubes(m=200, p=3)
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
    copies = np.tile(cubes(5), (4, 1))
    same(match_blocks(copies, 12), match(copies, 12), 1e-10)
    same(match_blocks(copies, 20), match(copies, 20), 1e-10)


def test_what_cannot_be_walked_through_is_refused():
    gradients = cubes()
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
