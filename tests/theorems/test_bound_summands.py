"""Every term of the trajectory bound is twice the least KL of a Gaussian prior, and not negative.

Papers: A2, Theorem 2. docs/theory, "The trajectory bound".
"""

import numpy as np
import scipy.optimize

from draws import jit_numpy, seeds
from lsa_lab.theory import generalization

B, L, E = 6, 3, 3
summands = jit_numpy(generalization.summands, static_argnames="centred")


def draw(seed):
    """Updates [B, L, e, e] of any size and a covariance [e², e²]."""
    rng = np.random.default_rng(seed)
    updates = rng.normal(size=(B, L, E, E)) * 10 ** rng.uniform(-2, 1)
    root = rng.normal(size=(E * E, E * E))
    return updates, root @ root.T + 0.1 * np.eye(E * E)


def mean_kl(log_variance, updates, covariance):
    """½ (tr P⁻¹C + mᵀP⁻¹m - D + log det P/det C) with m = -G and P = σ²I, from the matrices."""
    means, prior = -updates.reshape(B, -1), np.exp(log_variance) * np.eye(len(covariance))
    spread = np.einsum("bi,bi->b", means, np.linalg.solve(prior, means.T).T).mean()
    log_dets = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(covariance)[1]
    inside = np.trace(np.linalg.solve(prior, covariance))
    return (inside + spread - len(covariance) + log_dets) / 2


@seeds
def test_a_summand_is_twice_the_least_kl_of_an_isotropic_prior(seed):
    updates, covariance = draw(seed)
    terms, mean_squares = summands(updates, covariance), (updates**2).sum((2, 3)).mean(0)
    variances = (mean_squares + np.trace(covariance)) / E**2
    assert (terms >= 0).all()
    for t in range(L):
        search = scipy.optimize.minimize_scalar(mean_kl, args=(updates[:, t], covariance))
        np.testing.assert_allclose(terms[t], 2 * search.fun, rtol=1e-10, atol=1e-10)
        best = np.log(variances[t])  # a minimum is flat: its place is found to half the digits
        np.testing.assert_allclose(best, search.x, atol=1e-6)
        np.testing.assert_allclose(mean_kl(best, updates[:, t], covariance), search.fun, atol=1e-10)


@seeds
def test_isotropic_noise_has_a_closed_form_below_its_linearisation(seed):
    updates, _ = draw(seed)
    noise_var, entries = np.random.default_rng(seed).uniform(0.01, 3), E**2
    mean_square = (updates**2).sum((2, 3)).mean(0)
    closed = entries * np.log1p(mean_square / (entries * noise_var))
    for noise_cov in (noise_var, noise_var * np.eye(entries)):
        np.testing.assert_allclose(summands(updates, noise_cov), closed, rtol=1e-10, atol=1e-10)
    assert (closed <= mean_square / noise_var).all()


@seeds
def test_over_isotropic_noise_the_least_bound_is_zero(seed):
    """So without that noise in the model no bound follows from the theorem: any gap is larger."""
    updates, levels = draw(seed)[0], np.geomspace(1e-3, 1e6, 10)
    terms = np.array([summands(updates, c).sum() for c in levels])
    assert (np.diff(terms) < 0).all()
    assert terms[-1] <= (updates**2).sum((1, 2, 3)).mean() / levels[-1]


@seeds
def test_noise_read_as_spread_is_no_larger_than_the_updates_and_the_mean_makes_summands_level(seed):
    updates, _ = draw(seed)
    trace = updates.var(0, ddof=1).sum((1, 2))
    covariance = trace[:, None, None] / E**2 * np.eye(E**2)  # [L, e², e²]
    assert ((B - 1) * trace <= (updates**2).sum((0, 2, 3)) * (1 + 1e-12)).all()
    centred = summands(updates, covariance, centred=True)
    np.testing.assert_allclose(centred, E**2 * np.log(2), rtol=1e-10)


def test_control_leaving_the_noise_out_misses_the_least_kl():
    updates, covariance = draw(0)
    without_noise = E**2 * np.log((updates[:, 0] ** 2).sum() / B / E**2)
    terms = summands(updates, covariance)
    assert abs(without_noise - np.linalg.slogdet(covariance)[1] - terms[0]) > 1
