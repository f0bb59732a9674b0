"""J = 0 if and only if P = 0, or s = 0 and (P d = 0 or K q = 0); the contribution, if s P d = 0.

That the flow is zero for an irrelevant or a learned demonstration is a reading of A1 (2508.00385)
which holds for the contribution and not for the Jacobian. Derived here; docs/theory, "When the flow
vanishes".
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from draws import jit_numpy, seeds
from lsa_lab.models import linear_attention
from lsa_lab.theory import amplification

E = 4
one_shot_jacobian = jit_numpy(amplification.one_shot_jacobian)


def draw(seed, irrelevant, learned, asks_nothing, writes_nothing):
    """K, P, d and q of which the named factors are zero (K q = 0 makes s zero, P = 0 P d)."""
    rng = np.random.default_rng(seed)
    (w_kq, w_pv), (d, q) = rng.normal(size=(2, E, E)), rng.normal(size=(2, E))
    asked = w_kq @ q
    if asks_nothing:
        w_kq = w_kq - np.outer(asked, q) / (q @ q)
    elif irrelevant:
        d = d - asked * (d @ asked) / (asked @ asked)
    if learned:
        w_pv = w_pv - np.outer(w_pv @ d, d) / (d @ d)
    return w_kq, 0 * w_pv if writes_nothing else w_pv, d, q


@jit_numpy
def network_sizes(w_kq, w_pv, d, q):
    """|Jacobian| and |contribution|, next to a demonstration that is kept."""
    params = linear_attention.Params(w_kq[None, None], w_pv[None, None])

    def answer(demonstration):
        rows = jnp.stack([demonstration, jnp.ones_like(d), q])
        return linear_attention.forward(params, rows, keys="all").stream[-1, -1]

    added = answer(d) - answer(jnp.zeros_like(d))
    return jnp.linalg.norm(jax.jacfwd(answer)(d)), jnp.linalg.norm(added)


@seeds
def test_the_flow_needs_more_zeros_than_the_contribution(seed):
    for flags in itertools.product([False, True], repeat=4):
        irrelevant, learned, asks_nothing, writes_nothing = flags
        flow, added = network_sizes(*draw(seed, *flags))
        assert (added < 1e-10) == any(flags)
        vanishes = writes_nothing or asks_nothing or (irrelevant and learned)
        assert flow < 1e-10 if vanishes else flow > 1e-6  # with one zero of the two there is a flow


@seeds
def test_the_bracket_has_determinant_two_s_to_the_e(seed):
    w_kq, _, d, q = draw(seed, False, False, False, False)
    bracket = one_shot_jacobian(w_kq, np.eye(E), d, q)
    stated, size = 2 * (d @ w_kq @ q) ** E, np.linalg.norm(bracket) ** E
    assert abs(np.linalg.det(bracket) - stated) < 1e-10 * size
