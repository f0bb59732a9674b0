"""The effective step follows a logistic law, with isotropic covariates and balanced weights.

a' = 2λ²√d a (1 - γa), γ = ((n + 1 + d) λ + σ²)/n; derived from the flow of Zhang et al. 2306.09927.
docs/theory, "The logistic law".
"""

import jax
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import population
from draws import jit_numpy
from lsa_lab.theory import training_dynamics

D, N = 3, 5
IN_HALF_TIMES = np.linspace(0.0, 3.0, 10)  # the fourth is the half-time


step_at = jit_numpy(training_dynamics.isotropic_step, static_argnums=(1, 2))


def law(times, eigenvalue, size, noise_var):  # -> the half-time, steps and losses [10]
    gamma, initial = ((N + 1 + D) * eigenvalue + noise_var) / N, size**2 / D**0.5
    steps = step_at(times, D, N, eigenvalue, initial, noise_var)
    losses = D * eigenvalue * (eigenvalue * steps * (gamma * steps - 2) + 1) / 2
    return np.log(1 / (gamma * initial) - 1) / (2 * eigenvalue**2 * D**0.5), steps, losses


@jit_numpy
def losses_on(path, covariance, noise_var):
    loss = jax.vmap(lambda u, U: training_dynamics.loss(u, U, covariance, N, noise_var))
    return loss(*path)


def errors(eigenvalue, size, noise_var, stated_noise_var=None, clock=1.0):
    """Of steps and losses up to three half-times, and of half the optimum at the half-time."""
    times = clock * IN_HALF_TIMES * law(IN_HALF_TIMES, eigenvalue, size, noise_var)[0]
    covariance, start = eigenvalue * np.eye(D), (size, size / D**0.5 * np.eye(D))
    path = population.train_flow(times, covariance, N, *start, noise_var)
    steps, losses = path.u[:, None, None] * path.U, losses_on(path, covariance, noise_var)
    stated_noise_var = noise_var if stated_noise_var is None else stated_noise_var
    _, stated, stated_losses = law(times / clock, eigenvalue, size, stated_noise_var)
    half = steps[3, 0, 0] * ((N + 1 + D) * eigenvalue + noise_var) / N - 0.5
    step_error = np.abs(steps - stated[:, None, None] * np.eye(D)).max()
    return step_error, np.abs(losses - stated_losses).max(), abs(half)


@given(eigenvalue=st.floats(0.5, 2.0), size=st.floats(0.01, 0.2), noise_var=st.floats(0.0, 2.0))
def test_the_effective_step_follows_the_logistic_law(eigenvalue, size, noise_var):
    assert max(errors(eigenvalue, size, noise_var)) < 1e-7


def test_control_a_loss_without_its_half_or_a_forgotten_noise_breaks_the_law():
    assert min(errors(1.0, 0.1, 0.5, clock=2.0)) > 1e-2
    assert min(errors(1.0, 0.1, 0.5, stated_noise_var=0.0)[:2]) > 1e-3
