"""The vector field of the training dynamics is minus the gradient of the population loss; diagonal
weights train mode by mode, and the plateaus are the losses at the saddles.

The flow is that of Zhang et al. 2306.09927; modes and plateaus are derived from it (agrees in
outline with 2501.16265). docs/theory, "The training flow", "Modes", "Plateaus".
"""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import population
from draws import draw_covariance, draw_eigensystem, jit_numpy, seed_and
from lsa_lab.models import linear_attention
from lsa_lab.theory import plateaus, training_dynamics

D, N = 3, 5
SUBSETS = np.array(list(itertools.product([0.0, 1.0], repeat=D)))  # [2^d, d]
loss = jit_numpy(training_dynamics.loss, static_argnums=3)
vector_field = jit_numpy(training_dynamics.vector_field, static_argnums=3)
plateaus_of = jit_numpy(partial(plateaus.plateaus, n=N))


def draw(seed):
    rng = np.random.default_rng(seed)
    return *draw_eigensystem(rng, D, 0.3, 2.0), rng.normal(size=D + 1)


def optimal_steps(eigenvalues, noise_var):
    return N / ((N + 1) * eigenvalues + eigenvalues.sum() + noise_var)


def errors_of_modes(seed, noise_var, rotated):
    """U_i' = u λ_i² (1 - γ_i u U_i), u' = Σ λ_i² U_i (1 - γ_i u U_i), 0 off the diagonal."""
    eigenvalues, basis, (u, *modes) = draw(seed)
    basis, U = basis if rotated else np.eye(D), np.diag(modes)
    flow = vector_field(u, U, basis * eigenvalues @ basis.T, N, noise_var)
    rates = eigenvalues**2 * (1 - u * np.array(modes) / optimal_steps(eigenvalues, noise_var))
    return abs(flow.u - rates @ modes), np.abs(flow.U - np.diag(u * rates)).max()


@jit_numpy
def saddles(eigenvalues, basis, noise_var):
    """Losses and slopes where the heads of a subset of the eigenvalues, the largest first, are at
    their optimum, and what one more head of size .01 on an eigenvector that is left adds, twice."""
    order = jnp.argsort(-eigenvalues)
    eigenvalues, basis = eigenvalues[order], basis[:, order]
    covariance = basis * eigenvalues[None] @ basis.T
    gammas = 1 / optimal_steps(eigenvalues, noise_var)

    def loss(value, key, query):
        A = jnp.einsum("h,hd,he->de", value, key, query)
        return population.one_layer_loss(A, covariance, N, noise_var)

    def aligned(sizes):
        return sizes, sizes[:, None] * basis.T, sizes[:, None] * basis.T

    def at(subset):
        value, slopes = jax.value_and_grad(loss, (0, 1, 2))(*aligned(subset / jnp.cbrt(gammas)))
        left, m = jnp.argmin(subset), 0.01
        more = loss(*aligned((subset / jnp.cbrt(gammas)).at[left].set(m))) - value
        alone = eigenvalues[left] ** 2 * (gammas[left] * m**6 / 2 - m**3)
        return value, jnp.max(jnp.stack([jnp.max(jnp.abs(s)) for s in slopes])), more, alone

    closed = (jnp.sum(eigenvalues) - SUBSETS @ (eigenvalues**2 / gammas)) / 2
    return jax.vmap(at)(jnp.asarray(SUBSETS)), closed


@seed_and(noise_var=(0.0, 2.0))
def test_diagonal_weights_train_mode_by_mode_and_every_subset_is_critical(seed, noise_var):
    """All subsets but the whole one are saddles."""
    assert max(errors_of_modes(seed, noise_var, rotated=False)) < 1e-10
    eigenvalues, basis, _ = draw(seed)
    (losses, slopes, more, alone), closed = saddles(eigenvalues, basis, noise_var)
    np.testing.assert_allclose(losses, closed, atol=1e-10)
    assert slopes.max() < 1e-10
    first = (SUBSETS.cumprod(1) == SUBSETS).all(1)  # the first k and no other
    stated = plateaus_of(eigenvalues, noise_var=noise_var)[::-1]
    np.testing.assert_allclose(stated, np.sort(losses[first]), atol=1e-10)
    part = ~SUBSETS.all(1)
    assert (more[part] < 0).all()  # a direction of descent
    np.testing.assert_allclose(more[part], alone[part], atol=1e-13)


def test_control_rotated_covariates_or_another_order_of_learning_break_it():
    assert min(errors_of_modes(0, 0.5, rotated=True)) > 1e-2
    (losses, *_), _ = saddles(*draw(0)[:2], 0.5)
    last = (SUBSETS[:, ::-1].cumprod(1) == SUBSETS[:, ::-1]).all(1)  # smallest eigenvalues first
    stated = plateaus_of(draw(0)[0], noise_var=0.5)[::-1]
    assert np.abs(np.sort(losses[last])[1:-1] - stated[1:-1]).min() > 1e-2


@jit_numpy
@jax.value_and_grad
def population_loss(params, covariance, noise_var):
    """The loss of two demonstrations of two covariates, all entries of the weights free.

    An exact sum: three nodes for a coordinate of x (degree 4), two for w and the noise (degree 3).
    """
    n = d = 2
    nodes, mass = population.gauss_hermite([3] * (n + 1) * d + [2] * (d + n))
    root = jnp.linalg.cholesky(covariance)

    def squared_error(z):
        x, w, noise = jnp.split(z, [(n + 1) * d, (n + 2) * d])
        x = x.reshape(n + 1, d) @ root.T
        y = x[:-1] @ w + jnp.sqrt(noise_var) * noise
        slot = -population.predict(params, x[:-1], y, x[-1], keys="all")
        return (slot - x[-1] @ w) ** 2  # the paper reads the slot with a plus sign

    return jnp.asarray(mass) @ jax.vmap(squared_error)(jnp.asarray(nodes)) / 2


def errors_of_field(seed, noise_var, factor=1.0, stated_noise_var=None, other_entries=0.0):
    rng = np.random.default_rng(seed)
    covariance, u, U = draw_covariance(rng, 2, 0.3, 2.0), rng.normal(), rng.normal(size=(2, 2))
    w_kq, w_pv, flow_kq, flow_pv = np.zeros((4, 3, 3))
    w_kq[2, :2], w_pv[2, :2] = other_entries * rng.normal(size=(2, 2))
    w_kq[:2, :2], w_pv[2, 2] = U, u
    params = linear_attention.Params(w_kq[None, None], w_pv[None, None])
    value, slope = population_loss(params, covariance, noise_var)
    task = u, U, covariance, 2, noise_var if stated_noise_var is None else stated_noise_var
    flow_pv[2, 2], flow_kq[:2, :2] = vector_field(*task)
    differences = value - loss(*task), factor * slope.w_kq + flow_kq, factor * slope.w_pv + flow_pv
    return [np.abs(difference).max() for difference in differences]


@seed_and(noise_var=(0.0, 2.0))
def test_the_vector_field_is_minus_the_gradient_and_other_entries_stay_zero(seed, noise_var):
    assert max(errors_of_field(seed, noise_var)) < 1e-10


def test_control_a_forgotten_noise_or_factor_or_an_entry_off_zero_breaks_it():
    assert min(errors_of_field(0, 0.5, stated_noise_var=0.0)) > 1e-2
    assert min(errors_of_field(0, 0.5, factor=2.0)[1:]) > 1e-2
    assert min(errors_of_field(0, 0.5, other_entries=0.5)) > 1e-2
