"""The effective step follows a logistic law, with isotropic covariates and balanced weights.

a' = 2λ²√d a (1 - γa), γ = ((n + 1 + d) λ + σ²)/n: derived from the flow of Zhang et al. 2306.09927;
docs/theory, "The logistic law". Sides: the matrix ODE; the law in closed form, and its half-time.
"""

from functools import partial

import jax
import jax.numpy as jnp
from hypothesis import given
from hypothesis import strategies as st

from lsa_lab.theory import training_dynamics

D, N = 5, 2


@partial(jax.jit, static_argnames=("d", "n"))
def disagreement(d, n, eigenvalue, size, noise_var, believed_noise_var, clock):
    """Largest difference of the steps and of the losses, up to three times the half-time.

    The weights start at u = size; ``clock`` is the speed of the law's time.
    """
    covariance, initial = eigenvalue * jnp.eye(d), size / d**0.5 * jnp.eye(d)
    task = d, n, eigenvalue
    half_time = training_dynamics.half_time(*task, size**2 / d**0.5, noise_var)
    times = half_time * jnp.linspace(0.0, 3.0, 10)

    u, U = training_dynamics.solve(times, covariance, n, size, initial, noise_var)
    loss = jax.vmap(lambda u, U: training_dynamics.loss(u, U, covariance, n, noise_var))
    steps = training_dynamics.isotropic_step(
        clock * times, *task, size**2 / d**0.5, believed_noise_var
    )
    of_steps = u[:, None, None] * U - steps[:, None, None] * jnp.eye(d)[None]
    of_losses = loss(u, U) - training_dynamics.isotropic_loss(steps, *task, believed_noise_var)
    return jnp.stack([jnp.max(jnp.abs(of_steps)), jnp.max(jnp.abs(of_losses))])


@partial(jax.jit, static_argnames=("d", "n"))
def gain_at_half_time(d, n, eigenvalue, size, noise_var, clock):
    """The effective step at the half-time as a share of the one-layer optimum."""
    half_time = training_dynamics.half_time(d, n, eigenvalue, size**2 / d**0.5, noise_var)
    covariance, initial = eigenvalue * jnp.eye(d), size / d**0.5 * jnp.eye(d)
    times = clock * half_time[None]
    u, U = training_dynamics.solve(times, covariance, n, size, initial, noise_var)
    return u[0] * U[0, 0, 0] * ((n + 1 + d) * eigenvalue + noise_var) / n


@given(eigenvalue=st.floats(0.5, 2.0), size=st.floats(0.01, 0.2), noise_var=st.floats(0.0, 2.0))
def test_the_effective_step_follows_the_logistic_law(eigenvalue, size, noise_var):
    assert jnp.max(disagreement(D, N, eigenvalue, size, noise_var, noise_var, clock=1.0)) < 1e-7
    assert jnp.abs(gain_at_half_time(D, N, eigenvalue, size, noise_var, clock=1.0) - 0.5) < 1e-7


def test_control_a_loss_without_its_half_or_a_forgotten_noise_breaks_the_law():
    assert jnp.min(disagreement(3, 10, 1.0, 0.1, 0.5, 0.5, clock=2.0)) > 1e-2
    assert jnp.min(disagreement(3, 10, 1.0, 0.1, 0.5, 0.0, clock=1.0)) > 1e-3
    assert jnp.abs(gain_at_half_time(3, 10, 1.0, 0.1, 0.5, clock=2.0) - 0.5) > 1e-2
