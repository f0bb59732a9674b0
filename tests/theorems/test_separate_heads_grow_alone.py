"""A head with separate key, query and value, aligned with an eigenvector, obeys m' = λ²m²(1 - γm³).

Derived here for the population loss of one layer of linear attention; THEORY II.2.6.
"""

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsa_lab.theory import training_dynamics


def heads_loss(heads, covariance, n, noise_var):
    """½ E(ŷ - w·x)² with A = Σ_h v_h k_h q_hᵀ, from E bbᵀ and E bwᵀ = Λ (THEORY II.2.4)."""
    A = jnp.einsum("h,hd,he->de", *heads)
    trace = jnp.trace(covariance)
    second = (1 + 1 / n) * covariance @ covariance + (trace + noise_var) / n * covariance
    quadratic = jnp.trace(covariance @ A.T @ second @ A)
    return (quadratic - 2 * jnp.trace(covariance @ A.T @ covariance) + trace) / 2


def draw(seed, d):
    keys = jax.random.split(jax.random.key(seed), 5)
    eigenvalues = jax.random.uniform(keys[0], (d,), minval=0.3, maxval=2.0)
    basis, _ = jnp.linalg.qr(jax.random.normal(keys[1], (d, d)))
    heads = (
        jax.random.normal(keys[2], (d,)),
        jax.random.normal(keys[3], (d, d)),
        jax.random.normal(keys[4], (d, d)),
    )
    return eigenvalues, basis, heads


@partial(jax.jit, static_argnames=("d", "n"))
def departure_from_growth(seed, d, n, noise_var, tilt):
    """With ``tilt`` the queries leave the eigenvectors."""
    eigenvalues, basis, (values, _, queries) = draw(seed, d)
    covariance = basis * eigenvalues[None] @ basis.T
    sizes = jnp.abs(values)
    aligned = sizes[:, None] * basis.T
    heads = sizes, aligned, aligned + tilt * queries
    downhill = jax.tree.map(jnp.negative, jax.grad(heads_loss)(heads, covariance, n, noise_var))
    growth = training_dynamics.head_growth(sizes, eigenvalues, n, noise_var)
    along = growth[:, None] * basis.T
    stated = growth, along, along
    return jnp.max(
        jnp.stack([jnp.max(jnp.abs(a - b)) for a, b in zip(downhill, stated, strict=True)])
    )


@partial(jax.jit, static_argnames=("d", "n", "shared_key"))
def imbalance(seed, d, n, noise_var, shared_key):
    """d/dt of v_h² - |k_h|² and of |k_h|² - |q_h|², halved, at arbitrary heads."""
    eigenvalues, basis, heads = draw(seed, d)

    def loss(heads):
        values, keys, queries = heads
        keys = jnp.broadcast_to(keys[:1], keys.shape) if shared_key else keys
        return heads_loss(
            (values, keys, queries), basis * eigenvalues[None] @ basis.T, n, noise_var
        )

    of_values, of_keys, of_queries = jax.grad(loss)(heads)
    rates = heads[0] * of_values, jnp.sum(heads[1] * of_keys, 1), jnp.sum(heads[2] * of_queries, 1)
    return jnp.max(jnp.abs(jnp.stack([rates[0] - rates[1], rates[1] - rates[2]])))


@pytest.mark.parametrize(("d", "n"), [(1, 4), (3, 5)])
@given(seed=st.integers(0, 2**32 - 1), noise_var=st.floats(0.0, 2.0))
def test_aligned_heads_grow_alone_and_every_head_keeps_its_balance(d, n, seed, noise_var):
    assert departure_from_growth(seed, d, n, noise_var, tilt=0.0) < 1e-10
    assert imbalance(seed, d, n, noise_var, shared_key=False) < 1e-10


def test_tilted_queries_or_a_shared_key_break_it():
    assert departure_from_growth(0, 3, 5, 0.5, tilt=0.1) > 1e-2
    assert imbalance(0, 3, 5, 0.5, shared_key=True) > 1e-2
