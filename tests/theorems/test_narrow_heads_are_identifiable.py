"""What a layer computes determines its heads if their keys and values are narrow.

Heads w_pv = A_h B_hᵀ, w_kq = C_h D_hᵀ of width k, with H k ≤ e independent columns of all A_h, as
many of all D_h, and [B_h, C_h] of rank 2k. docs/theory, "Narrow heads are identifiable".
"""

import numpy as np
import pytest

from draws import seeds


def tensor(w_pv, w_kq):  # [e, e, e, e], what a layer computes (test_heads_are_not_unique.py)
    tensor = np.einsum("hab,hgc->abgc", w_pv, w_kq)
    return (tensor + tensor.swapaxes(1, 2)) / 2


def tangents(matrix, rank):  # [e, e] -> [2 rank e, e, e]
    """Directions in which a matrix keeps its rank: U X + Y Vᵀ, more of them than needed."""
    (left, _, right), identity = np.linalg.svd(matrix), np.eye(len(matrix))
    rows = np.einsum("ak,nb->knab", left[:, :rank], identity)
    columns = np.einsum("na,kb->knab", identity, right[:rank])
    return np.concatenate([rows, columns]).reshape(-1, *matrix.shape)


def condition_number(w_pv, w_kq, width):
    """The most that all heads' tensors M_h together can move for a small movement of their sum.

    1/σ_min of the tangent spaces of all heads side by side, each in an orthonormal basis (the
    condition number of a join decomposition, Breiding and Vannieuwenhoven 1611.08117).
    """
    e, spaces = len(w_pv[0]), []
    free = 2 * width * (2 * e - width) - 1  # two matrices of this rank, without a scale
    for pv, kq in zip(w_pv, w_kq, strict=True):
        written = np.einsum("mab,gc->mabgc", tangents(pv, width), kq)
        moves = np.concatenate([written, np.einsum("ab,mgc->mabgc", pv, tangents(kq, width))])
        symmetric = (moves + moves.swapaxes(2, 3)) / 2
        left, values, _ = np.linalg.svd(symmetric.reshape(len(moves), -1).T, full_matrices=False)
        spaces.append(left[:, :free][:, values[:free] > 1e-9 * values[0]])
    return 1 / np.linalg.svd(np.concatenate(spaces, axis=1), compute_uv=False)[-1]


def narrow_heads(rng, e, num_heads, k):  # w_pv, w_kq [H, e, e]
    """Factors with singular values in [1, 2], so that nine digits are left."""

    def factors(count, columns):
        frames = np.linalg.qr(rng.normal(size=(count, e, e)))[0][:, :, :columns]
        return frames * (1 + rng.uniform(0, 1, (count, 1, columns)))

    outer = [np.moveaxis(f.reshape(e, num_heads, k), 1, 0) for f in factors(2, num_heads * k)]
    inner = factors(num_heads, 2 * k)
    return outer[0] @ inner[:, :, :k].mT, inner[:, :, k:] @ outer[1].mT


def wide_heads(seed, e, num_heads, k):
    factors = np.random.default_rng(seed).normal(size=(4, num_heads, e, k))
    return factors[0] @ factors[1].mT, factors[2] @ factors[3].mT


def recover(layer, rank, k, rng):  # [e, e, e, e] -> list of them
    """The heads' own tensors: layers on three moments S have common invariant subspaces."""
    S = rng.normal(size=(3, len(layer), len(layer)))
    first, second, third = np.einsum("abgc,sbg->sac", layer, S + S.mT)
    inverse = np.linalg.pinv(second, rcond=1e-9)
    values, vectors = np.linalg.eig(first @ inverse)
    vectors = vectors[:, np.argsort(-np.abs(values))[:rank]]
    dual = np.linalg.pinv(vectors)
    linked = np.abs(dual @ third @ inverse @ vectors)
    blocks = {tuple(np.flatnonzero(row)) for row in linked > 1e-6 * linked.max()}
    assert all(len(block) == k for block in blocks)
    projections = [vectors[:, block] @ dual[list(block)] for block in blocks]
    return [np.einsum("ad,dbgc->abgc", p, layer).real for p in projections]


@pytest.mark.parametrize(("e", "num_heads", "k"), [(3, 3, 1), (6, 3, 2)])
@seeds
def test_the_layer_tells_what_each_head_writes(e, num_heads, k, seed):
    rng = np.random.default_rng(seed)
    w_pv, w_kq = narrow_heads(rng, e, num_heads, k)
    heads = [tensor(w_pv[h : h + 1], w_kq[h : h + 1]) for h in range(num_heads)]
    again = recover(sum(heads), num_heads * k, k, rng)
    assert len(again) == num_heads
    assert max(min(np.abs(head - other).max() for other in again) for head in heads) < 1e-6
    assert condition_number(w_pv, w_kq, k) < 1e4


@pytest.mark.parametrize(("e", "num_heads", "k"), [(5, 4, 2), (3, 4, 1), (4, 4, 2)])
@seeds
def test_heads_in_general_position_cannot_move_and_control_wide_ones_can(e, num_heads, k, seed):
    """H k > e; nothing is free as long as 2 (e - k)² is H - 1 or more."""
    assert condition_number(*wide_heads(seed, e, num_heads, k), k) < 1e6
    assert condition_number(*wide_heads(seed, e, num_heads, e - 1), e - 1) > 1e10


def test_control_heads_that_read_and_write_one_slot_can():
    """Heads of descent: narrow, and the same layer with its heads mixed, which stay narrow."""
    rng = np.random.default_rng(0)
    w_pv, (c, d) = np.zeros((2, 4, 4)), rng.normal(size=(2, 2, 4, 1))
    w_pv[:, -1, -1] = 1
    turn = rng.normal(size=(2, 2))
    turned = np.einsum("hg,gek->hek", turn, c), np.einsum("gh,gek->hek", np.linalg.inv(turn), d)
    w_kq, other = (left @ right.mT for left, right in ((c, d), turned))
    np.testing.assert_allclose(tensor(w_pv, other), tensor(w_pv, w_kq), atol=1e-10)
    assert min(np.abs(w_kq[0] - each).max() for each in other) > 0.1
    assert condition_number(w_pv, w_kq, 1) > 1e10
