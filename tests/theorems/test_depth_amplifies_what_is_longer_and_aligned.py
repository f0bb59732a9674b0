"""Where a demonstration moves along itself, depth amplifies the longer and better aligned one.

Equal masked layers with P = λI, K = kI, λk > 0: if d_1 is no shorter than d_2 and no less aligned
with the query, it has the larger flow, and the ratio grows with every layer. For any K a longer
copy does so if M_0·M_1 ≥ 0. A sufficient condition for what A1's Theorem 1 says, derived here. The
median log ratio of pairs turned by their first layer, the lead, is at most the median |log ratio|;
they agree at the first layer, so that the lead never grows by more than the disparity, and falls
where layers only reshuffle. docs/theory, "The moving demonstration", "Depth amplifies what is
longer and better aligned", "The amplification theorem".
"""

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np

from draws import jit_numpy, relative_error, seeds
from lsa_lab.analyses import disparity
from lsa_lab.models import linear_attention
from lsa_lab.models.linear_attention import Params

E, L = 4, 5
summarise = jit_numpy(disparity.summarise)


def path(w_kq, scale, d, q):  # -> [L+1, e], with P = scale I
    w_pv = scale * jnp.eye(len(d))
    params = Params(*(jnp.broadcast_to(w, (L, 1, *w.shape)) for w in (w_kq, w_pv)))
    return linear_attention.forward(params, jnp.stack([d, q])).stream[:, -1]


network, network_flow = jit_numpy(path), jit_numpy(jax.jacfwd(path, 2))


def cubic_gains(coupling):  # [L+1], [L+1]
    """A_l = (ρ_l - 1)/κ and B_l = κ ∂A_l/∂κ with ρ ← ρ + κρ³, without dividing by κ."""
    rho, gain, bend, gains = 1.0, 0.0, 0.0, [(0.0, 0.0)]
    for _ in range(L):
        slope = gain + coupling * bend  # ∂ρ/∂κ
        gain, bend = gain + rho**3, bend + 3 * rho**2 * slope
        rho += coupling * rho**3
        gains.append((gain, coupling * bend))
    return np.array(gains).T


def flow_parts(w_kq, d, query):
    """M_0 = sI + d (Kq)ᵀ, which is Eq. 2, and M_1 = (s/d·Kd) d ((K + Kᵀ)d)ᵀ, the gain by moving."""
    s = d @ w_kq @ query
    moved = s / (d @ w_kq @ d) * np.outer(d, (w_kq + w_kq.T) @ d)
    return s * np.eye(len(d)) + np.outer(d, w_kq @ query), moved


def closed_forms(w_kq, scale, d, query):
    """q_l = q + A_l s P d, J_l = λ (A_l M_0 + B_l M_1), and |J_l|²."""
    (first, second), parts = cubic_gains(scale * d @ w_kq @ d), flow_parts(w_kq, d, query)
    states = query + np.outer(first, d @ w_kq @ query * scale * d)
    a, b, c = (np.vdot(parts[i], parts[j]) for i, j in ((0, 0), (0, 1), (1, 1)))
    size = scale**2 * (a * first**2 + 2 * b * first * second + c * second**2)
    return states, scale * np.einsum("kl,kij->lij", [first, second], parts), size


def draw(seed):  # K, λ, two demonstrations, query
    rng = np.random.default_rng(seed)
    (*pair, query), w_kq = rng.normal(size=(3, E)), rng.normal(size=(E, E)) / E
    return w_kq, rng.uniform(0.05, 0.3), np.array(pair), query


def log_ratios(w_kq, scale, pair, query, run=network_flow):  # [L]
    """log |J(d_1)| - log |J(d_2)| after every layer, or of contributions."""
    paths = [run(w_kq, scale, d, query) for d in pair]
    sizes = [np.linalg.norm((p[1:] - p[0]).reshape(L, -1), axis=1) for p in paths]
    return np.log(sizes[0] / sizes[1])


def ordered(pair, query):
    """The two lengths and the two directions, put together so that d_1 has the better of both."""
    lengths = np.linalg.norm(pair, axis=1, keepdims=True)
    by_angle = np.argsort(-abs(pair @ query) / lengths[:, 0])
    return np.sort(lengths, 0)[::-1] * (pair / lengths)[by_angle]


@seeds
def test_the_flow_has_a_closed_form_and_the_lead_of_the_better_grows_with_every_layer(seed):
    w_kq, scale, pair, query = draw(seed)
    case = w_kq, scale, pair[0], query
    walked, flow = network(*case), network_flow(*case)
    found = walked, flow, (flow**2).sum((1, 2))
    for left, right in zip(found, closed_forms(*case), strict=True):
        assert relative_error(left, right) < 1e-10
    ratios = log_ratios(np.eye(E), scale / E, ordered(pair, query), query)
    assert ratios[0] >= 0
    assert np.diff(ratios).min() > 0
    coupling = np.einsum("be,ef,bf->b", pair, w_kq, pair)
    ratios = log_ratios(w_kq, 0.97 / np.abs(coupling).max(), pair, query, network)
    assert np.all(np.sign(np.diff(ratios)) == np.sign(coupling[0] - coupling[1]))  # contributions


@seeds
def test_depth_amplifies_a_longer_copy_whatever_the_keys(seed):
    w_kq, scale, (d, _), query = draw(seed)
    hypothesis.assume(d @ w_kq @ d > 1e-3 and np.vdot(*flow_parts(w_kq, d, query)) >= 0)
    assert np.diff(log_ratios(w_kq, scale, (1.2 * d, d), query)).min() > 0


def test_control_layers_that_pull_back_and_a_shorter_one_ahead_by_its_angle_narrow_the_lead():
    """Contributions go both ways where couplings are below -1."""
    _, scale, pair, query = draw(0)
    assert np.diff(log_ratios(np.eye(E), -scale / E, ordered(pair, query), query)).max() < 0
    pair, query = np.zeros((2, E)), np.eye(E)[0]
    pair[0, 0], pair[1, 1] = 1.0, 1.9
    ratios = log_ratios(np.eye(E), 0.05, pair, query)
    assert (np.diff(ratios) < 0).all()
    assert ratios[0] > 0 > ratios[-1]
    pair = np.sqrt([[1.2], [1.9]]) * query
    assert set(np.sign(np.diff(log_ratios(np.eye(E), -1.0, pair, query, network)))) == {-1.0, 1.0}


def median_size(rows):
    return np.median(np.abs(rows), axis=0)


@seeds
def test_the_lead_starts_as_the_disparity_and_is_never_above_it(seed):
    rng = np.random.default_rng(seed)  # log ratios of pairs, some of which keep their order
    rows = rng.normal(size=(64, 1)) + rng.standard_t(3, size=(64, 5))
    lead = summarise(rows).median
    assert abs(lead[0] - median_size(rows)[0]) < 1e-12
    assert np.all(lead <= median_size(rows) + 1e-12)
    reshuffled = np.concatenate([rows[:, :2], rows[:, 1::-1]])  # each layer as often first
    assert abs(np.diff(median_size(reshuffled))[0]) < 1e-12
    assert np.diff(summarise(reshuffled).median)[0] < 0
    if seed == 0:  # Control: turned by the last layer the same pairs rise
        turned = np.median(reshuffled * np.sign(reshuffled[:, -1:]), axis=0)
        assert np.diff(turned)[0] > 0
        assert median_size(reshuffled)[0] - turned[0] > 1e-2
