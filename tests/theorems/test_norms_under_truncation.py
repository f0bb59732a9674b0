"""Which norms of a layer's update truncation provably lowers, and which not
(docs/theory, "Norms under truncation").

    G_t = W_V S_{t-1} W_Kᵀ W_Q W_{t-1},   UB_t = (1/n) Σ_i |W_V h_i| |W_K h_i| |W_Q|_F.

U_r U_rᵀ is what truncation multiplies a matrix by on its left, V_r V_rᵀ on its right; a norm falls
where that projection stands at the outer end of the product. What stands inside is turned, and for
those norms a search finds weights whose update grows. One head, W_V the whole value matrix.

Sides: ``norms`` and ``upper_bounds`` with one matrix truncated; the same with all of them whole.
"""

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest

from lsa_lab.analyses import clipping, implicit_gd
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt, tokens

E, N, L = 6, 8, 3
cut = jax.jit(clipping.truncate)
cases = hypothesis.given(seed=st.integers(0, 2**32 - 1), share=st.floats(0, 0.999))
layers = pytest.mark.parametrize("t", range(L))


def truncated(matrix, share):
    return np.asarray(cut(matrix, share))


def draw(seed):
    """Weights {v, k, q} of L layers, each [L, e, e], and demonstrations as rows [n, e]."""
    rng = np.random.default_rng(seed)
    weights = {name: rng.normal(size=(L, E, E)) / 3 for name in "vkq"}
    return weights, rng.normal(size=(N, E))


@jax.jit
def sizes(weights, rows):
    """|G_t|_F and UB_t of every layer."""
    w_v, w_k, w_q = (weights[name] for name in "vkq")
    prompt = Prompt(rows[:, :-1], rows[:, -1], rows[0, :-1], rows[0, -1])
    path = implicit_gd.trajectory(Params((w_k.mT @ w_q)[:, None], w_v[:, None]), prompt)
    upper = implicit_gd.upper_bounds(path, w_v, w_k, w_q, tokens(prompt)[:-1])
    return implicit_gd.norms(path), upper


def growth(seed, name, t, share):
    """Ratios minus one: own |G_t|, its UB, the largest of later |G|, and Σ|G|² of Theorem 2."""
    weights, rows = draw(seed)
    exact, upper = map(np.asarray, sizes(weights, rows))
    weights[name][t] = truncated(weights[name][t], share)
    after, bound = map(np.asarray, sizes(weights, rows))
    later = max(after[t + 1 :] / exact[t + 1 :], default=0.0)
    ratios = after[t] / exact[t], bound[t] / upper[t], later, (after**2).sum() / (exact**2).sum()
    return dict(zip(("own", "bound", "later", "total"), np.array(ratios) - 1, strict=True))


def merged_growth(seed, share):
    """|W_V S K| with K = W_Kᵀ W_Q truncated as one matrix, at the first layer."""
    weights, rows = draw(seed)
    w_v, w_k, w_q = (weights[name][0] for name in "vkq")
    left, merged = w_v @ rows.T @ rows, w_k.T @ w_q
    before, after = (np.linalg.norm(left @ k) for k in (merged, truncated(merged, share)))
    return after / before - 1


@layers
@pytest.mark.parametrize("name", "vkq")
@cases
def test_the_upper_bound_falls_whatever_is_cut(name, t, seed, share):
    assert growth(seed, name, t, share)["bound"] < 1e-12


@layers
@cases
def test_a_layers_own_update_shrinks_with_its_values(t, seed, share):
    assert growth(seed, "v", t, share)["own"] < 1e-12


@cases
def test_at_the_first_layer_it_shrinks_with_queries_and_with_merged_scores(seed, share):
    assert growth(seed, "q", 0, share)["own"] < 1e-12
    assert merged_growth(seed, share) < 1e-12


NOT_CLAIMED = {
    "queries after a layer": lambda seed: growth(seed, "q", 1, 0.5)["own"],
    "keys at the first layer": lambda seed: growth(seed, "k", 0, 0.5)["own"],
    "keys after a layer": lambda seed: growth(seed, "k", 1, 0.5)["own"],
    "a later layer": lambda seed: growth(seed, "v", 0, 0.5)["later"],
    "the sum in Theorem 2": lambda seed: growth(seed, "v", 0, 0.5)["total"],
}


@pytest.mark.parametrize("norm", NOT_CLAIMED)
def test_control_norms_that_are_not_claimed_to_fall_are_found_to_grow(norm):
    assert max(map(NOT_CLAIMED[norm], range(50))) > 0.01


def test_control_a_tenfold_growth_by_hand():
    """S = I: cutting the second key direction uncovers what had cancelled the first."""
    w_v, w_k = np.array([[1.0, 1.0], [0.0, 0.0]]), np.diag([1.0, 0.9])
    w_q = np.array([[1.0, 0.0], [-1.0, 0.0]])
    before, after = (np.linalg.norm(w_v @ k.T @ w_q) for k in (w_k, truncated(w_k, 0.5)))
    np.testing.assert_allclose([before, after], [0.1, 1.0], atol=1e-12)
