"""A2's bound, and the constants of the whitened gap bound, by hand and by trying."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.theory import generalization, matching

B, L, E = 40, 3, 2
D = E * E


def updates(seed=0, mean=1.0):
    return mean + np.random.default_rng(seed).normal(size=(B, L, E, E))


def covariance(seed=1):
    root = np.random.default_rng(seed).normal(size=(D, D))
    return root @ root.T + np.eye(D)


def test_the_bound_is_the_root_of_the_mean_of_its_summands():
    found = generalization.summands(updates()[0], covariance())
    bound = generalization.trajectory_bound(updates()[0], covariance(), 0.5, 20)
    np.testing.assert_allclose(bound, np.sqrt(0.25 / 20 * found.sum()))


def test_centring_lowers_the_bound_where_updates_have_a_mean():
    plain = generalization.trajectory_bound(updates(), 0.1, 1.0, 20)
    assert generalization.trajectory_bound(updates(), 0.1, 1.0, 20, centred=True) < plain
    few = updates()[:3]
    expected = D * np.log1p(few.var(0, ddof=1).sum((1, 2)) / (D * 0.1))
    np.testing.assert_allclose(generalization.summands(few, 0.1, centred=True), expected)


def test_a_run_that_diverged_has_no_bound_and_no_update_the_bound_zero():
    broken = updates()[0]
    broken[0, 0, 0] = np.nan
    assert np.isnan(generalization.trajectory_bound(broken, 0.1, 1.0, 20))
    assert generalization.trajectory_bound(np.zeros_like(broken), 0.1, 1.0, 20) == 0


def test_a_measured_gap_clips_the_losses():
    population, demonstrations = jnp.array([0.5, 9.0, 1.0]), jnp.array([-1.0, 0.5])
    found = generalization.measured_gap(population, demonstrations, 0.0, 2.0)
    np.testing.assert_allclose(found.population, 3.5 / 3)
    np.testing.assert_allclose(found.empirical, 0.25)
    np.testing.assert_allclose(found.gap, 3.5 / 3 - 0.25)
    assert found.subgaussian == 1.0


def test_no_quadratic_statistic_spreads_further_than_the_moment_spread_in_any_units():
    signs = jnp.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    np.testing.assert_allclose(matching.moment_spread(signs), 2**0.5, rtol=1e-12)
    rng = np.random.default_rng(0)
    x = rng.standard_t(5, size=(400, 3)) @ rng.normal(size=(3, 3))
    spread = float(matching.moment_spread(jnp.array(x)))
    root = np.linalg.cholesky(np.linalg.inv(x.T @ x / len(x)))
    matrices = rng.normal(size=(2000, 3, 3))
    matrices = matrices + matrices.swapaxes(1, 2)
    matrices /= np.linalg.norm(matrices, axis=(1, 2), keepdims=True)
    z = x @ root
    tried = np.einsum("ni,bij,nj->bn", z, matrices, z).std(1)
    assert 0.9 * spread < tried.max() <= spread * (1 + 1e-12)
    x = np.array(list(itertools.product((-2.0, 2.0), (-1.0, 1.0))))  # H has eigenvalues 4 and 1
    for size, bounded in ((0.25, True), (0.26, False)):  # of the steepest direction
        gap = jax.jit(matching.descent_gap)(x, x @ np.array([1.0, -1.0]), np.full(2, size), 0.0)
        assert np.isfinite(gap).all() == bounded
