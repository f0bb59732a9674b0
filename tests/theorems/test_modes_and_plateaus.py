"""Diagonal weights train mode by mode, and the plateaus are the losses at the saddles.

Derived from the flow of Zhang et al. 2306.09927 (agrees in outline with 2501.16265); docs/theory,
"Modes", "Plateaus". Sides: the vector field and its solution, and losses of separate heads by
moments; equations written out mode by mode, and the closed form of the plateaus.
"""

from functools import partial

import jax
import jax.numpy as jnp
from hypothesis import given
from hypothesis import strategies as st

import draws
import population
from lsa_lab.theory import training_dynamics

D, N = 4, 6


def draw(seed, d):
    key_spectrum, key_weights = jax.random.split(jax.random.key(seed))
    return *draws.eigensystem(key_spectrum, d, 0.3, 2.0), jax.random.normal(key_weights, (d + 1,))


def optimal_steps(eigenvalues, n, noise_var):
    return n / ((n + 1) * eigenvalues + jnp.sum(eigenvalues) + noise_var)


@partial(jax.jit, static_argnames=("d", "n"))
def departure_from_modes(seed, d, n, noise_var, rotated):
    """U_i' = u λ_i² (1 - γ_i u U_i), u' = Σ λ_i² U_i (1 - γ_i u U_i), nothing off the diagonal."""
    eigenvalues, basis, weights = draw(seed, d)
    basis = jnp.where(rotated, basis, jnp.eye(d))
    u, modes = weights[0], weights[1:]
    covariance = basis * eigenvalues[None] @ basis.T
    flow = training_dynamics.vector_field(u, jnp.diag(modes), covariance, n, noise_var)
    path = training_dynamics.solve(jnp.ones(1), covariance, n, u, jnp.diag(modes), noise_var)
    unlearnt = 1 - u * modes / optimal_steps(eigenvalues, n, noise_var)
    differences = [
        flow.u - jnp.sum(eigenvalues**2 * modes * unlearnt),
        flow.U - jnp.diag(u * eigenvalues**2 * unlearnt),
        path.U[0] - jnp.diag(jnp.diag(path.U[0])),
    ]
    return jnp.stack([jnp.max(jnp.abs(difference)) for difference in differences])


def heads_loss(value, key, query, covariance, n, noise_var):
    """The loss with A = Σ_h v_h k_h q_hᵀ."""
    A = jnp.einsum("h,hd,he->de", value, key, query)
    return population.one_layer_loss(A, covariance, n, noise_var)


@partial(jax.jit, static_argnames=("d", "n"))
def saddles(seed, d, n, noise_var, largest_first):
    """Losses [d+1] with k heads at their optimum and the others at zero, and their gradients."""
    eigenvalues, basis, _ = draw(seed, d)
    covariance = basis * eigenvalues[None] @ basis.T
    order = jnp.argsort(jnp.where(largest_first, -eigenvalues, eigenvalues))
    optimum = jnp.cbrt(optimal_steps(eigenvalues, n, noise_var))[order]
    sizes = jnp.tril(jnp.ones((d + 1, d)), -1) * optimum[None]

    def at(sizes):
        heads = sizes, sizes[:, None] * basis.T[order], sizes[:, None] * basis.T[order]
        return jax.value_and_grad(heads_loss, (0, 1, 2))(*heads, covariance, n, noise_var)

    losses, gradients = jax.vmap(at)(sizes)
    values = training_dynamics.plateaus(eigenvalues, n, noise_var)
    slope = jnp.max(jnp.stack([jnp.max(jnp.abs(gradient)) for gradient in gradients]))
    return jnp.max(jnp.abs(losses - values)), slope


@given(seed=st.integers(0, 2**32 - 1), noise_var=st.floats(0.0, 2.0))
def test_diagonal_weights_train_mode_by_mode(seed, noise_var):
    assert jnp.max(departure_from_modes(seed, D, N, noise_var, rotated=False)) < 1e-10


@given(seed=st.integers(0, 2**32 - 1), noise_var=st.floats(0.0, 2.0))
def test_plateaus_are_the_losses_at_the_saddles(seed, noise_var):
    of_loss, slope = saddles(seed, D, N, noise_var, largest_first=True)
    assert of_loss < 1e-10
    assert slope < 1e-10


def test_control_rotated_covariates_or_another_order_of_learning_break_it():
    assert jnp.min(departure_from_modes(0, 4, 6, 0.5, rotated=True)) > 1e-2
    of_loss, slope = saddles(0, 4, 6, 0.5, largest_first=False)
    assert of_loss > 1e-2
    assert slope < 1e-10
