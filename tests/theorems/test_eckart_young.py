"""Eckart and Young: no matrix of rank r is nearer than the truncated one (1936; A2's tool).

Sides: ``truncate``; competitors of the same rank, each the best within a random row or column
space, in the Frobenius and the spectral norm. The error; the singular values that were dropped.
Where the values have rank 1, as in descent, the forward pass with them truncated; the one without.
"""

import jax
import numpy as np
import pytest

from draws import seed_and
from lsa_lab.analyses import clipping
from lsa_lab.models import constructions, linear_attention

SHAPES = [(4, 9), (9, 4)]
shapes = pytest.mark.parametrize("shape", SHAPES)
seeds = seed_and(share=(0, 0.999))
truncate = jax.jit(clipping.truncate)


def draw(seed, shape):
    """A matrix with a spectrum between flat and steep, and the generator for its competitors."""
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.normal(size=(side, min(shape))))[0] for side in shape)
    values = rng.uniform(0.3, 1) ** np.arange(min(shape)) * rng.uniform(0.1, 10)
    return (left * values) @ right.T, rng


def competitors(matrix, rank, rng):
    """B Bᵀ W and W B Bᵀ for random B with r columns, and a step from the truncated matrix."""
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    for _ in range(5):
        rows, columns = (np.linalg.qr(rng.normal(size=(side, rank)))[0] for side in matrix.shape)
        yield rows @ rows.T @ matrix
        yield matrix @ columns @ columns.T
        left, right = u[:, :rank] * s[:rank], v[:rank]
        step = 10.0 ** rng.uniform(-4, 0)
        turned = right + step * rng.normal(size=right.shape)
        yield (left + step * rng.normal(size=left.shape)) @ turned


def advantage(matrix, candidate, rank, rng):
    """The least |W - competitor| - |W - candidate|, relative to |W|, over both norms."""
    return min(
        (np.linalg.norm(matrix - other, norm) - np.linalg.norm(matrix - candidate, norm))
        / np.linalg.norm(matrix, norm)
        for other in competitors(matrix, rank, rng)
        for norm in ("fro", 2)
    )


@shapes
@seeds
def test_no_matrix_of_the_same_rank_is_nearer(shape, seed, share):
    matrix, rng = draw(seed, shape)
    rank = clipping.kept_rank(min(shape), share)
    cut = np.asarray(truncate(matrix, share))
    assert np.linalg.matrix_rank(cut) == rank
    assert advantage(matrix, cut, rank, rng) > -1e-10


@shapes
@seeds
def test_the_error_is_the_size_of_what_was_dropped(shape, seed, share):
    matrix, _ = draw(seed, shape)
    values = np.linalg.svd(matrix, compute_uv=False)
    dropped = values[clipping.kept_rank(min(shape), share) :]
    left = matrix - np.asarray(truncate(matrix, share))
    errors = [np.linalg.norm(left, norm) for norm in ("fro", 2)]
    expected = np.sqrt((dropped**2).sum()), max(dropped, default=0.0)
    np.testing.assert_allclose(errors, expected, rtol=0, atol=1e-10 * values[0])


forward = jax.jit(linear_attention.forward)


def descent_with(name, seed, share):
    """How far the stream of descent departs when one weight of every layer is truncated."""
    rng = np.random.default_rng(seed)
    params = constructions.gradient_descent(rng.uniform(0.1, 1, size=3), 4)
    tokens = rng.normal(size=(9, 5))
    cut = jax.vmap(jax.vmap(lambda w: clipping.truncate(w, share)))(getattr(params, name))
    whole, edited = (forward(p, tokens).stream for p in (params, params.replace(**{name: cut})))
    return np.abs(np.asarray(edited - whole)).max() / np.abs(np.asarray(whole)).max()


@seeds
def test_the_values_of_descent_have_rank_one_and_no_rate_changes_it(seed, share):
    assert descent_with("w_pv", seed, share) < 1e-12


def test_control_its_scores_have_full_rank_and_a_rate_changes_it():
    assert descent_with("w_kq", 0, 0.5) > 1e-2


@shapes
def test_control_another_set_of_terms_is_beaten(shape):
    matrix, rng = draw(0, shape)
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    largest_cut = (u[:, 1:3] * s[1:3]) @ v[1:3]
    assert advantage(matrix, largest_cut, 2, rng) < -1e-2
