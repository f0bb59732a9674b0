"""A demonstration that stays as it was: q_L = q + ((1 + κ)^L - 1)/κ · s P d, κ = d·K P d; and the
ratio of two contributions grows with depth iff κ_1 > κ_2, both above -1.

Derived here. docs/theory, "The frozen demonstration", "Self-coupling decides growth".
"""

import itertools

import jax
import numpy as np
import pytest

from draws import forward, jit_numpy, seeds
from lsa_lab.models import linear_attention
from lsa_lab.theory import amplification

L = 6
tied = jit_numpy(amplification.frozen_demonstration, static_argnums=4)
self_coupling = jit_numpy(amplification.self_coupling)
gain = jit_numpy(amplification.geometric_gain, static_argnums=1)
flow = jit_numpy(jax.jacfwd(amplification.frozen_demonstration, 2), static_argnums=4)


def draw(seed, e, share, symmetric=0.0, coupling=1.0):
    """K, P [L, e, e], the symmetric part of K and d·K P d scaled; d and q [e].

    ``share`` is 0 for tied weights and 1 for independent ones. For skew K d·K d = 0 keeps d.
    """
    rng = np.random.default_rng(seed)
    first, others = rng.normal(size=(2, 1, e, e)), rng.normal(size=(2, L, e, e))
    w_kq, w_pv = 0.5 * (first + share * others)
    turned = w_kq.swapaxes(1, 2)
    w_kq = (w_kq - turned) / 2 + symmetric * (w_kq + turned) / 2
    d, q = rng.normal(size=(2, e))
    return w_kq, coupling * w_pv + (1 - coupling) * np.outer(d, d), d, q


def walk(w_kq, w_pv, d, q):  # only the query moves
    path = [q]
    for keys, values in zip(w_kq, w_pv, strict=True):
        path.append(path[-1] + values @ d * (d @ keys @ path[-1]))
    return np.stack(path)


def untied(w_kq, w_pv, d, q):
    """(I + P_l d dᵀ K_l) ... (I + P_1 d dᵀ K_1) q."""
    maps = np.eye(len(q)) + w_pv @ np.outer(d, d) @ w_kq
    return np.stack([*itertools.accumulate(maps, lambda path, layer: layer @ path, initial=q)])


def network(w_kq, w_pv, d, q):
    params = linear_attention.Params(w_kq[:, None], w_pv[:, None])
    return forward(params, np.stack([d, q])).stream[:, -1]


def error(path, case, equal_layers=True):
    w_kq, w_pv, d, q = case
    stated = tied(w_kq[0], w_pv[0], d, q, L) if equal_layers else untied(*case)
    return np.abs(path(*case) - stated).max() / np.abs(path(*case)).max()


@pytest.mark.parametrize(("e", "coupling"), [(5, 1.0), (5, 1e-9), (5, 0.0), (2, 1.0)])
@seeds
def test_equal_layers_follow_the_geometric_series_and_any_layers_the_product(e, coupling, seed):
    assert error(network, draw(seed, e, 0.0, coupling=coupling)) < 1e-10
    assert error(walk, draw(seed, e, 0.0, symmetric=1.0)) < 1e-10
    assert error(network, draw(seed, e, 1.0), equal_layers=False) < 1e-10
    assert error(walk, draw(seed, e, 1.0, symmetric=1.0), equal_layers=False) < 1e-10


def test_control_a_demonstration_that_moves_or_layers_that_differ_break_it():
    assert error(network, draw(0, 5, 0.0, symmetric=1.0)) > 1e-2
    assert error(network, draw(0, 5, 0.0, symmetric=1.0), equal_layers=False) > 1e-2
    assert error(network, draw(0, 5, 1.0)) > 1e-2


def draw_pair(seed, product=None, couplings=None, e=4):
    """K, P [e, e], two demonstrations and a query; K P = ± PᵀP has κ = ± |P d|².

    The demonstrations are scaled to the given κ, or K so that every κ is above -1.
    """
    rng = np.random.default_rng(seed)
    (w_kq, w_pv), pair = rng.normal(size=(2, e, e)), rng.normal(size=(2, e))
    w_kq = w_kq if product is None else product * w_pv.T
    kappa, query = np.array([self_coupling(w_kq, w_pv, d) for d in pair]), rng.normal(size=e)
    if couplings is not None:
        return w_kq, w_pv, np.sqrt(np.array(couplings) / kappa)[:, None] * pair, query
    return w_kq * min(1.0, 0.9 / max(-kappa.min(), 1e-9)), w_pv, pair, query


def log_ratio(w_kq, w_pv, pair, query, num_layers=L):  # [L], of the contributions q_l - q
    layers = [np.broadcast_to(w, (num_layers, *w.shape)) for w in (w_kq, w_pv)]
    sizes = [np.linalg.norm(walk(*layers, d, query)[1:] - query, axis=1) for d in pair]
    return np.log(sizes[0] / sizes[1])


def signs(case):  # of growth in every layer, and of κ_1 - κ_2
    kappa = [self_coupling(*case[:2], d) for d in case[2]]
    return np.sign(np.diff(log_ratio(*case))), np.sign(kappa[0] - kappa[1])


@seeds
def test_the_ratio_grows_if_and_only_if_the_first_couples_more_to_itself(seed):
    growth, expected = signs(draw_pair(seed))
    assert np.all(growth == expected)
    for kappa in (-0.5, 0.5):  # equal couplings leave it as it is
        assert np.ptp(log_ratio(*draw_pair(seed, np.sign(kappa), [kappa, kappa]))) < 1e-10


@seeds
def test_the_larger_positive_coupling_overtakes_and_negative_ones_tend_to_their_ratio(seed):
    path = log_ratio(*draw_pair(seed, 1.0, [0.1, 0.5]), num_layers=200)
    assert np.all(np.diff(path) < 0)
    assert path[-1] < 0
    np.testing.assert_allclose(np.diff(path)[-1], np.log(1.1 / 1.5), atol=1e-6)
    path = log_ratio(*draw_pair(seed, -1.0, [-0.9, -0.2]), num_layers=200)
    assert abs(path[-1] - path[0] - np.log(0.2 / 0.9)) < 1e-10
    gains = np.array([gain(kappa, 200)[1:] for kappa in (-0.9, -0.2)])
    assert np.abs(np.diff(np.log(gains), axis=0) + path - path[0]).max() < 1e-10


def test_control_below_minus_one_the_ratio_goes_both_ways_and_the_flow_does_not_obey_the_rule():
    growth, expected = signs(draw_pair(0, -1.0, [-1.2, -1.6]))
    assert expected > 0
    assert set(growth) == {-1.0, 1.0}
    against = []  # how far the ratio of Jacobians ∂q_l/∂d goes the other way
    for seed in range(20):
        case = w_kq, w_pv, pair, query = draw_pair(seed)
        sizes = [np.linalg.norm(flow(w_kq, w_pv, d, query, L)[1:], axis=(1, 2)) for d in pair]
        against.append(np.max(-np.diff(np.log(sizes[0] / sizes[1])) * signs(case)[1]))
    assert np.max(against) > 0.1
