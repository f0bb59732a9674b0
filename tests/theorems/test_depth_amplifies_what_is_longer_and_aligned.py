"""Where a demonstration moves along itself, depth amplifies the longer and better aligned one.

Hypothesis: equal masked layers with P = λI, K = kI, λk > 0; d_1 is no shorter than d_2 and no less
aligned with the query. Then it has the larger flow, and the ratio grows with every layer; for any
K a longer copy does so if M_0·M_1 ≥ 0. Sides: the network and its Jacobian; ρ_{l+1} = ρ_l + κρ_l³,
A, B, M_0, M_1. Derived here, a sufficient condition for what A1's Theorem 1 says; docs/theory, "The
moving demonstration", "Depth amplifies what is longer and better aligned".
"""

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np

from draws import seeds
from lsa_lab.models import linear_attention
from lsa_lab.models.linear_attention import Params
from lsa_lab.theory import moving_demonstration as theory

E, L = 4, 5


@jax.jit
def network(w_kq, w_pv, d, q):  # -> [L+1, e]
    params = Params(*(jnp.broadcast_to(w, (L, 1, *w.shape)) for w in (w_kq, w_pv)))
    return linear_attention.forward(params, jnp.stack([d, q])).stream[:, -1]


NETWORK = network, network_flow = network, jax.jit(jax.jacfwd(network, 2))


@jax.jit
def closed_forms(w_kq, scale, d, query):
    first, second = theory.cubic_gains(scale * d @ w_kq @ d, L)
    squares = scale**2 * jnp.stack([first**2, 2 * first * second, second**2])
    closed = theory.moving_demonstration(w_kq, scale * jnp.eye(E), d, query, L)
    size = theory.flow_terms(w_kq, d, query) @ squares
    return closed, theory.moving_flow(w_kq, scale, d, query, L), size


def draw(seed, e):  # K, λ, two demonstrations, query
    rng = np.random.default_rng(seed)
    (*pair, query), w_kq = rng.normal(size=(3, e)), rng.normal(size=(e, e)) / e
    return w_kq, rng.uniform(0.05, 0.3), np.array(pair), query


def steps(w_kq, scale, pair, query, path=network_flow):  # [L-1]
    """What every layer after the first adds to log |J(d_1)| - log |J(d_2)|, or to contributions."""
    w_pv, start = scale * np.eye(len(query)), query if path is network else 0
    ends = (np.asarray(path(w_kq, w_pv, d, query))[1:] - start for d in pair)
    logs = [np.log(np.linalg.norm(end.reshape(L, -1), axis=1)) for end in ends]
    return np.diff(logs[0] - logs[1])


def ordered(pair, query):
    """The two lengths and the two directions, put together so that d_1 has the better of both."""
    lengths = np.linalg.norm(pair, axis=1, keepdims=True)
    by_angle = np.argsort(-abs(pair @ query) / lengths[:, 0])
    return np.sort(lengths, 0)[::-1] * (pair / lengths)[by_angle]


@seeds
def test_the_flow_of_a_moving_demonstration_in_closed_form(seed):
    w_kq, scale, (d, _), query = draw(seed, E)
    path, flow = (np.asarray(f(w_kq, scale * np.eye(E), d, query)) for f in NETWORK)
    closed, closed_flow, size = jax.device_get(closed_forms(w_kq, scale, d, query))
    for left, right in ((path, closed), (flow, closed_flow), ((flow**2).sum((1, 2)), size)):
        assert np.abs(left - right).max() < 1e-10 * (1 + np.abs(right).max())


@seeds
def test_the_lead_of_the_longer_and_better_aligned_grows_with_every_layer(seed):
    _, scale, pair, query = draw(seed, E)
    pair, w_pv = ordered(pair, query), scale / E * np.eye(E)
    flows = [np.asarray(network_flow(np.eye(E), w_pv, d, query))[1] for d in pair]
    assert np.linalg.norm(flows[0]) >= np.linalg.norm(flows[1])
    assert steps(np.eye(E), scale / E, pair, query).min() > 0


@seeds
def test_depth_amplifies_a_longer_copy_whatever_the_keys(seed):
    w_kq, scale, (d, _), query = draw(seed, 4)
    hypothesis.assume(d @ w_kq @ d > 1e-3 and theory.flow_terms(w_kq, d, query)[1] >= 0)
    assert steps(w_kq, scale, (1.2 * d, d), query).min() > 0


@seeds
def test_the_ratio_of_contributions_grows_if_the_first_couples_more_to_itself(seed):
    w_kq, _, pair, query = draw(seed, 4)
    own = np.einsum("be,ef,bf->b", pair, w_kq, pair)
    scale = 0.97 / np.abs(own).max()
    assert np.all(np.sign(steps(w_kq, scale, pair, query, network)) == np.sign(own[0] - own[1]))


def test_control_layers_that_pull_back_narrow_the_lead():
    _, scale, pair, query = draw(0, E)
    assert steps(np.eye(E), -scale / E, ordered(pair, query), query).max() < 0


def test_control_a_shorter_one_that_is_ahead_by_its_angle_is_overtaken():
    pair, query = np.array([[1.0, 0.0], [0.0, 1.9]]), np.array([1.0, 0.0])
    flows = [np.asarray(network_flow(np.eye(2), 0.05 * np.eye(2), d, query)) for d in pair]
    path = np.divide(*(np.linalg.norm(flow[1:], axis=(1, 2)) for flow in flows))
    assert (np.diff(path) < 0).all()
    assert path[0] > 1 > path[-1]


def test_control_below_minus_one_the_ratio_of_contributions_goes_both_ways():
    pair, query = np.sqrt([[1.2, 0.0], [1.9, 0.0]]), np.array([1.0, 0.0])
    assert set(np.sign(steps(np.eye(2), -1.0, pair, query, network))) == {-1.0, 1.0}
