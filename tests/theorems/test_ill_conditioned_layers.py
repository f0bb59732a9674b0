"""Solving W x = b spreads a disturbance of b by up to κ(W); a layer, which applies W, keeps the
mean ratio of disturbance and token, clipped or not.

Clipped to rank r, the solution of least norm spreads it by s_1/s_r, if b lies in the range that is
left. Papers: A2, Case 1. docs/theory, "Solving and applying an ill-conditioned matrix".
"""

import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.analyses.clipping import condition_number, truncate

E = 5
cut, condition = jit_numpy(truncate), jit_numpy(condition_number)


def spread(matrix, vectors, disturbances):  # the relative change after over that before
    size = np.linalg.norm
    after = size(matrix @ disturbances, axis=0) / size(matrix @ vectors, axis=0)
    return after * size(vectors, axis=0) / size(disturbances, axis=0)


@pytest.mark.parametrize("rank", [3, E])
@seeds
def test_solving_spreads_by_the_condition_number_and_a_layer_keeps_the_mean_ratio(rank, seed):
    """The mean over e orthonormal directions, which have the second moment of all of them. A
    clipped layer has no worst case: clipping makes what it makes of a disturbance unbounded."""
    rng = np.random.default_rng(seed)
    matrix = cut(rng.normal(size=(E, E)), (E - rank) / E)
    vectors, disturbances = rng.normal(size=(2, E, 100))  # columns
    left, values, right = np.linalg.svd(matrix)
    limit, inverse = values[0] / values[rank - 1], np.linalg.pinv(matrix, rcond=1e-9)
    seen = left[:, :rank] @ left[:, :rank].T @ disturbances  # in the range of the clipped matrix
    assert (spread(inverse, matrix @ vectors, seen) <= limit * (1 + 1e-6)).all()
    worst = spread(inverse, left[:, :1], left[:, rank - 1 : rank])
    np.testing.assert_allclose(worst, limit, rtol=1e-6)
    for each in (vectors, disturbances):
        basis = np.linalg.qr(each[:, :E])[0] * np.linalg.norm(each[:, 0])
        before, after = ((x**2).sum(0).mean() for x in (basis, matrix @ basis))
        np.testing.assert_allclose(after / before, (values**2).mean(), rtol=1e-9)
    of_layer = spread(matrix, right[-1:].T, right[:1].T)  # a token that it hardly reads
    if rank == E:
        np.testing.assert_allclose([condition(matrix), of_layer[0]], limit, rtol=1e-6)
        assert (spread(matrix, vectors, disturbances) <= limit * (1 + 1e-9)).all()
    else:
        assert of_layer[0] > 1e6 * limit


def test_control_a_right_hand_side_outside_the_clipped_range_has_no_bound():
    inverse = np.linalg.pinv(np.diag([1.0, 0.9, 0.0, 0.0]))  # of diag(1, .9, .5, .1), r = 2
    side, disturbance = np.array([[1e-3, 0, 1, 0], [1e-4, 0, 0, 0]])[..., None]
    np.testing.assert_allclose(spread(inverse, side, disturbance), 1000, rtol=1e-5)
