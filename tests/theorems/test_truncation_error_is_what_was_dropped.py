"""|W - W_r|_F = √(s_{r+1}² + ... ) and |W - W_r|_2 = s_{r+1} (Eckart and Young).

Sides: the error of ``truncate``; the spectrum from which the matrix was built.
"""

import jax
import numpy as np
import pytest

from draws import seeded
from lsa_lab.analyses import clipping

SHAPES = [(4, 9), (9, 4)]
shapes = pytest.mark.parametrize("shape", SHAPES)
cases = seeded(decay=(0.2, 1), share=(0, 0.999))
truncate = jax.jit(clipping.truncate)


def build(seed, shape, decay):
    """U diag(s) Vᵀ with a spectrum that may be flat."""
    rng = np.random.default_rng(seed)
    values = decay ** np.arange(min(shape)) * rng.uniform(0.1, 10)
    left, right = (np.linalg.qr(rng.normal(size=(side, min(shape))))[0] for side in shape)
    return (left * values) @ right.T, values


def departure(matrix, values, edited, rank):
    """How far both errors are from the dropped singular values, relative to s_1."""
    dropped = values[rank:]
    expected = np.sqrt((dropped**2).sum()), max(dropped, default=0.0)
    errors = [np.linalg.norm(matrix - edited, norm) for norm in ("fro", 2)]
    return np.abs(np.subtract(errors, expected)).max() / values[0]


@shapes
@cases
def test_the_error_is_the_size_of_what_was_dropped(shape, seed, decay, share):
    matrix, values = build(seed, shape, decay)
    rank = clipping.kept_rank(min(shape), share)
    edited = np.asarray(truncate(matrix, share))
    assert departure(matrix, values, edited, rank) < 1e-10


@pytest.mark.parametrize(
    "split",
    [
        clipping.by_magnitude,
        lambda *model, **more: clipping.by_random_direction(jax.random.key(0), *model, **more),
    ],
)
def test_control_rivals_of_the_same_size_lose_something_else(split):
    matrix, values = build(0, (6, 6), 0.5)
    edited = clipping.clip({"mlp_in": matrix[None]}, 0, "mlp_in", 0.5, split=split)["mlp_in"][0]
    assert departure(matrix, values, np.asarray(edited), 3) > 1e-2
