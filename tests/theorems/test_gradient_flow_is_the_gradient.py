"""The vector field of the training dynamics is minus the gradient of the population loss.

Zhang et al. 2306.09927; THEORY II.2.6. The population loss of the network itself, all entries of
its weights free, is an exact Gauss-Hermite sum: three nodes per coordinate of x (degree 4) and two
per coordinate of w and of the noise (degree 3).
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsa_lab import prompts
from lsa_lab.models import linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.theory import training_dynamics


def gaussian_sum(nodes_per_variable):
    rules = [np.polynomial.hermite_e.hermegauss(count) for count in nodes_per_variable]
    nodes = np.stack(np.meshgrid(*[rule[0] for rule in rules]), -1).reshape(-1, len(rules))
    weights = np.stack(np.meshgrid(*[rule[1] for rule in rules]), -1).reshape(-1, len(rules))
    return jnp.asarray(nodes), jnp.asarray(weights.prod(1) / weights.prod(1).sum())


def population_loss(params, covariance, noise_var, n):
    d = covariance.shape[0]
    nodes, weights = gaussian_sum([3] * (n + 1) * d + [2] * (d + n))
    root = jnp.linalg.cholesky(covariance)

    def squared_error(z):
        x, w, noise = jnp.split(z, [(n + 1) * d, (n + 2) * d])
        x = x.reshape(n + 1, d) @ root.T
        y = x[:-1] @ w + jnp.sqrt(noise_var) * noise
        tokens = prompts.tokens(prompts.Prompt(x[:-1], y, x[-1], x[-1] @ w))
        trace = linear_attention.forward(params, tokens, keys="all")
        return (predict(trace, sign=1.0) - x[-1] @ w) ** 2

    return weights @ jax.vmap(squared_error)(nodes) / 2


@partial(jax.jit, static_argnames=("d", "n"))
def disagreement(seed, d, n, noise_var, believed_noise_var, factor, other_entries):
    keys = jax.random.split(jax.random.key(seed), 5)
    eigenvalues = jax.random.uniform(keys[4], (d,), minval=0.3, maxval=2.0)
    basis, _ = jnp.linalg.qr(jax.random.normal(keys[0], (d, d)))
    covariance = basis * eigenvalues[None] @ basis.T
    u, U = jax.random.normal(keys[1]), jax.random.normal(keys[2], (d, d))
    others = other_entries * jax.random.normal(keys[3], (2, d))
    w_kq = jnp.zeros((d + 1, d + 1)).at[:d, :d].set(U).at[d, :d].set(others[0])
    w_pv = jnp.zeros((d + 1, d + 1)).at[d, d].set(u).at[d, :d].set(others[1])
    params = linear_attention.Params(w_kq[None, None], w_pv[None, None])
    value, gradient = jax.value_and_grad(population_loss)(params, covariance, noise_var, n)

    law = covariance, n, believed_noise_var
    flow = training_dynamics.vector_field(u, U, *law)
    stated_kq = jnp.zeros((d + 1, d + 1)).at[:d, :d].set(-flow.U)
    stated_pv = jnp.zeros((d + 1, d + 1)).at[d, d].set(-flow.u)
    differences = [
        value - training_dynamics.loss(u, U, *law),
        factor * gradient.w_kq[0, 0] - stated_kq,
        factor * gradient.w_pv[0, 0] - stated_pv,
    ]
    return jnp.stack([jnp.max(jnp.abs(difference)) for difference in differences])


@pytest.mark.parametrize(("d", "n"), [(2, 1), (1, 3), (2, 2)])
@given(seed=st.integers(0, 2**32 - 1), noise_var=st.floats(0.0, 2.0))
def test_the_vector_field_is_minus_the_gradient_and_other_entries_stay_zero(d, n, seed, noise_var):
    law = seed, d, n, noise_var, noise_var
    assert jnp.max(disagreement(*law, factor=1.0, other_entries=0.0)) < 1e-10


def test_a_forgotten_noise_or_factor_or_an_entry_off_zero_breaks_it():
    law = 0, 2, 1, 0.5
    assert jnp.min(disagreement(*law, 0.0, factor=1.0, other_entries=0.0)) > 1e-2
    assert jnp.min(disagreement(*law, 0.5, factor=2.0, other_entries=0.0)[1:]) > 1e-2
    assert jnp.min(disagreement(*law, 0.5, factor=1.0, other_entries=0.5)) > 1e-2
