"""A2's bound: what it is made of, and what it refuses."""

import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.theory import generalization

B, L, E = 40, 3, 2
D = E * E


def updates(seed=0, mean=1.0):
    return jnp.asarray(mean + np.random.default_rng(seed).normal(size=(B, L, E, E)))


def covariance(seed=1):
    root = np.random.default_rng(seed).normal(size=(D, D))
    return jnp.asarray(root @ root.T + np.eye(D))


def test_the_bound_is_the_root_of_the_mean_of_its_summands():
    found = generalization.trajectory_bound(updates()[0], covariance(), 0.5, 20)
    total = generalization.summands(updates()[0], covariance()).sum()
    assert found.shape == ()
    np.testing.assert_allclose(found, np.sqrt(0.25 / 20 * total))


def test_the_paper_form_of_a_summand():
    """D log(h1/D) - h2 with h1 = |G|² + tr C and h2 = log det C, for one prompt."""
    found = generalization.summands(updates()[0], covariance())
    h1 = (updates()[0] ** 2).sum((1, 2)) + np.trace(covariance())
    h2 = np.linalg.slogdet(covariance())[1]
    np.testing.assert_allclose(found, D * np.log(h1 / D) - h2, rtol=1e-12)


def test_layers_may_have_covariances_of_their_own():
    each = jnp.stack([covariance(seed) for seed in range(L)])
    found = generalization.summands(updates(), each)
    for t in range(L):
        alone = generalization.summands(updates()[:, t : t + 1], each[t])
        np.testing.assert_allclose(found[t], alone[0])


def test_centring_helps_where_updates_have_a_mean_and_is_unbiased():
    plain = generalization.trajectory_bound(updates(), 0.1, 1.0, 20)
    assert generalization.trajectory_bound(updates(), 0.1, 1.0, 20, centred=True) < plain
    variances = [
        generalization.optimal_prior_variance(updates(seed)[:2], 1e-9, centred=True)
        for seed in range(200)
    ]
    assert abs(np.mean(variances) - 1) < 5 * np.std(variances) / np.sqrt(200 * L)
    with pytest.raises(ValueError, match="at least 2 prompts"):
        generalization.summands(updates()[0], 0.1, centred=True)


def test_a_run_that_diverged_has_no_bound():
    broken = updates()[0].at[0, 0, 0].set(jnp.nan)
    assert jnp.isnan(generalization.trajectory_bound(broken, 0.1, 1.0, 20))
    still = jnp.zeros_like(broken)
    assert generalization.trajectory_bound(still, 0.1, 1.0, 20) == 0


def test_an_estimated_covariance_keeps_the_variance_and_can_be_used():
    few = updates()[:3]
    found = generalization.noise_covariance(few, 0.2)
    assert found.shape == (L, D, D)
    flat = np.asarray(few).reshape(3, L, D)
    for t in range(L):
        sample = np.cov(flat[:, t].T)
        expected = 0.8 * sample + 0.2 * np.trace(sample) / D * np.eye(D)
        np.testing.assert_allclose(found[t], expected, atol=1e-12)
    assert generalization.trajectory_bound(few, found, 1.0, 20) > 0


@pytest.mark.parametrize(
    ("noise_cov", "words"),
    [
        (0.0, "noise_cov = 0.0"),
        (jnp.eye(D).at[0, 1].set(0.5), "not symmetric: entries differ by 5"),
        (jnp.eye(D).at[0, 0].set(-1.0), "not positive definite"),
        (jnp.zeros((D, D)), "not positive definite"),
        (jnp.full((D, D), jnp.nan), "not symmetric"),
    ],
)
def test_covariances_that_are_none_are_refused(noise_cov, words):
    with pytest.raises(ValueError, match=words):
        generalization.trajectory_bound(updates(), noise_cov, 1.0, 20)


def test_a_measured_gap_clips_both_losses():
    population, demonstrations = jnp.array([0.5, 9.0, 1.0]), jnp.array([-1.0, 0.5])
    found = generalization.measured_gap(population, demonstrations, 0.0, 2.0)
    np.testing.assert_allclose(found.population, 3.5 / 3)
    np.testing.assert_allclose(found.empirical, 0.25)
    np.testing.assert_allclose(found.gap, 3.5 / 3 - 0.25)
    assert found.subgaussian == 1.0
    with pytest.raises(ValueError, match="low < high"):
        generalization.measured_gap(population, demonstrations, 2.0, 2.0)
