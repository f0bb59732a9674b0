"""Training from small balanced weights ends at the best layer: uU → Γ^{-1}, u → tr(Γ^{-2})^{1/4}.

Zhang et al. 2306.09927, Theorem 4.1; docs/theory, "Training ends at the optimum". Hypotheses:
U = cΘΘᵀ, u = c, |ΘΘᵀ|_F = 1, c²|Γ|√d < 2. Sides: the matrix ODE after a long time; the limit from
the spectrum of Λ. The noise only enlarges Γ.
"""

from functools import partial

import jax
import jax.numpy as jnp

import draws
from lsa_lab.theory import training_dynamics

D, N = 2, 4


def best_layer(covariance, n, noise_var):
    """A = Γ^{-1} and the balanced u, from the spectrum."""
    eigenvalues, basis = jnp.linalg.eigh(covariance)
    steps = n / ((n + 1) * eigenvalues + jnp.sum(eigenvalues) + noise_var)
    return basis * steps[None] @ basis.T, jnp.sum(steps**2) ** 0.25


@partial(jax.jit, static_argnames="n")
def distance(covariance, root, size, n, noise_var, sign, imbalance, time):
    """How far the effective step and u are from the best layer's at that time.

    ``size`` in (0, 1) is c² as a share of its bound; ``root`` is Θ before it is normalised.
    """
    A, balanced_u = best_layer(covariance, n, noise_var)
    bound = 2 * jnp.min(jnp.linalg.eigvalsh(A)) / len(A) ** 0.5
    scale = jnp.sqrt(size * bound)
    initial = sign * scale * root @ root.T / jnp.linalg.norm(root @ root.T)
    times = jnp.full(1, time)
    u, U = training_dynamics.solve(times, covariance, n, imbalance * scale, initial, noise_var)
    return jnp.stack([jnp.max(jnp.abs(u[0] * U[0] - A)), jnp.abs(u[0] - balanced_u)])


@draws.seeded(size=(0.01, 0.99), noise_var=(0.0, 1.0))
def test_training_ends_at_the_one_layer_optimum(seed, size, noise_var):
    key_covariance, key_root = jax.random.split(jax.random.key(seed))
    root = jax.random.normal(key_root, (D, D))
    start = draws.covariance(key_covariance, D, 0.7, 2.0), root, size, N, noise_var
    assert jnp.max(distance(*start, sign=1.0, imbalance=1.0, time=60.0)) < 1e-7


def test_the_condition_on_the_size_is_not_necessary():
    start = jnp.eye(4), jnp.eye(4), 4.0, 10, 0.5
    assert jnp.max(distance(*start, sign=1.0, imbalance=1.0, time=20.0)) < 1e-7


def test_control_a_negative_or_an_unbalanced_start_ends_elsewhere():
    """Isotropic -ΘΘᵀ runs into the saddle at zero; from a larger u only the product is right.

    Rounding errors grow like e^{λ²√d t} at the saddle, hence the shorter time.
    """
    start = jnp.eye(4), jnp.eye(4), 0.5, 10, 0.5
    assert jnp.max(distance(*start, sign=1.0, imbalance=1.0, time=7.0)) < 1e-7
    assert jnp.min(distance(*start, sign=-1.0, imbalance=1.0, time=7.0)) > 0.1
    of_step, of_u = distance(*start, sign=1.0, imbalance=2.0, time=60.0)
    assert of_step < 1e-7
    assert of_u > 0.1
