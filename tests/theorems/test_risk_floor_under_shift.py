"""The risk that no number of test demonstrations removes from a shifted task.

docs/theory, "The floor under shift". Sides: the network on d demonstrations without noise whose
second moment is Λ' itself, which stand for infinitely many; the floor's closed form, and
``shifted_risk`` falling to it as 1/m.
"""

import jax.numpy as jnp
import numpy as np

import draws
import population
from draws import jit_numpy, seeds
from lsa_lab.models import constructions
from lsa_lab.theory import optimum

D = 3


floor_of = jit_numpy(optimum.shifted_risk_floor)
risk_of = jit_numpy(optimum.shifted_risk, static_argnums=4)


def draw(seed, d):
    """A, and roots of the covariances of demonstrations, queries and tasks."""
    rng = np.random.default_rng(seed)
    roots = [draws.draw_root(rng, d, 0.5, 2.0) for _ in range(3)]
    return rng.normal(size=(d, d)), *roots


def floor(A, *roots):
    return floor_of(A, *(root @ root.T for root in roots))


@jit_numpy
def network_risk(A, root, query_root, task_root):
    """Tasks, too, are the columns of their root."""
    d = len(A)
    x = jnp.broadcast_to(d**0.5 * root.T, (d, d, d))
    y = jnp.einsum("pnd,pd->pn", x, task_root.T)
    params = constructions.preconditioned(A[None])
    return population.risk(params, x, y, task_root.T, jnp.ones(d), query_root)


@seeds
def test_infinitely_many_demonstrations_leave_the_floor(seed):
    case = draw(seed, D)
    np.testing.assert_allclose(network_risk(*case), floor(*case), rtol=1e-10, atol=1e-12)


@seeds
def test_the_risk_falls_as_one_over_the_test_length_to_the_floor(seed):
    A, *roots = draw(seed, D)
    covariances = [root @ root.T for root in roots]
    single, fifty = (risk_of(A, *covariances, n, 0.4) for n in (1, 50))
    lowest = floor(A, *roots)
    np.testing.assert_allclose(fifty, lowest + (single - lowest) / 50, rtol=1e-10)


@seeds
def test_control_another_map_has_another_floor(seed):
    """It is strictly convex in A: one map may share it, but never both sides of A."""
    A, *roots = draw(seed, D)
    risks = [network_risk(moved, *roots) for moved in (A + 0.1, A - 0.1)]
    assert max(risks) > (1 + 1e-7) * floor(A, *roots)


def floor_after_training(shift, query_shift):
    """n = 15, d = 6: the layer is trained on Λ and meets shift · Λ; with the tr Λ of the task."""
    covariance, identity = np.diag([2.0, 1.5, 1.0, 0.75, 0.5, 0.25]), np.eye(6)
    A = optimum.one_layer(covariance, identity, 15, 0.0)
    risk = optimum.shifted_risk_floor(A, shift * covariance, query_shift * covariance, identity)
    return risk, np.diag(covariance)


def test_three_times_the_covariance_is_worse_than_predicting_zero():
    """More test demonstrations cannot help: the step Γ⁻¹ is too long for Λ' = 3Λ."""
    shifted, eigenvalues = floor_after_training(3, 3)
    gamma = 16 / 15 * eigenvalues + eigenvalues.sum() / 15
    np.testing.assert_allclose(shifted, 3 * eigenvalues @ (3 * eigenvalues / gamma - 1) ** 2)
    assert shifted > 3 * eigenvalues.sum()


def test_control_without_a_shift_or_for_the_queries_alone_the_layer_is_far_below():
    risk, eigenvalues = floor_after_training(1, 1)
    assert risk < eigenvalues.sum() / 5
    risk, _ = floor_after_training(1, 3)
    assert risk < 3 * eigenvalues.sum() / 5
