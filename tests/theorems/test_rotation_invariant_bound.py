"""No rule g(H) Xᵀy/n beats ridge at one penalty, however sparse w is (derived here).

docs/theory, "The rotation-invariant bound". Sides: risks of spectral rules over sampled X, the
noise averaged exactly; the closed form of the bound. Means are compared to 4 standard errors.
Hypothesis: the rule sees the spectrum alone.
"""

import functools

import numpy as np
import pytest

from lsa_lab.theory import risk

NOISE_VAR, TRIALS = 0.5, 2000
SIZES = pytest.mark.parametrize(("n", "d"), [(40, 16), (10, 16)])


@functools.cache
def spectra(n, d):  # [trials, d], [trials, d, d]
    X = np.random.default_rng(0).standard_normal((TRIALS, n, d))
    h, vectors = np.linalg.eigh(X.transpose(0, 2, 1) @ X / n)
    return np.maximum(h, 0), vectors


def spectral_risks(n, d, w, rules):
    """The risk of each spectral rule h ↦ g(h) for this one w, per X: [rules, trials]."""
    h, vectors = spectra(n, d)
    shares = np.einsum("tdk,d->tk", vectors, w) ** 2
    filters = np.stack([rule(h) for rule in rules])
    bias = ((1 - h * filters) ** 2 * shares).sum(-1)
    return bias + NOISE_VAR / n * (h * filters**2).sum(-1)


def ridge(n, d, factor=1.0):
    return lambda h: 1 / (h + factor * NOISE_VAR * d / n)


def descent(steps, step_size=0.2):
    return lambda h: step_size * ((1 - step_size * h)[..., None] ** np.arange(steps)).sum(-1)


def signal(d, sparsity):
    """Flat, unit length; the rest is zero."""
    return (np.arange(d) < sparsity) / np.sqrt(sparsity)


def mean_and_error(samples):
    return samples.mean(), samples.std(ddof=1) / np.sqrt(samples.size)


@SIZES
@pytest.mark.parametrize("sparsity", [1, 16])
def test_ridge_attains_the_bound_for_sparse_and_dense_weights(n, d, sparsity):
    bound = risk.rotation_invariant_bound(n, d, NOISE_VAR)
    mean, error = mean_and_error(spectral_risks(n, d, signal(d, sparsity), [ridge(n, d)]))
    assert abs(mean - bound) < 4 * error


@SIZES
@pytest.mark.parametrize("sparsity", [1, 16])
def test_control_ridge_at_another_penalty_does_not_attain_it(n, d, sparsity):
    bound = risk.rotation_invariant_bound(n, d, NOISE_VAR)
    rules = [ridge(n, d, factor=4.0)]
    mean, error = mean_and_error(spectral_risks(n, d, signal(d, sparsity), rules))
    assert mean - bound > 4 * error


@SIZES
def test_every_spectral_rule_stays_above(n, d):
    steps = [descent(t) for t in (1, 5, 20, 100)]
    rules = [ridge(n, d), *steps, lambda h: np.where(h > 1e-9, 1 / np.maximum(h, 1e-9), 0)]
    rules.append(lambda h: np.full_like(h, n / (n + d + 1 + NOISE_VAR * d)))  # best single layer
    best, *rivals = spectral_risks(n, d, signal(d, 1), rules)
    for rival in rivals:
        mean, error = mean_and_error(rival - best)
        assert mean > 4 * error
        mean, error = mean_and_error(rival)
        assert mean + 4 * error > risk.rotation_invariant_bound(n, d, NOISE_VAR)


def preprocessed_risk(n, d, w, steps=10):
    """v ← v + η r² ∘ Xᵀ(y - Xv)/n, r = Xᵀy/n, one over the largest curvature as η: not spectral."""
    rng, losses = np.random.default_rng(1), []
    for _ in range(300):
        X = rng.standard_normal((n, d))
        y = X @ w + np.sqrt(NOISE_VAR) * rng.standard_normal(n)
        r, H, v = X.T @ y / n, X.T @ X / n, np.zeros(d)
        step_size = 1 / np.linalg.eigvalsh(r[:, None] * H * r)[-1]
        for _ in range(steps):
            v = v + step_size * r**2 * (r - H @ v)
        losses.append(((v - w) ** 2).sum())
    return mean_and_error(np.array(losses))


def test_control_a_rule_that_knows_coordinates_falls_below_on_sparse_weights_only():
    """Coordinatewise preprocessing breaks the hypothesis, and the bound with it."""
    n, d = 40, 16
    bound = risk.rotation_invariant_bound(n, d, NOISE_VAR)
    mean, error = preprocessed_risk(n, d, signal(d, 2))
    assert mean + 4 * error < bound
    mean, error = preprocessed_risk(n, d, signal(d, d))
    assert mean - 4 * error > bound
