"""A head with separate key, query and value, aligned with an eigenvector, obeys m' = λ²m²(1 - γm³).

Derived here; docs/theory, "Separate heads grow alone". Sides: the gradient of one layer's
population loss, by moments; the closed form of the growth, and the rates at which v_h² - |k_h|² and
|k_h|² - |q_h|² change: zero.
"""

from functools import partial

import jax
import jax.numpy as jnp

import draws
import population
from lsa_lab.theory import training_dynamics

D, N = 3, 5


def heads_loss(heads, covariance, n, noise_var):
    """The loss with A = Σ_h v_h k_h q_hᵀ."""
    A = jnp.einsum("h,hd,he->de", *heads)
    return population.one_layer_loss(A, covariance, n, noise_var)


def draw(seed, d):
    """Eigenvalues and eigenvectors of Λ, and v, k, q of d heads."""
    keys = jax.random.split(jax.random.key(seed), 4)
    shapes = (d,), (d, d), (d, d)
    heads = tuple(jax.random.normal(key, s) for key, s in zip(keys[:3], shapes, strict=True))
    return *draws.eigensystem(keys[3], d, 0.3, 2.0), heads


@partial(jax.jit, static_argnames=("d", "n"))
def departure_from_growth(seed, d, n, noise_var, tilt):
    """How far the heads' slopes are from the stated growth; a ``tilt`` turns the queries away."""
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


@draws.seeded(noise_var=(0.0, 2.0))
def test_aligned_heads_grow_alone_and_every_head_keeps_its_balance(seed, noise_var):
    assert departure_from_growth(seed, D, N, noise_var, tilt=0.0) < 1e-10
    assert imbalance(seed, D, N, noise_var, shared_key=False) < 1e-10


def test_control_tilted_queries_or_a_shared_key_break_it():
    assert departure_from_growth(0, 3, 5, 0.5, tilt=0.1) > 1e-2
    assert imbalance(0, 3, 5, 0.5, shared_key=True) > 1e-2
