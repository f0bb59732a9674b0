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
from draws import jit_numpy
from lsa_lab.theory import training_dynamics
from lsa_lab.theory.plateaus import plateaus as plateau_losses

D, N = 3, 5


def draw(seed):
    rng = np.random.default_rng(seed)
    return *draws.draw_eigensystem(rng, D, 0.3, 2.0), rng.normal(size=D + 1)


def optimal_steps(eigenvalues, noise_var):
    return N / ((N + 1) * eigenvalues + eigenvalues.sum() + noise_var)


vector_field = jit_numpy(training_dynamics.vector_field, static_argnums=3)
TIMES = np.linspace(0, 1, 10)


def departure_from_modes(seed, noise_var, rotated):
    """U_i' = u λ_i² (1 - γ_i u U_i), u' = Σ λ_i² U_i (1 - γ_i u U_i), nothing off the diagonal."""
    eigenvalues, basis, (u, *modes) = draw(seed)
    basis = basis if rotated else np.eye(D)
    covariance, U = basis * eigenvalues @ basis.T, np.diag(modes)
    flow = vector_field(u, U, covariance, N, noise_var)
    path = population.train_flow(TIMES, covariance, N, u, U, noise_var)
    unlearnt = 1 - u * np.array(modes) / optimal_steps(eigenvalues, noise_var)
    differences = [
        flow.u - (eigenvalues**2 * modes * unlearnt).sum(),
        flow.U - np.diag(u * eigenvalues**2 * unlearnt),
        path.U[-1] - np.diag(np.diag(path.U[-1])),
    ]
    return [np.abs(difference).max() for difference in differences]


def heads_loss(value, key, query, covariance, noise_var):
    """The loss with A = Σ_h v_h k_h q_hᵀ."""
    A = jnp.einsum("h,hd,he->de", value, key, query)
    return population.one_layer_loss(A, covariance, N, noise_var)


SUBSETS = np.array(list(itertools.product([0.0, 1.0], repeat=D)))  # [2^d, d]


@jit_numpy
def saddles(eigenvalues, basis, noise_var):
    """Losses and slopes where the heads of a subset of the eigenvalues, the largest first, are at
    their optimum, and what one more head of size .01 on an eigenvector that is left adds, twice."""
    order = jnp.argsort(-eigenvalues)
    eigenvalues, basis = eigenvalues[order], basis[:, order]
    covariance = basis * eigenvalues[None] @ basis.T
    gammas = 1 / optimal_steps(eigenvalues, noise_var)
    losses_at = partial(heads_loss, covariance=covariance, noise_var=noise_var)

    def heads(sizes):
        return sizes, sizes[:, None] * basis.T, sizes[:, None] * basis.T

    def at(subset):
        loss, slopes = jax.value_and_grad(losses_at, (0, 1, 2))(*heads(subset / jnp.cbrt(gammas)))
        left, m = jnp.argmin(subset), 0.01
        more = losses_at(*heads((subset / jnp.cbrt(gammas)).at[left].set(m))) - loss
        alone = eigenvalues[left] ** 2 * (gammas[left] * m**6 / 2 - m**3)
        return loss, jnp.max(jnp.stack([jnp.max(jnp.abs(s)) for s in slopes])), more, alone

    closed = (jnp.sum(eigenvalues) - SUBSETS @ (eigenvalues**2 / gammas)) / 2
    plateaus = plateau_losses(eigenvalues, N, noise_var)
    return jax.vmap(at)(jnp.asarray(SUBSETS)), closed, plateaus


@draws.seed_and(noise_var=(0.0, 2.0))
def test_diagonal_weights_train_mode_by_mode(seed, noise_var):
    assert max(departure_from_modes(seed, noise_var, rotated=False)) < 1e-10


@draws.seed_and(noise_var=(0.0, 2.0))
def test_every_subset_is_critical_and_all_but_the_whole_one_are_saddles(seed, noise_var):
    (losses, slopes, more, alone), closed, plateaus = saddles(*draw(seed)[:2], noise_var)
    np.testing.assert_allclose(losses, closed, atol=1e-10)
    assert slopes.max() < 1e-10
    first = SUBSETS.cumprod(1) == SUBSETS  # the first k and no other
    np.testing.assert_allclose(plateaus[::-1], np.sort(losses[first.all(1)]), atol=1e-10)
    whole = SUBSETS.all(1)
    assert (more[~whole] < 0).all()  # a direction of descent
    np.testing.assert_allclose(more[~whole], alone[~whole], atol=1e-13)


def test_control_rotated_covariates_or_another_order_of_learning_break_it():
    assert min(departure_from_modes(0, 0.5, rotated=True)) > 1e-2
    (losses, *_), _, plateaus = saddles(*draw(0)[:2], 0.5)
    last = SUBSETS[:, ::-1].cumprod(1) == SUBSETS[:, ::-1]  # the smallest eigenvalues first
    assert np.abs(np.sort(losses[last.all(1)])[1:-1] - plateaus[::-1][1:-1]).min() > 1e-2
