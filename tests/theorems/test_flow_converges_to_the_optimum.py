"""Training from small balanced weights keeps u² - |U|² and ends at the best layer: uU → Γ⁻¹,
u → tr(Γ⁻²)^{1/4}. With isotropic covariates the effective step follows a logistic law,
a' = 2λ²√d a (1 - γa), γ = ((n + 1 + d) λ + σ²)/n.

U = cΘΘᵀ, u = c, |ΘΘᵀ|_F = 1, c²|Γ|√d < 2; both learn at one rate. Zhang et al. 2306.09927, Theorem
4.1; docs/theory, "The conserved quantity", "Training ends at the optimum", "The logistic law".
"""

import hypothesis.strategies as st
import jax
import numpy as np
from hypothesis import given

import population
from draws import draw_covariance, jit_numpy, seed_and
from lsa_lab.theory import training_dynamics

D, N = 3, 5
IN_HALF_TIMES = np.linspace(0.0, 3.0, 10)  # the fourth is the half-time
train = jit_numpy(training_dynamics.solve, static_argnums=2)
step_at = jit_numpy(training_dynamics.isotropic_step, static_argnums=(1, 2))


@jit_numpy
@jax.grad
def slopes(weights, covariance, noise_var):
    return population.one_layer_loss(weights[0] * weights[1], covariance, N, noise_var)


def draw(seed):  # Λ, u and U
    rng = np.random.default_rng(seed)
    return draw_covariance(rng, D, 0.3, 1.5), 0.5 * rng.normal(), 0.5 * rng.normal(size=(D, D))


def rate_of_change(covariance, u, U, noise_var, rate_of_u):
    """d/dt (u² - |U|²)/2 with u' = -rate ∂L/∂u and U' = -∂L/∂U."""
    slope_u, slope_U = slopes((u, U), covariance, noise_var)
    return abs(rate_of_u * u * slope_u - (U * slope_U).sum())


@seed_and(noise_var=(0.0, 2.0))
def test_u_squared_minus_the_norm_of_U_squared_is_conserved(seed, noise_var):
    covariance, u, U = draw(seed)
    assert rate_of_change(covariance, u, U, noise_var, rate_of_u=1.0) < 1e-10
    path = train(np.linspace(0.0, 4.0, 10), covariance, N, u, U, noise_var)
    later = path.u**2 - (path.U**2).sum((1, 2))
    assert np.abs(later - (u**2 - (U**2).sum())).max() < 1e-7


def distance(covariance, root, size, noise_var, time, sign=1.0, imbalance=1.0):
    """How far the effective step and u are from the best layer's at that time.

    ``size`` in (0, 1) is c² as a share of its bound; ``root`` is Θ before it is normalised.
    """
    eigenvalues, basis = np.linalg.eigh(covariance)
    steps = N / ((N + 1) * eigenvalues + eigenvalues.sum() + noise_var)
    scale = np.sqrt(size * 2 * steps.min() / D**0.5)
    start = sign * scale * root @ root.T / np.linalg.norm(root @ root.T)
    times = np.linspace(0, time, 10)
    u, U = train(times, covariance, N, imbalance * scale, start, noise_var)
    best = basis * steps @ basis.T
    return np.abs(u[-1] * U[-1] - best).max(), abs(u[-1] - (steps**2).sum() ** 0.25)


@seed_and(size=(0.01, 0.99), noise_var=(0.0, 1.0))
def test_training_ends_at_the_one_layer_optimum(seed, size, noise_var):
    rng = np.random.default_rng(seed)
    start = draw_covariance(rng, D, 0.7, 2.0), rng.normal(size=(D, D)), size, noise_var
    assert max(distance(*start, time=60.0)) < 1e-7


def test_control_unequal_rates_and_a_negative_or_an_unbalanced_start_break_it():
    """Isotropic -ΘΘᵀ runs into the saddle at zero; from a larger u only the product is right.

    Rounding errors grow like e^{λ²√d t} at the saddle, hence the shorter time. The condition on the
    size is not necessary.
    """
    assert rate_of_change(*draw(0), 0.5, rate_of_u=2.0) > 1e-2
    start = np.eye(D), np.eye(D), 0.5, 0.5
    assert max(distance(*start, time=7.0)) < 1e-7
    assert max(distance(*start[:2], 4.0, 0.5, time=20.0)) < 1e-7
    assert min(distance(*start, time=7.0, sign=-1.0)) > 0.1
    step_error, u_error = distance(*start, time=60.0, imbalance=2.0)
    assert step_error < 1e-7
    assert u_error > 0.1


def law(times, eigenvalue, size, noise_var):  # -> the half-time, steps and losses [10]
    gamma, initial = ((N + 1 + D) * eigenvalue + noise_var) / N, size**2 / D**0.5
    steps = step_at(times, D, N, eigenvalue, initial, noise_var)
    losses = D * eigenvalue * (eigenvalue * steps * (gamma * steps - 2) + 1) / 2
    return np.log(1 / (gamma * initial) - 1) / (2 * eigenvalue**2 * D**0.5), steps, losses


@jit_numpy
def losses_on(path, covariance, noise_var):
    loss = jax.vmap(lambda u, U: training_dynamics.loss(u, U, covariance, N, noise_var))
    return loss(*path)


def errors_of_law(eigenvalue, size, noise_var, stated_noise_var=None, clock=1.0):
    """Of steps and losses up to three half-times, and of half the optimum at the half-time."""
    times = clock * IN_HALF_TIMES * law(IN_HALF_TIMES, eigenvalue, size, noise_var)[0]
    covariance, start = eigenvalue * np.eye(D), (size, size / D**0.5 * np.eye(D))
    path = train(times, covariance, N, *start, noise_var)
    steps, losses = path.u[:, None, None] * path.U, losses_on(path, covariance, noise_var)
    stated_noise_var = noise_var if stated_noise_var is None else stated_noise_var
    _, stated, stated_losses = law(times / clock, eigenvalue, size, stated_noise_var)
    half = steps[3, 0, 0] * ((N + 1 + D) * eigenvalue + noise_var) / N - 0.5
    step_error = np.abs(steps - stated[:, None, None] * np.eye(D)).max()
    return step_error, np.abs(losses - stated_losses).max(), abs(half)


@given(eigenvalue=st.floats(0.5, 2.0), size=st.floats(0.01, 0.2), noise_var=st.floats(0.0, 2.0))
def test_the_effective_step_follows_the_logistic_law(eigenvalue, size, noise_var):
    assert max(errors_of_law(eigenvalue, size, noise_var)) < 1e-7


def test_control_a_loss_without_its_half_or_a_forgotten_noise_breaks_the_law():
    assert min(errors_of_law(1.0, 0.1, 0.5, clock=2.0)) > 1e-2
    assert min(errors_of_law(1.0, 0.1, 0.5, stated_noise_var=0.0)[:2]) > 1e-3
