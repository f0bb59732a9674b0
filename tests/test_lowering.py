"""The list of operations that a platform lacks."""

import jax
import jax.numpy as jnp
import pytest

import lowering

TWO = jnp.array([[2.0, 1.0], [1.0, 2.0]])


def square_root(matrix):
    return jax.scipy.linalg.sqrtm(jnp.pad(matrix, 1))  # a shape that no other test has traced


def repeated_square_root(matrix):
    def step(carry, _):
        return jax.scipy.linalg.sqrtm(carry).real, None

    return jax.jit(lambda a: jax.lax.scan(step, a, length=2)[0])(matrix)


@pytest.mark.parametrize("compute", [repeated_square_root, square_root])
def test_a_gpu_lacks_schurs_form(compute):
    with lowering.operations() as kinds:
        compute(TWO)
    assert lowering.lacking(kinds, "cuda") == ["schur"]
    assert lowering.lacking(kinds, "cpu") == []
