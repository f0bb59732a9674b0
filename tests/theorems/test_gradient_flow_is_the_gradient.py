"""The vector field of the training dynamics is minus the gradient of the population loss.

Zhang et al. 2306.09927; docs/theory, "The training flow". Sides: automatic differentiation of the
network's population loss, all entries of its weights free, an exact Gauss-Hermite sum with three
nodes per coordinate of x (degree 4) and two per coordinate of w and of the noise (degree 3); the
closed form of the field.
"""

from functools import partial

import jax
import jax.numpy as jnp

import draws
import population
from lsa_lab.models import linear_attention
from lsa_lab.theory import training_dynamics

D, N = 2, 2


def population_loss(params, covariance, noise_var, n):
    d = covariance.shape[0]
    nodes, mass = population.gauss_hermite([3] * (n + 1) * d + [2] * (d + n))
    root = jnp.linalg.cholesky(covariance)

    def squared_error(z):
        x, w, noise = jnp.split(z, [(n + 1) * d, (n + 2) * d])
        x = x.reshape(n + 1, d) @ root.T
        y = x[:-1] @ w + jnp.sqrt(noise_var) * noise
        slot = -population.predict(params, x[:-1], y, x[-1], keys="all")
        return (slot - x[-1] @ w) ** 2  # the paper reads the slot with a plus sign

    return jnp.asarray(mass) @ jax.vmap(squared_error)(jnp.asarray(nodes)) / 2


@partial(jax.jit, static_argnames=("d", "n"))
def disagreement(seed, d, n, noise_var, believed_noise_var, factor, other_entries):
    keys = jax.random.split(jax.random.key(seed), 4)
    covariance = draws.covariance(keys[0], d, 0.3, 2.0)
    u, U = jax.random.normal(keys[1]), jax.random.normal(keys[2], (d, d))
    others = other_entries * jax.random.normal(keys[3], (2, d))
    w_kq = jnp.zeros((d + 1, d + 1)).at[:d, :d].set(U).at[d, :d].set(others[0])
    w_pv = jnp.zeros((d + 1, d + 1)).at[d, d].set(u).at[d, :d].set(others[1])
    params = linear_attention.Params(w_kq[None, None], w_pv[None, None])
    value, gradient = jax.value_and_grad(population_loss)(params, covariance, noise_var, n)

    task = covariance, n, believed_noise_var
    flow = training_dynamics.vector_field(u, U, *task)
    stated_kq = jnp.zeros((d + 1, d + 1)).at[:d, :d].set(-flow.U)
    stated_pv = jnp.zeros((d + 1, d + 1)).at[d, d].set(-flow.u)
    differences = [
        value - training_dynamics.loss(u, U, *task),
        factor * gradient.w_kq[0, 0] - stated_kq,
        factor * gradient.w_pv[0, 0] - stated_pv,
    ]
    return jnp.stack([jnp.max(jnp.abs(difference)) for difference in differences])


@draws.seeded(noise_var=(0.0, 2.0))
def test_the_vector_field_is_minus_the_gradient_and_other_entries_stay_zero(seed, noise_var):
    case = seed, D, N, noise_var, noise_var
    assert jnp.max(disagreement(*case, factor=1.0, other_entries=0.0)) < 1e-10


def test_control_a_forgotten_noise_or_factor_or_an_entry_off_zero_breaks_it():
    case = 0, 2, 1, 0.5
    assert jnp.min(disagreement(*case, 0.0, factor=1.0, other_entries=0.0)) > 1e-2
    assert jnp.min(disagreement(*case, 0.5, factor=2.0, other_entries=0.0)[1:]) > 1e-2
    assert jnp.min(disagreement(*case, 0.5, factor=1.0, other_entries=0.5)) > 1e-2
