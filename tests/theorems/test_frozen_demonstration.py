"""A demonstration that stays as it was: q_L = q + ((1 + κ)^L - 1)/κ · s P d, κ = d·K P d.

Sides: a stack of linear attention with skew K, where d·K d = 0 keeps the demonstration, and for any
K a walk in which only the query moves; the closed forms. Derived here; docs/theory, "The frozen
demonstration".
"""

import jax
import numpy as np
import pytest

from draws import seeds
from lsa_lab.models import linear_attention
from lsa_lab.theory import amplification

E = 5
L = 6
forward = jax.jit(linear_attention.forward)
tied = jax.jit(amplification.frozen_demonstration, static_argnums=4)
untied = jax.jit(amplification.frozen_demonstration_untied)


def draw(seed, e, share, symmetric=0.0, coupling=1.0):
    """K, P [L, e, e] whose symmetric parts (of K), and d·K P d, are scaled; d and q [e].

    ``share`` is 0 for tied weights and 1 for independent ones.
    """
    rng = np.random.default_rng(seed)
    first, own = rng.normal(size=(2, 1, e, e)), rng.normal(size=(2, L, e, e))
    w_kq, w_pv = 0.5 * (first + share * own)
    turned = w_kq.swapaxes(1, 2)
    w_kq = (w_kq - turned) / 2 + symmetric * (w_kq + turned) / 2
    d, q = rng.normal(size=(2, e))
    w_pv = coupling * w_pv + (1 - coupling) * np.outer(d, d)  # d·K d = 0 for skew K
    return w_kq, w_pv, d, q


def walk(w_kq, w_pv, d, q):
    path = [q]
    for keys, values in zip(w_kq, w_pv, strict=True):
        path.append(path[-1] + values @ d * (d @ keys @ path[-1]))
    return np.stack(path)


def run(w_kq, w_pv, d, q):
    params = linear_attention.Params(w_kq[:, None], w_pv[:, None])
    return np.asarray(forward(params, np.stack([d, q])).stream[:, -1])


def disagreement(path, stated):
    return np.abs(path - stated).max() / np.abs(path).max()


@pytest.mark.parametrize("coupling", [1.0, 1e-9, 0.0])
@seeds
def test_equal_layers_follow_the_geometric_series(coupling, seed):
    case = draw(seed, E, 0.0, coupling=coupling)
    stated = tied(case[0][0], case[1][0], *case[2:], L)
    assert disagreement(run(*case), stated) < 1e-10
    case = draw(seed, E, 0.0, symmetric=1.0)
    assert disagreement(walk(*case), tied(case[0][0], case[1][0], *case[2:], L)) < 1e-10


@seeds
def test_any_layers_follow_the_product(seed):
    case = draw(seed, E, 1.0)
    assert disagreement(run(*case), untied(*case)) < 1e-10
    case = draw(seed, E, 1.0, symmetric=1.0)
    assert disagreement(walk(*case), untied(*case)) < 1e-10


def test_control_a_demonstration_that_moves_or_layers_that_differ_break_it():
    w_kq, w_pv, d, q = case = draw(0, 5, 0.0, symmetric=1.0)
    assert disagreement(run(*case), tied(w_kq[0], w_pv[0], d, q, L)) > 1e-2
    assert disagreement(run(*case), untied(*case)) > 1e-2
    w_kq, w_pv, d, q = case = draw(0, 5, 1.0)
    assert disagreement(run(*case), tied(w_kq[0], w_pv[0], d, q, L)) > 1e-2
