"""A2's bound, and the constants of the whitened gap bound, by hand and by trying."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.theory import generalization, matching

B, L, E = 40, 3, 2
D = E * E
UPDATES = 1 + np.random.default_rng(0).normal(size=(B, L, E, E))


def test_the_bound_is_the_root_of_the_mean_of_its_summands_and_centring_lowers_it():
    root = np.random.default_rng(1).normal(size=(D, D))
    covariance = root @ root.T + np.eye(D)
    found = generalization.summands(UPDATES[0], covariance)
    bound = generalization.trajectory_bound(UPDATES[0], covariance, 0.5, 20)
    np.testing.assert_allclose(bound, np.sqrt(0.25 / 20 * found.sum()))
    plain = generalization.trajectory_bound(UPDATES, 0.1, 1.0, 20)
    assert generalization.trajectory_bound(UPDATES, 0.1, 1.0, 20, centred=True) < plain
    few = UPDATES[:3]
    expected = D * np.log1p(few.var(0, ddof=1).sum((1, 2)) / (D * 0.1))
    np.testing.assert_allclose(generalization.summands(few, 0.1, centred=True), expected)


def test_a_run_that_diverged_has_no_bound_and_no_update_the_bound_zero():
    broken = UPDATES[0].copy()
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


def test_the_moment_spread_is_that_of_the_widest_quadratic_statistic_in_any_units():
    signs = jnp.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    np.testing.assert_allclose(matching.moment_spread(signs), 2**0.5, rtol=1e-12)
    rng = np.random.default_rng(0)
    x = rng.standard_t(5, size=(400, 3)) @ rng.normal(size=(3, 3))
    z = x @ np.linalg.cholesky(np.linalg.inv(x.T @ x / len(x)))
    squares = np.einsum("ni,nj->nij", z, z).reshape(len(x), -1)
    widest = np.linalg.norm(squares - squares.mean(0), 2) / len(x) ** 0.5
    np.testing.assert_allclose(matching.moment_spread(jnp.array(x)), widest, rtol=1e-10)


def test_the_gap_of_descent_is_finite_up_to_the_largest_step():
    x = np.array(list(itertools.product((-2.0, 2.0), (-1.0, 1.0))))  # H has eigenvalues 4 and 1
    for size, bounded in ((0.25, True), (0.26, False)):  # of the steepest direction
        gap = jax.jit(matching.descent_gap)(x, x @ np.array([1.0, -1.0]), np.full(2, size), 0.0)
        assert np.isfinite(gap).all() == bounded
