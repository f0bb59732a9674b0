"""A2's Case 1: solving W x = b spreads a disturbance of b by up to κ(W); a layer applies W.

Solving: the relative change of x over that of b is at most κ, attained, and s_1/s_r for the
solution of least norm once W is clipped to rank r. Applying: the worst case is κ as well, but for
directions of all kinds the mean square of what comes out is |W|_F²/e times that of what goes in,
of a disturbance as of a token, so that their ratio stays as it is, whatever κ, clipped or not.
Sides: the matrix as it stands, solved and applied; its singular values. docs/theory, "Solving and
applying an ill-conditioned matrix".
"""

import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.analyses.clipping import condition_number, truncate

E = 5
cut, condition = jit_numpy(truncate), jit_numpy(condition_number)
ranks = pytest.mark.parametrize("rank", [3, 5])


def draw(seed):
    """W, and a hundred pairs of vectors (columns)."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(E, E)), rng.normal(size=(E, 100)), rng.normal(size=(E, 100))


def clipped(matrix, rank):
    return cut(matrix, (E - rank) / E)


def spread(matrix, vectors, disturbances):  # the relative change after over that before
    size = np.linalg.norm
    after = size(matrix @ disturbances, axis=0) / size(matrix @ vectors, axis=0)
    return after * size(vectors, axis=0) / size(disturbances, axis=0)


@ranks
@seeds
def test_a_disturbance_of_a_linear_system_grows_by_at_most_the_condition_number(rank, seed):
    matrix, *_, disturbances = draw(seed)
    matrix = clipped(matrix, rank)
    left, values, _ = np.linalg.svd(matrix)
    limit, inverse = values[0] / values[rank - 1], np.linalg.pinv(matrix, rcond=1e-9)
    seen = left[:, :rank] @ left[:, :rank].T  # a right-hand side that the clipped system has
    sides, disturbances = matrix @ draw(seed)[1], seen @ disturbances
    assert (spread(inverse, sides, disturbances) <= limit * (1 + 1e-6)).all()
    worst = spread(inverse, left[:, :1], left[:, rank - 1 : rank])
    np.testing.assert_allclose(worst, limit, rtol=1e-6)
    if rank == E:
        np.testing.assert_allclose(limit, condition(matrix), rtol=1e-6)


def test_control_a_right_hand_side_outside_the_clipped_range_has_no_bound():
    inverse = np.linalg.pinv(np.diag([1.0, 0.9, 0.0, 0.0]))  # of diag(1, .9, .5, .1), r = 2
    side, disturbance = np.array([[1e-3, 0, 1, 0], [1e-4, 0, 0, 0]])[..., None]
    np.testing.assert_allclose(spread(inverse, side, disturbance), 1000, rtol=1e-5)


@ranks
@seeds
def test_a_layer_keeps_the_mean_ratio_of_disturbance_and_token(rank, seed):
    """Over e orthonormal directions, which have the second moment of all of them."""
    matrix, tokens, disturbances = draw(seed)
    matrix = clipped(matrix, rank)
    for vectors in (tokens, disturbances):
        basis = np.linalg.qr(vectors[:, :E])[0] * np.linalg.norm(vectors[:, 0])
        before, after = ((x**2).sum(0).mean() for x in (basis, matrix @ basis))
        gain = (np.linalg.svd(matrix, compute_uv=False) ** 2).mean()
        np.testing.assert_allclose(after / before, gain, rtol=1e-9)


@seeds
def test_the_worst_case_of_a_layer_is_a_token_that_it_hardly_reads(seed):
    matrix, tokens, disturbances = draw(seed)
    _, values, right = np.linalg.svd(matrix)
    limit = values[0] / values[-1]
    assert (spread(matrix, tokens, disturbances) <= limit * (1 + 1e-9)).all()
    np.testing.assert_allclose(spread(matrix, right[-1:].T, right[:1].T), limit, rtol=1e-6)


def test_control_a_clipped_layer_has_no_worst_case():
    """So clipping does not bound what a layer makes of a disturbance: it makes it unbounded."""
    matrix = clipped(draw(0)[0], 3)
    _, values, right = np.linalg.svd(matrix)
    assert spread(matrix, right[-1:].T, right[:1].T)[0] > 1e6 * values[0] / values[2]
