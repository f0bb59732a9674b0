"""The vector field of the training dynamics is minus the gradient of the population loss.

Zhang et al. 2306.09927; docs/theory, "The training flow". Sides: automatic differentiation of the
network's population loss, all entries of its weights free, an exact Gauss-Hermite sum with three
nodes per coordinate of x (degree 4) and two per coordinate of w and of the noise (degree 3); the
closed form of the field.
"""

import jax
import jax.numpy as jnp
import numpy as np

import draws
import population
from draws import jit_numpy
from lsa_lab.models import linear_attention
from lsa_lab.theory import training_dynamics

D, N = 2, 2


def population_loss(params, covariance, noise_var):
    nodes, mass = population.gauss_hermite([3] * (N + 1) * D + [2] * (D + N))
    root = jnp.linalg.cholesky(covariance)

    def squared_error(z):
        x, w, noise = jnp.split(z, [(N + 1) * D, (N + 2) * D])
        x = x.reshape(N + 1, D) @ root.T
        y = x[:-1] @ w + jnp.sqrt(noise_var) * noise
        slot = -population.predict(params, x[:-1], y, x[-1], keys="all")
        return (slot - x[-1] @ w) ** 2  # the paper reads the slot with a plus sign

    return jnp.asarray(mass) @ jax.vmap(squared_error)(jnp.asarray(nodes)) / 2


of_network = jit_numpy(jax.value_and_grad(population_loss))
of_theory = jit_numpy(
    lambda *task: (training_dynamics.loss(*task), training_dynamics.vector_field(*task)),
    static_argnums=3,
)


def disagreement(seed, noise_var, believed_noise_var, factor, other_entries):
    rng = np.random.default_rng(seed)
    covariance = draws.draw_covariance(rng, D, 0.3, 2.0)
    u, U, others = rng.normal(), rng.normal(size=(D, D)), other_entries * rng.normal(size=(2, D))
    w_kq, w_pv, stated_kq, stated_pv = np.zeros((4, D + 1, D + 1))
    w_kq[:D, :D], w_kq[D, :D], w_pv[D, :D], w_pv[D, D] = U, *others, u
    params = linear_attention.Params(w_kq[None, None], w_pv[None, None])
    value, gradient = of_network(params, covariance, noise_var)
    loss, flow = of_theory(u, U, covariance, N, believed_noise_var)
    stated_kq[:D, :D], stated_pv[D, D] = -flow.U, -flow.u
    differences = [
        value - loss,
        factor * gradient.w_kq[0, 0] - stated_kq,
        factor * gradient.w_pv[0, 0] - stated_pv,
    ]
    return [np.abs(difference).max() for difference in differences]


@draws.seed_and(noise_var=(0.0, 2.0))
def test_the_vector_field_is_minus_the_gradient_and_other_entries_stay_zero(seed, noise_var):
    case = seed, noise_var, noise_var
    assert max(disagreement(*case, factor=1.0, other_entries=0.0)) < 1e-10


def test_control_a_forgotten_noise_or_factor_or_an_entry_off_zero_breaks_it():
    assert min(disagreement(0, 0.5, 0.0, factor=1.0, other_entries=0.0)) > 1e-2
    assert min(disagreement(0, 0.5, 0.5, factor=2.0, other_entries=0.0)[1:]) > 1e-2
    assert min(disagreement(0, 0.5, 0.5, factor=1.0, other_entries=0.5)) > 1e-2
