"""The ratio of two contributions grows with depth iff κ_1 > κ_2, both above -1.

Hypothesis: demonstrations are frozen. Sides: a walk through the layers in which only the query
moves; κ = d·K P d and its geometric sums. Neither relevance nor the order after one layer enters.
Derived here; docs/theory, "Self-coupling decides growth": if κ_1 < κ_2 < 0 the ratio of the gains
only tends to κ_2/κ_1.
"""

import jax
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.theory import amplification

E = 4
L = 6
coupling = jit_numpy(amplification.self_coupling)
gain = jit_numpy(amplification.geometric_gain, static_argnums=1)
flow = jit_numpy(jax.jacfwd(amplification.frozen_demonstration, 2), static_argnums=4)


def draw(seed, e, product=None):
    """K, P [e, e], two demonstrations with κ > -1, and a query; K P = ± PᵀP has κ = ± |P d|²."""
    rng = np.random.default_rng(seed)
    (w_kq, w_pv), demonstrations = rng.normal(size=(2, e, e)), rng.normal(size=(2, e))
    w_kq = w_kq if product is None else product * w_pv.T
    lowest = min(coupling(w_kq, w_pv, d) for d in demonstrations)
    return w_kq * min(1.0, 0.9 / max(-lowest, 1e-9)), w_pv, demonstrations, rng.normal(size=e)


def log_ratio(w_kq, w_pv, demonstrations, query, num_layers=L):  # [L]
    """log |c_l(d_1)| - log |c_l(d_2)| of the contributions c_l = q_l - q after each layer."""
    sizes = []
    for d in demonstrations:
        added, path = np.zeros_like(query), []
        for _ in range(num_layers):
            added = added + w_pv @ d * (d @ w_kq @ (query + added))
            path.append(np.linalg.norm(added))
        sizes.append(path)
    return np.log(sizes[0]) - np.log(sizes[1])


def grows(case):
    couplings = [coupling(*case[:2], d) for d in case[2]]
    return np.sign(np.diff(log_ratio(*case))), np.sign(couplings[0] - couplings[1])


@seeds
def test_the_ratio_grows_if_and_only_if_the_first_couples_more_to_itself(seed):
    steps, expected = grows(draw(seed, E))
    assert np.all(steps == expected)


@pytest.mark.parametrize("product", [-1.0, 1.0])
@seeds
def test_equal_couplings_leave_the_ratio_as_it_is(product, seed):
    w_kq, w_pv, (first, second), query = draw(seed, 4, product)
    second = second * np.linalg.norm(w_pv @ first) / np.linalg.norm(w_pv @ second)
    assert np.ptp(log_ratio(w_kq, w_pv, [first, second], query)) < 1e-10


@seeds
def test_the_larger_of_two_positive_couplings_overtakes_in_the_end(seed):
    w_kq, w_pv, demonstrations, query = draw(seed, 4, 1.0)
    sizes = np.array([0.1, 0.5])
    scale = np.sqrt(sizes / [coupling(w_kq, w_pv, d) for d in demonstrations])
    path = log_ratio(w_kq, w_pv, scale[:, None] * demonstrations, query, num_layers=200)
    assert np.all(np.diff(path) < 0)
    assert path[-1] < 0
    np.testing.assert_allclose(np.diff(path)[-1], np.log(1.1 / 1.5), atol=1e-6)


@seeds
def test_between_negative_couplings_the_ratio_only_tends_to_theirs(seed):
    w_kq, w_pv, demonstrations, query = draw(seed, 4, -1.0)
    sizes = np.array([0.9, 0.2])
    scale = np.sqrt(sizes / [-coupling(w_kq, w_pv, d) for d in demonstrations])
    path = log_ratio(w_kq, w_pv, scale[:, None] * demonstrations, query, num_layers=200)
    assert abs(path[-1] - path[0] - np.log(sizes[1] / sizes[0])) < 1e-10
    gains = [gain(-size, 200) for size in sizes]
    assert np.abs(np.diff(np.log(np.array(gains)[:, 1:]), axis=0) + path - path[0]).max() < 1e-10


def test_control_below_minus_one_the_ratio_goes_both_ways():
    w_kq, w_pv, demonstrations, query = draw(0, 4, -1.0)
    scale = np.sqrt([1.2, 1.6] / -np.array([coupling(w_kq, w_pv, d) for d in demonstrations]))
    steps, expected = grows((w_kq, w_pv, scale[:, None] * demonstrations, query))
    assert expected > 0
    assert set(steps) == {-1.0, 1.0}


def test_control_the_flow_does_not_obey_the_rule():
    """How far the ratio of Jacobians ∂q_l/∂d goes the other way, at most, in 20 draws."""
    against = []
    for seed in range(20):
        case = draw(seed, 4)
        sizes = [np.linalg.norm(flow(*case[:2], d, case[3], L)[1:], axis=(1, 2)) for d in case[2]]
        against.append(np.max(-np.diff(np.log(sizes[0] / sizes[1])) * grows(case)[1]))
    assert np.max(against) > 0.1
