"""The vector field of the training dynamics is minus the gradient of the population loss.

The network's loss, all entries of its weights free, is an exact Gauss-Hermite sum: three nodes for
a coordinate of x (degree 4), two for one of w and of the noise (degree 3). Zhang et al. 2306.09927;
docs/theory, "The training flow".
"""

import jax
import jax.numpy as jnp
import numpy as np

import population
from draws import draw_covariance, jit_numpy, seed_and
from lsa_lab.models import linear_attention
from lsa_lab.theory import training_dynamics

D, N = 2, 2


@jit_numpy
@jax.value_and_grad
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


loss = jit_numpy(training_dynamics.loss, static_argnums=3)
vector_field = jit_numpy(training_dynamics.vector_field, static_argnums=3)


def errors(seed, noise_var, factor=1.0, stated_noise_var=None, other_entries=0.0):
    rng = np.random.default_rng(seed)
    covariance, u, U = draw_covariance(rng, D, 0.3, 2.0), rng.normal(), rng.normal(size=(D, D))
    w_kq, w_pv, flow_kq, flow_pv = np.zeros((4, D + 1, D + 1))
    w_kq[D, :D], w_pv[D, :D] = other_entries * rng.normal(size=(2, D))
    w_kq[:D, :D], w_pv[D, D] = U, u
    params = linear_attention.Params(w_kq[None, None], w_pv[None, None])
    value, slope = population_loss(params, covariance, noise_var)
    task = u, U, covariance, N, noise_var if stated_noise_var is None else stated_noise_var
    flow_pv[D, D], flow_kq[:D, :D] = vector_field(*task)
    differences = value - loss(*task), factor * slope.w_kq + flow_kq, factor * slope.w_pv + flow_pv
    return [np.abs(difference).max() for difference in differences]


@seed_and(noise_var=(0.0, 2.0))
def test_the_vector_field_is_minus_the_gradient_and_other_entries_stay_zero(seed, noise_var):
    assert max(errors(seed, noise_var)) < 1e-10


def test_control_a_forgotten_noise_or_factor_or_an_entry_off_zero_breaks_it():
    assert min(errors(0, 0.5, stated_noise_var=0.0)) > 1e-2
    assert min(errors(0, 0.5, factor=2.0)[1:]) > 1e-2
    assert min(errors(0, 0.5, other_entries=0.5)) > 1e-2
