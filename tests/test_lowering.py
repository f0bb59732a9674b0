"""What a platform lacks is seen without it: in programs, in their loops, and op by op."""

import jax
import jax.numpy as jnp
import pytest

import lowering

TWO = jnp.array([[2.0, 1.0], [1.0, 2.0]])


def at_once(matrix):
    return jax.scipy.linalg.sqrtm(jnp.pad(matrix, 1))  # a shape that no other test has traced


def in_a_program(matrix):
    return jax.jit(lambda a: jax.scipy.linalg.schur(a)[0])(matrix)


def in_a_loop(matrix):
    def step(carry, _):
        return jax.scipy.linalg.sqrtm(carry).real, None

    return jax.jit(lambda a: jax.lax.scan(step, a, length=2)[0])(matrix)


@pytest.mark.parametrize("compute", [in_a_program, in_a_loop, at_once])
def test_schurs_form_lacks_on_a_gpu(compute):
    with lowering.operations() as kinds:
        compute(TWO)
    assert lowering.lacking(kinds, "cuda") == ["schur"]
    assert lowering.lacking(kinds, "cpu") == []


def test_a_program_that_another_one_holds_is_walked_through():
    held = jax.jit(lambda a: jax.scipy.linalg.schur(a)[0])
    held(TWO)
    with lowering.operations() as kinds:
        jax.jit(lambda a: held(a) + 1)(TWO)
    assert lowering.lacking(kinds, "cuda") == ["schur"]


def test_eigenvalues_draws_and_gradients_lower():
    def loss(a, key):
        values, vectors = jnp.linalg.eigh(a + jax.random.normal(key, a.shape))
        return (jnp.sqrt(values**2 + 1)[None] * vectors).sum()

    with lowering.operations() as kinds:
        jax.jit(jax.grad(loss))(TWO, jax.random.key(0))
    assert len(kinds) > 10
    assert lowering.lacking(kinds, "cuda") == []
