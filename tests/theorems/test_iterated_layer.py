"""The layer that is trained for one step may be iterated for ever; with noise a finite number of
steps is the best.

Gaussian covariates, the step that is best for one layer; derived here. docs/theory, "The trained
layer iterated".
"""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from draws import draw_regressions, jit_numpy, z_score
from lsa_lab.theory import depth, learning_curves

limit = jit_numpy(depth.iterated_limit, static_argnums=2)


def simulated_errors(prompts, n, d, noise_var, steps, factor=1.0):  # [steps+1, B]  |w_k - w|²
    x, w, y = draw_regressions(np.random.default_rng(0), prompts, n, d, noise_var)
    x, w, y, step = x[:, :-1], w[:, -1], y[:, :-1], factor / (n + d + 1 + d * noise_var)
    guess, errors = np.zeros_like(w), []
    for _ in range(steps + 1):
        errors.append(((guess - w) ** 2).sum(1))
        left = y - np.einsum("bnd,bd->bn", x, guess)
        guess = guess + step * np.einsum("bnd,bn->bd", x, left)
    return np.stack(errors)


@pytest.mark.parametrize(("n", "d"), [(16, 6), (6, 9)])
def test_descent_on_drawn_prompts_has_that_risk(n, d):
    stated = depth.iterated(n, d, 0.3, 3)
    errors, other = (simulated_errors(40_000, n, d, 0.3, 3, f) for f in (1.0, 0.7))
    assert np.abs([z_score(e - r) for e, r in zip(errors, stated, strict=True)]).max() < 4
    assert min(abs(z_score(other[k] - stated[k])) for k in (1, 2)) > 4  # Control: another step
    one = learning_curves.additive(n, d, 0.3)[-1]
    np.testing.assert_allclose(stated[1], one, rtol=1e-10)


@pytest.mark.parametrize("n", [1, 5])
def test_the_mean_over_prompts_diverges_by_rare_ones_and_is_exact_however_large_it_is(n):
    """d = 1: nh is chi squared of n degrees."""
    noise_var, a, risks = 0.3, n / (n + 1 + 1 + 0.3), depth.iterated(n, 1, 0.3, 40)

    def part(x, k):
        left = (1 - a * x / n) ** k
        return (left**2 + noise_var / x * (1 - left) ** 2) * stats.chi2.pdf(x, n)

    for k in (1, 5, 40):
        pieces = [(1e-12, 1), (1, 30), (30, 200), (200, 800)]
        exact = sum(quad(part, *ends, args=(k,), limit=400, epsabs=0)[0] for ends in pieces)
        np.testing.assert_allclose(risks[k], exact, rtol=1e-7)
    assert risks[-1] > 1e70


def test_the_median_prompt_has_the_limit_and_the_limit_never_diverges():
    alpha, noise_var, d = 2.0, 0.1, 160
    stated = limit(alpha, noise_var, 40)
    errors = np.median(simulated_errors(9, int(alpha * d), d, noise_var, 40), 1)
    np.testing.assert_allclose(errors, stated, rtol=0.12)
    assert errors[12] < min(errors[4], errors[-1])  # 12 steps are the best in the limit
    exact = depth.iterated(int(alpha * d), d, noise_var, 8)
    np.testing.assert_allclose(exact, stated[:9], rtol=0.02)
    # Control: a longer step than the trained one diverges in the limit too. With it
    # a λ_max = (1 + √α)²/(1 + α + σ²) is at most 2, and 2 at α = 1, σ = 0 alone.
    alphas, noises = np.meshgrid(np.linspace(0.1, 9, 90), [0.0, 0.1, 1.0])
    largest = (1 + alphas**0.5) ** 2 / (1 + alphas + noises)
    assert (largest <= 2).all()
    assert ((largest == 2) <= ((alphas == 1) & (noises == 0))).all()
    errors = np.median(simulated_errors(3, d, d, 0.0, 30, 1.3), 1)
    assert errors[-1] > 2 * errors[5]


def test_with_noise_a_finite_number_of_steps_is_the_best_and_the_end_is_least_squares():
    noise_var, best_steps = 0.1, {1.05: 13, 1.2: 14, 1.5: 14, 2: 12, 3: 10, 5: 8, 10: 6}
    ratios = []
    for alpha, best in best_steps.items():
        risks, end = limit(alpha, noise_var, 160), noise_var / (alpha - 1)
        assert risks.argmin() == best
        assert risks.min() < end
        ratios.append(end / risks.min())
        if alpha >= 2:
            np.testing.assert_allclose(risks[-1], end, rtol=1e-4)
    np.testing.assert_allclose(ratios[:2], [7.7, 2.4], atol=0.05)
    np.testing.assert_allclose(ratios[2:5], [1.41, 1.14, 1.04], atol=0.005)
    below = limit(0.5, noise_var, 160)[-1]  # the shortest interpolator
    np.testing.assert_allclose(below, 0.5 + noise_var, rtol=1e-4)


def test_without_noise_more_is_better_and_a_square_prompt_has_the_central_binomials():
    assert (np.diff(limit(3.0, 0.0, 20)) < 0).all()
    central = [math.comb(2 * k, k) / 4**k for k in range(7)]
    np.testing.assert_allclose(limit(1.0, 0.0, 6), central, rtol=1e-12)
