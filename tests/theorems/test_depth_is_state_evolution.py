"""The least risk of L steps of descent obeys R_l = (σ² + R_{l-1})/(α + σ² + R_{l-1}) in the limit,
and that of all rules g(H) Xᵀy/n with deg g < L is known at finite n and d, exactly.

Gaussian covariates, steps that all prompts share. docs/theory, "Depth is state evolution", "The
best steps at finite sizes".
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import roots_genlaguerre

import population
from draws import jit_numpy
from lsa_lab import estimators
from lsa_lab.models import constructions
from lsa_lab.prompts import Prompt
from lsa_lab.theory import depth, learning_curves, risk


def ridge_limit(alpha, noise_var):
    middle = alpha + noise_var - 1
    return (np.sqrt(middle**2 + 4 * noise_var) - middle) / 2


@pytest.mark.parametrize(("alpha", "noise_var"), [(2.0, 0.1), (0.5, 0.1), (4.0, 1.0)])
def test_the_recursion_is_a_ratio_of_chebyshev_polynomials_that_ends_at_ridge(alpha, noise_var):
    """R_L = 1 - √α U_{L-1}(z)/U_L(z), z = (α + 1 + σ²)/(2√α) = cosh t, U_L = sinh((L+1) t)/sinh t;
    it falls to ridge like ζ^{2L}, ζ = e^{-t}. Large sizes come to the limit."""
    growth = np.arccosh((alpha + 1 + noise_var) / (2 * alpha**0.5))
    stated = 1 - alpha**0.5 * np.sinh(np.arange(9) * growth) / np.sinh(np.arange(1, 10) * growth)
    risks, ridge = depth.best_descent(alpha, noise_var, 8), ridge_limit(alpha, noise_var)
    np.testing.assert_allclose(risks, stated, atol=1e-12)
    falls = np.diff(np.log(risks - ridge))
    np.testing.assert_allclose(falls[-1], -2 * growth, rtol=0.02)
    # Control: another noise.
    assert np.abs(depth.best_descent(alpha, 2 * noise_var, 8) - stated).max() > 1e-2
    np.testing.assert_allclose((noise_var + ridge) / (alpha + noise_var + ridge), ridge, rtol=1e-12)
    exact = risk.rotation_invariant_bound(round(alpha * 120), 120, noise_var)
    np.testing.assert_allclose(ridge, exact, rtol=0.03)
    exact = [depth.best_descent_at(round(alpha * d), d, noise_var, 4) for d in (20, 80)]
    gaps = np.abs(exact - stated[:5]).max(1)
    assert gaps[1] < min(gaps[0] / 3, 0.01)


N, NOISE = 6, 1.0


def least_risk_by_moments(n, d, noise_var, length):
    """The minimum over g of degree below the length where H has one eigenvalue that is not 0, a
    χ² variable over n: 1 - bᵀA⁻¹b by its moments E χ^{2m} = k(k + 2)...(k + 2m - 2)."""
    k, rows = max(n, d), np.arange(length)
    m = np.arange(2 * length + 3)
    moment = np.cumprod(np.r_[1, k + 2.0 * m[:-1]]) / n**m / d
    powers = rows[:, None] + rows[None]
    curvature = moment[powers + 2] + noise_var * d / n * moment[powers + 1]
    return 1 - moment[rows + 1] @ np.linalg.solve(curvature, moment[rows + 1])


@pytest.mark.parametrize(("n", "d"), [(5, 1), (1, 4), (1, 1)])
def test_finite_sizes_are_the_least_of_a_quadratic_form_in_moments(n, d):
    exact = depth.best_descent_at(n, d, 0.3, 5)[1:]
    stated, wrong = (  # Control: half of the noise
        [least_risk_by_moments(n, d, noise_var, length) for length in range(1, 6)]
        for noise_var in (0.3, 0.15)
    )
    np.testing.assert_allclose(exact, stated, rtol=1e-9)
    assert np.abs(exact / wrong - 1).max() > 1e-2


def test_they_are_the_best_polynomials_on_drawn_spectra_from_one_layer_to_ridge():
    n, d, noise_var = 16, 8, 0.1
    x = np.random.default_rng(0).standard_normal((6000, n, d))
    h = np.linalg.eigvalsh(np.swapaxes(x, 1, 2) @ x / n).ravel()
    exact = depth.best_descent_at(n, d, noise_var, 60)
    target = np.concatenate([np.ones_like(h), np.zeros_like(h)])
    for length in range(1, 5):  # the mean of (1 - hg)² + s h g², two blocks of rows
        powers = h[:, None] ** np.arange(length)
        noise = np.sqrt(noise_var * d / n * h)[:, None] * powers
        _, (least,), *_ = np.linalg.lstsq(np.concatenate([h[:, None] * powers, noise]), target)
        np.testing.assert_allclose(least / len(h), exact[length], rtol=0.02)
    assert (np.diff(exact[:5]) < 0).all()
    np.testing.assert_allclose(exact[1], 1 - 1 / (1 + (d + 1 + d * noise_var) / n), rtol=1e-12)
    np.testing.assert_allclose(exact[-1], risk.rotation_invariant_bound(n, d, noise_var), rtol=1e-7)


@jit_numpy
def flows(steps, x):  # [P, n] -> [P, n] each, of the network and of the Bayes rule by the labels
    def answers(y, x):
        prompt = Prompt(x[:, None], y, jnp.ones(1), jnp.zeros(()))
        stack = constructions.gradient_descent(steps, 1)
        network = population.predict(stack, prompt.x, y, prompt.x_query)
        return network, estimators.gaussian_posterior_mean(prompt, 1.0, NOISE) @ prompt.x_query

    return jax.vmap(jax.jacrev(answers), (None, 0))(jnp.zeros(x.shape[1]), x)


@pytest.mark.parametrize("length", [1, 2])
def test_flows_of_the_best_steps_lack_the_share_that_their_risk_does(length):
    """(R_L - R)/(1 - R) of the square of the Bayes rule's flow ("Near in risk, near in flow"), in
    the metric XXᵀ + σ²I, at d = 1, where all is a function of |x|², a χ² variable."""
    nodes, mass = roots_genlaguerre(80, N / 2 - 1)
    h, mass = 2 * nodes / N, mass / mass.sum()
    powers = h[:, None] ** np.arange(length)
    form = powers.T @ (powers * (mass * h * (h + NOISE / N))[:, None])
    best = np.linalg.solve(form, powers.T @ (mass * h))
    steps, x = 1 / np.roots([*-best[::-1], 1.0]), np.sqrt(h)[:, None] * np.ones(N)
    assert np.isreal(steps).all()

    def share(steps):
        network, bayes = flows(steps, x)
        lacking, whole = (
            mass @ ((flow * x).sum(1) ** 2 + NOISE * (flow**2).sum(1))
            for flow in (network - bayes, bayes)
        )
        return lacking / whole

    ridge = learning_curves.ridge(N, 1, NOISE)[-1]
    stated = (depth.best_descent_at(N, 1, NOISE, length)[-1] - ridge) / (1 - ridge)
    np.testing.assert_allclose(share(steps.real), stated, rtol=1e-7)
    assert share(0.8 * steps.real) > 1.1 * stated  # Control: other steps lack more
