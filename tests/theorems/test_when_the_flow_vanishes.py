"""J = 0 if and only if P = 0, or s = 0 and (P d = 0 or K q = 0); the contribution, if s P d = 0.

Sides: linear attention, differentiated and run with and without d; the factors. That the flow is
zero for an irrelevant or a learned demonstration is a reading of A1 (2508.00385) which holds for
the contribution and not for the Jacobian. Derived here; docs/theory, "When the flow vanishes".
"""

import itertools

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import seeds
from lsa_lab.models import linear_attention
from lsa_lab.theory import amplification

E = 4
FLAGS = list(itertools.product([False, True], repeat=4))


def draw(seed, irrelevant, learned, asks_nothing, writes_nothing):
    """K, P, d and q of which the named factors are zero (K q = 0 makes s zero, P = 0 P d)."""
    rng = np.random.default_rng(seed)
    (w_kq, w_pv), (d, q) = rng.normal(size=(2, E, E)), rng.normal(size=(2, E))
    if asks_nothing:
        w_kq = w_kq - np.outer(w_kq @ q, q) / (q @ q)
    elif irrelevant:
        direction = w_kq @ q
        d = d - direction * (d @ direction) / (direction @ direction)
    if learned:
        w_pv = w_pv - np.outer(w_pv @ d, d) / (d @ d)
    return w_kq, 0 * w_pv if writes_nothing else w_pv, d, q


@jax.jit
def network_sizes(w_kq, w_pv, d, q):
    """|Jacobian| and |contribution|, next to a demonstration that is kept."""
    params = linear_attention.Params(w_kq[None, None], w_pv[None, None])

    def answer(demonstration):
        rows = jnp.stack([demonstration, jnp.ones_like(d), q])
        return linear_attention.forward(params, rows, keys="all").stream[-1, -1]

    added = answer(d) - answer(jnp.zeros_like(d))
    return jnp.linalg.norm(jax.jacfwd(answer)(d)), jnp.linalg.norm(added)


@pytest.mark.parametrize("flags", FLAGS, ids=str)
@hypothesis.settings(max_examples=5)
@seeds
def test_the_flow_needs_more_zeros_than_the_contribution(flags, seed):
    irrelevant, learned, asks_nothing, writes_nothing = flags
    case = draw(seed, *flags)
    flow, added = (size < 1e-10 for size in network_sizes(*case))
    assert added == (irrelevant or asks_nothing or learned or writes_nothing)
    assert flow == (writes_nothing or asks_nothing or (irrelevant and learned))


@seeds
def test_control_one_zero_of_the_two_leaves_a_flow_without_a_contribution(seed):
    for flags in ([True, False, False, False], [False, True, False, False]):
        case = draw(seed, *flags)
        flow, added = network_sizes(*case)
        assert added < 1e-10
        assert flow > 1e-6


@seeds
def test_the_bracket_has_determinant_two_s_to_the_e(seed):
    w_kq, _, d, q = draw(seed, *FLAGS[0])
    score = d @ w_kq @ q
    bracket = amplification.one_shot_jacobian(w_kq, np.eye(E), d, q)
    size = np.linalg.norm(bracket) ** E
    assert abs(np.linalg.det(bracket) - 2 * score**E) < 1e-10 * size
