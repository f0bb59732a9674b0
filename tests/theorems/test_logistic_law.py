"""The effective step follows a logistic law, with isotropic covariates and balanced weights.

a' = 2λ²√d a (1 - γa), γ = ((n + 1 + d) λ + σ²)/n: derived from the flow of Zhang et al. 2306.09927;
docs/theory, "The logistic law". Sides: the matrix ODE; the law in closed form, and its half-time.
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
def losses_of(path, covariance, noise_var):
    loss = jax.vmap(lambda u, U: training_dynamics.loss(u, U, covariance, N, noise_var))
    return loss(*path)


def trained(eigenvalue, size, noise_var):
    """Up to three half-times, from u = size: the times, effective steps [10, d, d] and losses."""
    half_time, *_ = law(IN_HALF_TIMES, eigenvalue, size, noise_var)
    times, covariance = half_time * IN_HALF_TIMES, eigenvalue * np.eye(D)
    start = size, size / D**0.5 * np.eye(D)
    path = population.train_flow(times, covariance, N, *start, noise_var)
    return times, path.u[:, None, None] * path.U, losses_of(path, covariance, noise_var)


def disagreement(eigenvalue, size, noise_var, believed_noise_var, clock):
    """The largest differences of steps and losses; ``clock`` is the speed of the law's time."""
    times, steps, losses = trained(eigenvalue, size, noise_var)
    _, stated, of_law = law(clock * times, eigenvalue, size, believed_noise_var)
    of_steps = np.abs(steps - stated[:, None, None] * np.eye(D)).max()
    return of_steps, np.abs(losses - of_law).max()


def gain(at, eigenvalue, size, noise_var):
    """An effective step as a share of the one-layer optimum."""
    _, steps, _ = trained(eigenvalue, size, noise_var)
    return steps[at, 0, 0] * ((N + 1 + D) * eigenvalue + noise_var) / N


@given(eigenvalue=st.floats(0.5, 2.0), size=st.floats(0.01, 0.2), noise_var=st.floats(0.0, 2.0))
def test_the_effective_step_follows_the_logistic_law(eigenvalue, size, noise_var):
    assert max(disagreement(eigenvalue, size, noise_var, noise_var, clock=1.0)) < 1e-7
    assert abs(gain(3, eigenvalue, size, noise_var) - 0.5) < 1e-7


def test_control_a_loss_without_its_half_or_a_forgotten_noise_breaks_the_law():
    assert min(disagreement(1.0, 0.1, 0.5, 0.5, clock=2.0)) > 1e-2
    assert min(disagreement(1.0, 0.1, 0.5, 0.0, clock=1.0)) > 1e-3
    assert abs(gain(6, 1.0, 0.1, 0.5) - 0.5) > 1e-2
