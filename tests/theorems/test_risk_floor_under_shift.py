"""What no number of test demonstrations removes when the test law is another (THEORY II.2.5)."""

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest

from lsa_lab.models import constructions, linear_attention, trace
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.theory import optimum

seeds = hypothesis.given(seed=st.integers(0, 2**31 - 1))


def random_root(rng, d):
    """A root of a covariance with any eigenvectors and eigenvalues from ½ to 2."""
    vectors = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return vectors * np.sqrt(rng.uniform(0.5, 2.0, d))


@jax.jit
def network_errors(A, x, y, task, queries):  # [q]
    params = constructions.preconditioned(A[None])

    def error(x_query):
        prompt = Prompt(x, y, x_query, x_query @ task)
        return trace.predict(linear_attention.forward(params, tokens(prompt))) - prompt.y_query

    return jax.vmap(error)(queries)


@pytest.mark.parametrize("d", [1, 3, 6])
@seeds
def test_the_risk_falls_as_one_over_the_test_length_to_the_floor(d, seed):
    rng = np.random.default_rng(seed)
    roots = [random_root(rng, d) for _ in range(3)]
    A, (demonstrations, queries, tasks) = rng.standard_normal((d, d)), [r @ r.T for r in roots]
    floor = optimum.shifted_risk_floor(A, demonstrations, queries, tasks)
    one, many = (optimum.shifted_risk(A, demonstrations, queries, tasks, n, 0.4) for n in (1, 50))
    np.testing.assert_allclose(many, floor + (one - floor) / 50, rtol=1e-10)
    # Infinitely many demonstrations are d of them without noise whose second moment is Λ' itself.
    x = np.sqrt(d) * roots[0].T
    simulated, *moved = (
        sum((np.asarray(network_errors(a, x, x @ w, w, roots[1].T)) ** 2).sum() for w in roots[2].T)
        for a in (A, A + 0.1, A - 0.1)
    )
    np.testing.assert_allclose(simulated, floor, rtol=1e-10, atol=1e-12)
    # Control: another map has another floor. The floor is strictly convex in A, so that one map may
    # share it by chance, but never both sides of A.
    assert max(moved) > (1 + 1e-7) * floor


def test_three_times_the_covariance_is_worse_than_predicting_zero():
    """n = 15, d = 6: more test demonstrations cannot help, the step Γ⁻¹ is too long for Λ' = 3Λ."""
    covariance, identity = np.diag([2.0, 1.5, 1.0, 0.75, 0.5, 0.25]), np.eye(6)
    A = optimum.one_layer(covariance, identity, 15, 0.0)
    shifted = optimum.shifted_risk_floor(A, 3 * covariance, 3 * covariance, identity)
    eigenvalues = np.diag(covariance)
    gamma = 16 / 15 * eigenvalues + eigenvalues.sum() / 15
    np.testing.assert_allclose(shifted, 3 * eigenvalues @ (3 * eigenvalues / gamma - 1) ** 2)
    assert shifted > 3 * eigenvalues.sum()
    # Control: where it was trained, and for queries alone from 3Λ, the same layer is far below.
    assert optimum.shifted_risk_floor(A, covariance, covariance, identity) < eigenvalues.sum() / 5
    query_only = optimum.shifted_risk_floor(A, covariance, 3 * covariance, identity)
    assert query_only < 3 * eigenvalues.sum() / 5
