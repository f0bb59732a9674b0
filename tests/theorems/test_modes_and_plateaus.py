"""Diagonal weights train mode by mode, and the plateaus are the losses at the saddles.

Derived from the flow of Zhang et al. 2306.09927 (agrees in outline with 2501.16265); docs/theory,
"Modes", "Plateaus". Sides: the vector field and its solution, and losses of separate heads by
moments; equations written out mode by mode, and the closed form of the plateaus.
"""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import draws
import population
from lsa_lab.theory import training_dynamics

D, N = 4, 6


def draw(seed, d):
    key_spectrum, key_weights = jax.random.split(jax.random.key(seed))
    return *draws.eigensystem(key_spectrum, d, 0.3, 2.0), jax.random.normal(key_weights, (d + 1,))


def optimal_steps(eigenvalues, n, noise_var):
    return n / ((n + 1) * eigenvalues + jnp.sum(eigenvalues) + noise_var)


@partial(jax.jit, static_argnames=("d", "n"))
def departure_from_modes(seed, d, n, noise_var, rotated):
    """U_i' = u λ_i² (1 - γ_i u U_i), u' = Σ λ_i² U_i (1 - γ_i u U_i), nothing off the diagonal."""
    eigenvalues, basis, weights = draw(seed, d)
    basis = jnp.where(rotated, basis, jnp.eye(d))
    u, modes = weights[0], weights[1:]
    covariance = basis * eigenvalues[None] @ basis.T
    flow = training_dynamics.vector_field(u, jnp.diag(modes), covariance, n, noise_var)
    path = training_dynamics.solve(jnp.ones(1), covariance, n, u, jnp.diag(modes), noise_var)
    unlearnt = 1 - u * modes / optimal_steps(eigenvalues, n, noise_var)
    differences = [
        flow.u - jnp.sum(eigenvalues**2 * modes * unlearnt),
        flow.U - jnp.diag(u * eigenvalues**2 * unlearnt),
        path.U[0] - jnp.diag(jnp.diag(path.U[0])),
    ]
    return jnp.stack([jnp.max(jnp.abs(difference)) for difference in differences])


def heads_loss(value, key, query, covariance, n, noise_var):
    """The loss with A = Σ_h v_h k_h q_hᵀ."""
    A = jnp.einsum("h,hd,he->de", value, key, query)
    return population.one_layer_loss(A, covariance, n, noise_var)


SUBSETS = np.array(list(itertools.product([0.0, 1.0], repeat=D)))  # [2^d, d]


@partial(jax.jit, static_argnames="n")
def saddles(seed, n, noise_var):
    """Losses and slopes where the heads of a subset of the eigenvalues, the largest first, are at
    their optimum, and what one more head of size .01 on an eigenvector that is left adds, twice."""
    eigenvalues, basis, _ = draw(seed, D)
    order = jnp.argsort(-eigenvalues)
    eigenvalues, basis = eigenvalues[order], basis[:, order]
    covariance, gammas = (
        basis * eigenvalues[None] @ basis.T,
        1 / optimal_steps(eigenvalues, n, noise_var),
    )
    losses_at = partial(heads_loss, covariance=covariance, n=n, noise_var=noise_var)

    def heads(sizes):
        return sizes, sizes[:, None] * basis.T, sizes[:, None] * basis.T

    def at(subset):
        loss, slopes = jax.value_and_grad(losses_at, (0, 1, 2))(*heads(subset / jnp.cbrt(gammas)))
        left, m = jnp.argmin(subset), 0.01
        more = losses_at(*heads((subset / jnp.cbrt(gammas)).at[left].set(m))) - loss
        alone = eigenvalues[left] ** 2 * (gammas[left] * m**6 / 2 - m**3)
        return loss, jnp.max(jnp.stack([jnp.max(jnp.abs(s)) for s in slopes])), more, alone

    closed = (jnp.sum(eigenvalues) - SUBSETS @ (eigenvalues**2 / gammas)) / 2
    plateaus = training_dynamics.plateaus(eigenvalues, n, noise_var)
    return jax.vmap(at)(jnp.asarray(SUBSETS)), closed, plateaus


@draws.seeded(noise_var=(0.0, 2.0))
def test_diagonal_weights_train_mode_by_mode(seed, noise_var):
    assert jnp.max(departure_from_modes(seed, D, N, noise_var, rotated=False)) < 1e-10


@draws.seeded(noise_var=(0.0, 2.0))
def test_every_subset_is_critical_and_all_but_the_whole_one_are_saddles(seed, noise_var):
    (losses, slopes, more, alone), closed, plateaus = jax.device_get(saddles(seed, N, noise_var))
    np.testing.assert_allclose(losses, closed, atol=1e-10)
    assert slopes.max() < 1e-10
    first = SUBSETS.cumprod(1) == SUBSETS  # the first k and no other
    np.testing.assert_allclose(plateaus[::-1], np.sort(losses[first.all(1)]), atol=1e-10)
    whole = SUBSETS.all(1)
    assert (more[~whole] < 0).all()  # a direction of descent
    np.testing.assert_allclose(more[~whole], alone[~whole], atol=1e-13)


def test_control_rotated_covariates_or_another_order_of_learning_break_it():
    assert jnp.min(departure_from_modes(0, D, N, 0.5, rotated=True)) > 1e-2
    (losses, *_), _, plateaus = jax.device_get(saddles(0, N, 0.5))
    last = SUBSETS[:, ::-1].cumprod(1) == SUBSETS[:, ::-1]  # the smallest eigenvalues first
    assert np.abs(np.sort(losses[last.all(1)])[1:-1] - plateaus[::-1][1:-1]).min() > 1e-2
