"""Endless prompts whose covariance has another basis in each still need depth.

docs/theory, "Depth where the covariance turns".
"""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from draws import draw_rotation, jit_numpy, preconditioned, seeds
from lsa_lab.models import constructions
from lsa_lab.models.moments import predictions_from_moments
from lsa_lab.theory import rotating_covariance

EIGENVALUES = np.array([1.0, 0.8, 0.5, 0.25, 0.1])
descent = jit_numpy(lambda steps: constructions.gradient_descent(steps, 5))
moving = jit_numpy(lambda *factors: constructions.gradient_descent_plus_plus(*factors, 5))


@jit_numpy
def error_of_stack(params, covariance):  # E (ŵ - w)ᵀΣ(ŵ - w), |w|² = 1 on average
    w, x = jnp.repeat(jnp.eye(5), 5, axis=1), jnp.tile(jnp.eye(5), 5)  # [d, B], every pair
    product, upper = covariance @ w, jnp.broadcast_to(covariance[..., None], (5, 5, 25))
    last = jnp.concatenate([product, (w * product).sum(0)[None]])
    moments = jnp.concatenate([upper, product[:, None]], axis=1)
    moments = jnp.concatenate([moments, last[None]])
    gaps = (predictions_from_moments(params, moments, x) - (w * x).sum(0)).reshape(5, 5)
    return jnp.einsum("wi,ij,wj->", gaps, covariance, gaps) / 5


@pytest.mark.parametrize("length", [1, 3])
@seeds
def test_stacks_with_the_best_shared_steps_have_that_error_in_every_basis(length, seed):
    turn, root = draw_rotation(np.random.default_rng(seed), 5), np.sqrt(EIGENVALUES)
    covariance = turn * EIGENVALUES @ turn.T
    powers = EIGENVALUES[:, None] ** np.arange(1.0, length + 1)
    least = np.linalg.lstsq(root[:, None] * powers, -root)[0]  # of Σ λ p(λ)² with p(0) = 1
    steps = 1 / np.roots([*least[::-1], 1.0])
    exact = rotating_covariance.best_descent(EIGENVALUES, 6)
    assert np.isreal(steps).all()
    error = error_of_stack(descent(steps.real), covariance)
    np.testing.assert_allclose(error, exact[length], rtol=1e-9)
    # Control: one layer ends a fixed covariance, and only that; five layers end all.
    params = preconditioned(np.linalg.inv(covariance)[None])
    assert error_of_stack(params, covariance) < 1e-20
    assert error_of_stack(params, np.diag(EIGENVALUES)) > exact[1]
    assert (exact[:5] > 0).all()
    np.testing.assert_array_equal(exact[5:], 0)


@pytest.mark.parametrize("count", [1, 2, 5])
@seeds
def test_layers_that_move_covariates_end_every_basis_with_half_as_many(count, seed):
    values = np.resize(EIGENVALUES[-count:], 5)
    steps, gammas = rotating_covariance.moving_inverse(values)
    assert len(steps) == len(gammas) == count // 2 + 1
    turn = draw_rotation(np.random.default_rng(seed), 5)
    covariance = turn * values @ turn.T
    assert error_of_stack(moving(steps, gammas), covariance) < 1e-20
    # Control: one more eigenvalue is not ended, nor are as many without moving.
    if count > 2:
        assert rotating_covariance.best_descent(values, len(steps))[-1] > 1e-6
        assert error_of_stack(moving(steps, 0 * gammas), covariance) > 1e-6
    further = np.resize([*np.unique(values), 0.6], 5)[:5] if count < 5 else values + 0.05
    assert error_of_stack(moving(steps, gammas), turn * further @ turn.T) > 1e-6


def test_the_best_two_layers_that_move_leave_an_eighth_of_what_two_steps_do():
    values = np.arange(1, 6) / 5

    def risk(numbers):  # of steps a, b and factor γ
        a, b, gamma = numbers
        left = (1 - a * values) * (1 - b * values * (1 - gamma * values) ** 2)
        return np.mean(values * left**2)

    starts = np.random.default_rng(0).normal(size=(40, 3))
    best = min((minimize(risk, start) for start in starts), key=lambda end: end.fun)
    fixed = rotating_covariance.best_descent(values, 2)[-1]
    np.testing.assert_allclose(best.fun / fixed, 1 / 8, rtol=0.03)
    stack = moving(best.x[:2], np.array([best.x[2], 0.0]))
    np.testing.assert_allclose(error_of_stack(stack, np.diag(values)), best.fun, rtol=1e-9)


def power_law_risks(b, depth):  # [depth+1]
    """R_l/R_0 = [Π_{k≤l} k/(k + b + 1)]² where λ times the density of eigenvalues is λ^b."""
    layers = np.arange(1.0, depth + 1)
    return np.append(1, np.cumprod(layers / (layers + 1 + b)) ** 2)


@pytest.mark.parametrize("a", [1.0, 3.0])
def test_a_power_law_of_eigenvalues_is_one_in_depth_and_tied_layers_have_half_its_exponent(a):
    values = ((np.arange(2000) + 0.5) / 2000) ** a
    exact, risks = power_law_risks(1 / a, 40), rotating_covariance.best_descent(values, 5)
    np.testing.assert_allclose(risks / risks[0], exact[:6], rtol=1e-4)
    np.testing.assert_allclose(np.log2(exact[40] / exact[20]), -2 * (1 / a + 1), rtol=0.06)
    tied = [(values * (1 - values) ** (2 * length)).mean() for length in (20, 40)]
    np.testing.assert_allclose(np.log2(tied[1] / tied[0]), -(1 / a + 1), rtol=0.03)
    # Control: another exponent is another law.
    assert np.abs(exact[:6] / power_law_risks(a + 1, 5) - 1).max() > 0.1
