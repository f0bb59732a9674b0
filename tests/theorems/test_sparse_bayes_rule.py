"""The Bayes rule for sparse weights averages over supports, by their marginal likelihoods; no rule
beats it on any prompt: each pays its distance from the posterior mean.

docs/theory, "The sparse Bayes rule", "Spikes and slabs", "The order of estimators".
"""

import itertools

import numpy as np
import pytest

from draws import jit_numpy, relative_error, seed_and
from lsa_lab.estimators import ridge, sparse_posterior_mean
from lsa_lab.prompts import Prompt

VARIANCES = {"signal_var": (0.3, 3.0), "noise_var": (0.05, 1.0)}
exactly_sparse, fit_ridge = jit_numpy(sparse_posterior_mean, static_argnums=1), jit_numpy(ridge)


def draw(seed, n, d, orthogonal=False):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x = n**0.5 * np.linalg.qr(x)[0] if orthogonal else x
    return Prompt(x, x @ rng.normal(size=d) + rng.normal(size=n), np.zeros(d), np.zeros(()))


def posterior(prompt, counts, signal_var, noise_var, inclusion=0.5):
    """p_S [S], E(w | S, y) [S, d] and Cov(w | S, y) [S, d, d] of supports of some sizes; each
    coordinate is in S by ``inclusion``."""
    (n, d), log_weights, moments = prompt.x.shape, [], []
    for support in (list(s) for k in counts for s in itertools.combinations(range(d), k)):
        prior = signal_var * np.diag(np.isin(np.arange(d), support))
        covariance, moved = prompt.x @ prior @ prompt.x.T + noise_var * np.eye(n), prompt.x @ prior
        pulled = np.linalg.solve(covariance, np.c_[prompt.y, moved])
        likelihood = -(prompt.y @ pulled[:, 0] + np.linalg.slogdet(covariance)[1]) / 2
        log_weights.append(likelihood + len(support) * np.log(inclusion / (1 - inclusion)))
        moments.append((moved.T @ pulled[:, 0], prior - moved.T @ pulled[:, 1:]))
    shares = np.exp(np.array(log_weights) - max(log_weights))
    return shares / shares.sum(), *map(np.array, zip(*moments, strict=True))


def spike_and_slab(prompt, inclusion, signal_var, noise_var):
    """With v = σ²/n and z = Xᵀy/n, w_j = p_j τ²/(τ² + v) z_j, p_j the probability that z_j is
    N(0, τ² + v) rather than N(0, v)."""
    z, v = prompt.x.T @ prompt.y / len(prompt.y), noise_var / len(prompt.y)
    shrinkage = signal_var / (signal_var + v)
    log_odds = np.log(inclusion / (1 - inclusion)) - np.log1p(signal_var / v) / 2
    return shrinkage * z / (1 + np.exp(-log_odds - shrinkage * z**2 / (2 * v)))


@pytest.mark.parametrize(("n", "d", "sparsity"), [(8, 3, 1), (4, 5, 3)])
@seed_and(**VARIANCES)
def test_the_rule_is_that_average_and_none_beats_it(n, d, sparsity, seed, **variances):
    prompt, rng = draw(seed, n, d), np.random.default_rng(seed)
    shares, means, covariances = posterior(prompt, [sparsity], **variances)
    best, dense = (exactly_sparse(prompt, k, *variances.values()) for k in (sparsity, d))
    np.testing.assert_allclose(best, shares @ means, atol=1e-10)
    by_ridge = fit_ridge(prompt, variances["noise_var"] / (n * variances["signal_var"]))
    np.testing.assert_allclose(dense, by_ridge, atol=1e-10)
    rules = np.array(
        [best, dense, np.linalg.lstsq(prompt.x, prompt.y)[0], *rng.normal(size=(9, d))]
    )
    metric = rng.normal(size=(d, d))
    metric = metric @ metric.T
    risks = [
        shares @ np.einsum("sd,de,se->s", rule - means, metric, rule - means) for rule in rules
    ] + shares @ np.einsum("sde,de->s", covariances, metric)
    distances = np.einsum("rd,de,re->r", rules - best, metric, rules - best)
    assert relative_error(risks - risks[0], distances) < 1e-10
    assert risks[0] < risks[1]  # Control: the Bayes rule of another sparsity is beaten


@seed_and(inclusion=(0.05, 0.95), **VARIANCES)
def test_spikes_and_slabs_on_an_orthogonal_design_need_no_average(seed, inclusion, **variances):
    prompt = draw(seed, 9, 6, orthogonal=True)
    shares, means, _ = posterior(prompt, range(7), **variances, inclusion=inclusion)
    found = spike_and_slab(prompt, inclusion, **variances)
    np.testing.assert_allclose(found, shares @ means, atol=1e-10)


def test_control_another_sparsity_or_a_design_with_correlations_breaks_it():
    prompt = draw(0, 4, 5)
    shares, means, _ = posterior(prompt, [2], 1.0, 0.3)
    assert np.max(np.abs(exactly_sparse(prompt, 3, 1.0, 0.3) - shares @ means)) > 1e-2
    shares, means, _ = posterior(prompt, range(6), 1.0, 0.3, inclusion=0.3)
    assert np.max(np.abs(spike_and_slab(prompt, 0.3, 1.0, 0.3) - shares @ means)) > 1e-2
