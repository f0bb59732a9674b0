"""A head with separate key, query and value, aligned with an eigenvector, obeys m' = λ²m²(1 - γm³).

Derived here; docs/theory, "Separate heads grow alone". Sides: the gradient of one layer's
population loss, by moments; the closed form of the growth, and the rates at which v_h² - |k_h|² and
|k_h|² - |q_h|² change: zero.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import draws
import population
from draws import jit_numpy
from lsa_lab.theory.plateaus import head_growth

D, N = 3, 5


@partial(jit_numpy, static_argnames="shared_key")
@partial(jax.grad, argnums=0)
def slopes(heads, covariance, noise_var, shared_key=False):
    """The loss is that with A = Σ_h v_h k_h q_hᵀ, or with the first key in place of all."""
    values, keys, queries = heads
    keys = jnp.broadcast_to(keys[:1], keys.shape) if shared_key else keys
    A = jnp.einsum("h,hd,he->de", values, keys, queries)
    return population.one_layer_loss(A, covariance, N, noise_var)


growth_of = jit_numpy(head_growth, static_argnums=2)


def draw(seed):
    """Eigenvalues and eigenvectors of Λ, Λ, and v, k, q of d heads."""
    rng = np.random.default_rng(seed)
    eigenvalues, basis = draws.draw_eigensystem(rng, D, 0.3, 2.0)
    heads = rng.normal(size=D), *rng.normal(size=(2, D, D))
    return eigenvalues, basis, basis * eigenvalues @ basis.T, heads


def departure_from_growth(seed, noise_var, tilt):
    """How far the heads' slopes are from the stated growth; a ``tilt`` turns the queries away."""
    eigenvalues, basis, covariance, (values, _, queries) = draw(seed)
    sizes = np.abs(values)
    aligned = sizes[:, None] * basis.T
    uphill = slopes((sizes, aligned, aligned + tilt * queries), covariance, noise_var)
    growth = growth_of(sizes, eigenvalues, N, noise_var)
    along = growth[:, None] * basis.T
    stated = growth, along, along
    return max(np.abs(a + b).max() for a, b in zip(uphill, stated, strict=True))


def imbalance(seed, noise_var, shared_key):
    """d/dt of v_h² - |k_h|² and of |k_h|² - |q_h|², halved, at arbitrary heads."""
    *_, covariance, heads = draw(seed)
    uphill = slopes(heads, covariance, noise_var, shared_key=shared_key)
    rates = [(a * b).reshape(D, -1).sum(1) for a, b in zip(heads, uphill, strict=True)]
    return np.abs(np.diff(rates, axis=0)).max()


@draws.seed_and(noise_var=(0.0, 2.0))
def test_aligned_heads_grow_alone_and_every_head_keeps_its_balance(seed, noise_var):
    assert departure_from_growth(seed, noise_var, tilt=0.0) < 1e-10
    assert imbalance(seed, noise_var, shared_key=False) < 1e-10


def test_control_tilted_queries_or_a_shared_key_break_it():
    assert departure_from_growth(0, 0.5, tilt=0.1) > 1e-2
    assert imbalance(0, 0.5, shared_key=True) > 1e-2
