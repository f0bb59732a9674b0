"""Truncating what is truncated is truncating once (A2's loop over rates edits in place).

Sides: one rate after the other; the last rate alone. A2's randomised decomposition lacks this, and
rates that act on the rank that is left compound.
"""

import functools

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest

from lsa_lab.analyses import clipping

SHAPES = [(4, 9), (16, 16)]
shapes = pytest.mark.parametrize("shape", SHAPES)
truncate = jax.jit(clipping.truncate)


def draw(seed, shape):
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.normal(size=(side, min(shape))))[0] for side in shape)
    return (left * np.linspace(3, 1, min(shape))) @ right.T, rng


def departure(cut, matrix, rates):
    """|one after the other - the last alone| relative to what the last keeps."""
    nested = functools.reduce(cut, rates, matrix)
    direct = cut(matrix, rates[-1])
    return np.abs(np.asarray(nested) - np.asarray(direct)).max() / np.abs(np.asarray(direct)).max()


@shapes
@hypothesis.given(
    seed=st.integers(0, 2**32 - 1), rates=st.lists(st.floats(0, 0.999), min_size=2, max_size=6)
)
def test_nested_truncation_is_direct_truncation(shape, seed, rates):
    matrix, _ = draw(seed, shape)
    assert departure(truncate, matrix, sorted(rates)) < 1e-10


@shapes
def test_control_a_randomised_decomposition_compounds_its_errors(shape):
    matrix, rng = draw(0, shape)

    def sketched(matrix, rate):
        """The best approximation within W Ω, Ω random with r columns."""
        rank = clipping.kept_rank(min(matrix.shape), rate)
        basis = np.linalg.qr(matrix @ rng.normal(size=(matrix.shape[1], rank)))[0]
        return basis @ basis.T @ matrix

    assert departure(sketched, matrix, (0.3, 0.6)) > 1e-2


@shapes
def test_control_rates_of_the_rank_that_is_left_compound(shape):
    matrix, _ = draw(0, shape)

    def remaining(matrix, rate):
        full, left = min(matrix.shape), np.linalg.matrix_rank(matrix)
        return truncate(matrix, 1 - clipping.kept_rank(int(left), rate) / full)

    assert departure(remaining, matrix, (0.3, 0.5)) > 1e-2
