"""Every term of the trajectory bound is twice the least KL of a Gaussian prior, and not negative.

Papers: A2, Theorem 2. docs/theory, "The trajectory bound".
"""

import numpy as np
import scipy.optimize

from draws import jit_numpy, seeds
from lsa_lab.theory import generalization

B, L, E = 6, 3, 3
summands = jit_numpy(generalization.summands, static_argnames="centred")


def mean_kl(log_variance, updates, covariance):
    """½ (tr P⁻¹C + mᵀP⁻¹m - D + log det P/det C) with m = -G and P = σ²I, from the matrices."""
    means, prior = -updates.reshape(B, -1), np.exp(log_variance) * np.eye(len(covariance))
    spread = np.einsum("bi,bi->b", means, np.linalg.solve(prior, means.T).T).mean()
    log_dets = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(covariance)[1]
    inside = np.trace(np.linalg.solve(prior, covariance))
    return (inside + spread - len(covariance) + log_dets) / 2


@seeds
def test_a_summand_is_twice_the_least_kl_of_an_isotropic_prior(seed):
    rng = np.random.default_rng(seed)
    updates = rng.normal(size=(B, L, E, E)) * 10 ** rng.uniform(-2, 1)  # of any size
    root = rng.normal(size=(E * E, E * E))
    covariance = root @ root.T + 0.1 * np.eye(E * E)
    terms, mean_squares = summands(updates, covariance), (updates**2).sum((2, 3)).mean(0)
    variances = (mean_squares + np.trace(covariance)) / E**2
    assert (terms >= 0).all()
    for t in range(L):
        search = scipy.optimize.minimize_scalar(mean_kl, args=(updates[:, t], covariance))
        np.testing.assert_allclose(terms[t], 2 * search.fun, rtol=1e-10, atol=1e-10)
        best = np.log(variances[t])  # a minimum is flat: its place is found to half the digits
        np.testing.assert_allclose(best, search.x, atol=1e-6)
        np.testing.assert_allclose(mean_kl(best, updates[:, t], covariance), search.fun, atol=1e-10)
    if seed == 0:  # Control: without the noise
        without_noise = E**2 * np.log(mean_squares[0] / E**2)
        assert abs(without_noise - np.linalg.slogdet(covariance)[1] - terms[0]) > 1


@seeds
def test_isotropic_noise_has_a_closed_form_below_its_linearisation_and_no_least_bound(seed):
    """Without that noise in the model no bound follows from the theorem: any gap is larger.

    Noise that is read as spread is no larger than the updates, and the mean makes summands level.
    """
    rng, entries = np.random.default_rng(seed), E**2
    updates = rng.normal(size=(B, L, E, E)) * 10 ** rng.uniform(-2, 1)
    noise_var, mean_square = rng.uniform(0.01, 3), (updates**2).sum((2, 3)).mean(0)
    closed = entries * np.log1p(mean_square / (entries * noise_var))
    for noise_cov in (noise_var, noise_var * np.eye(entries)):
        np.testing.assert_allclose(summands(updates, noise_cov), closed, rtol=1e-10, atol=1e-10)
    assert (closed <= mean_square / noise_var).all()
    levels = np.geomspace(1e-3, 1e6, 10)
    terms = np.array([summands(updates, level).sum() for level in levels])
    assert (np.diff(terms) < 0).all()
    assert terms[-1] <= mean_square.sum() / levels[-1]
    trace = updates.var(0, ddof=1).sum((1, 2))
    assert ((B - 1) * trace <= B * mean_square * (1 + 1e-12)).all()
    covariance = trace[:, None, None] / entries * np.eye(entries)  # [L, e², e²]
    centred = summands(updates, covariance, centred=True)
    np.testing.assert_allclose(centred, entries * np.log(2), rtol=1e-10)
