"""The Bayes rule for sparse weights averages over supports, by their marginal likelihoods.

Given the support S the labels are N(0, τ² X_S X_Sᵀ + σ² I) and the weights on S have the mean
τ² X_Sᵀ (τ² X_S X_Sᵀ + σ² I)⁻¹ y. docs/theory, "The sparse Bayes rule", "Spikes and slabs".
"""

import itertools

import numpy as np
import pytest

from draws import jit_numpy, seed_and
from lsa_lab.estimators import ridge, sparse_posterior_mean
from lsa_lab.prompts import Prompt

VARIANCES = {"signal_var": (0.3, 3.0), "noise_var": (0.05, 1.0)}
exactly_sparse, fit_ridge = jit_numpy(sparse_posterior_mean, static_argnums=1), jit_numpy(ridge)


def draw(seed, n, d, orthogonal=False):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x = n**0.5 * np.linalg.qr(x)[0] if orthogonal else x
    return Prompt(x, x @ rng.normal(size=d) + rng.normal(size=n), np.zeros(d), np.zeros(()))


def average(prompt, counts, signal_var, noise_var, inclusion=0.5):
    """Σ_S p_S E(w | S, y) over supports of some sizes; each coordinate is in S by ``inclusion``."""
    (n, d), log_weights, means = prompt.x.shape, [], []
    for support in (s for k in counts for s in itertools.combinations(range(d), k)):
        columns, mean = prompt.x[:, list(support)], np.zeros(d)
        covariance = signal_var * columns @ columns.T + noise_var * np.eye(n)
        pulled = np.linalg.solve(covariance, prompt.y)
        likelihood = -(prompt.y @ pulled + np.linalg.slogdet(covariance)[1]) / 2
        log_odds = np.log(inclusion) - np.log1p(-inclusion)
        log_weights.append(likelihood + len(support) * log_odds)
        mean[list(support)] = signal_var * columns.T @ pulled
        means.append(mean)
    shares = np.exp(np.array(log_weights) - max(log_weights))
    return shares @ np.array(means) / shares.sum()


def spike_and_slab(prompt, inclusion, signal_var, noise_var):
    """With v = σ²/n and z = Xᵀy/n, w_j = p_j τ²/(τ² + v) z_j, p_j the probability that z_j is
    N(0, τ² + v) rather than N(0, v)."""
    z, v = prompt.x.T @ prompt.y / len(prompt.y), noise_var / len(prompt.y)
    shrinkage = signal_var / (signal_var + v)
    log_odds = np.log(inclusion) - np.log1p(-inclusion) - np.log1p(signal_var / v) / 2
    return shrinkage * z / (1 + np.exp(-log_odds - shrinkage * z**2 / (2 * v)))


@pytest.mark.parametrize(("n", "d", "sparsity"), [(12, 5, 1), (4, 6, 3), (1, 1, 1)])
@seed_and(**VARIANCES)
def test_the_rule_for_exactly_sparse_weights_is_that_average(n, d, sparsity, seed, **variances):
    prompt, numbers = draw(seed, n, d), tuple(variances.values())
    stated = average(prompt, [sparsity], **variances)
    np.testing.assert_allclose(exactly_sparse(prompt, sparsity, *numbers), stated, atol=1e-10)
    dense = fit_ridge(prompt, variances["noise_var"] / (n * variances["signal_var"]))
    np.testing.assert_allclose(exactly_sparse(prompt, d, *numbers), dense, atol=1e-10)


@seed_and(inclusion=(0.05, 0.95), **VARIANCES)
def test_spikes_and_slabs_on_an_orthogonal_design_need_no_average(seed, inclusion, **variances):
    prompt = draw(seed, 9, 6, orthogonal=True)
    stated = average(prompt, range(7), **variances, inclusion=inclusion)
    found = spike_and_slab(prompt, inclusion, **variances)
    np.testing.assert_allclose(found, stated, atol=1e-10)


def test_control_another_sparsity_or_a_design_with_correlations_breaks_it():
    prompt = draw(0, 9, 6)
    stated = average(prompt, [3], 1.0, 0.3)
    assert np.max(np.abs(exactly_sparse(prompt, 2, 1.0, 0.3) - stated)) > 1e-2
    stated = average(prompt, range(7), 1.0, 0.3, inclusion=0.3)
    assert np.max(np.abs(spike_and_slab(prompt, 0.3, 1.0, 0.3) - stated)) > 1e-2
