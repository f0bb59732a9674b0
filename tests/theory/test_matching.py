"""The constants of the whitened gap bound, by hand and by trying."""

import itertools

import jax.numpy as jnp
import numpy as np

from lsa_lab.theory import matching


def test_all_sign_vectors_have_a_moment_spread_of_root_two():
    """zᵀBz has no variance along the diagonal, and that of √2 z_i z_j beside it."""
    signs = jnp.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    np.testing.assert_allclose(matching.moment_spread(signs), 2**0.5, rtol=1e-12)


def test_no_quadratic_statistic_spreads_further_in_any_units():
    rng = np.random.default_rng(0)
    x = rng.standard_t(5, size=(400, 3)) @ rng.normal(size=(3, 3))
    spread = float(matching.moment_spread(jnp.array(x)))
    root = np.linalg.cholesky(np.linalg.inv(x.T @ x / len(x)))
    matrices = rng.normal(size=(2000, 3, 3))
    matrices = matrices + matrices.swapaxes(1, 2)
    matrices /= np.linalg.norm(matrices, axis=(1, 2), keepdims=True)
    z = x @ root
    tried = np.einsum("ni,bij,nj->bn", z, matrices, z).std(1)
    assert tried.max() <= spread * (1 + 1e-12)
    assert tried.max() > 0.9 * spread


def test_steps_too_long_for_the_steepest_direction_have_no_bound():
    x = jnp.array(list(itertools.product((-2.0, 2.0), (-1.0, 1.0))))  # H has eigenvalues 4 and 1
    y = x @ jnp.array([1.0, -1.0])
    for size, bounded in ((0.25, True), (0.26, False)):
        gap = matching.descent_gap(x, y, jnp.full(2, size), jnp.array(0.0))
        assert bool(jnp.isfinite(gap).all()) == bounded
