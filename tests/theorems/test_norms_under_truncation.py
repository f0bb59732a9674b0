"""Which norms of a layer's update truncation provably lowers, and which not
(docs/theory, "Norms under truncation").

    G_t = W_V S_{t-1} W_Kᵀ W_Q W_{t-1},   UB_t = (1/n) Σ_i |W_V h_i| |W_K h_i| |W_Q|_F.

Truncation multiplies a matrix by a projection, on its left or on its right; a norm falls where that
stands at the outer end of the product. For what stands inside a search finds weights whose update
grows. One head, W_V the whole value matrix.

Sides: ``norms`` and ``upper_bounds`` with one matrix truncated; the same with all of them whole.
"""

import jax
import numpy as np
import pytest

from draws import seed_and
from lsa_lab.analyses import clipping, implicit_gd
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt, tokens

E, N, L = 6, 8, 3
cut = jax.jit(clipping.truncate)
cases = seed_and(share=(0, 0.999))
layers = pytest.mark.parametrize("t", range(L))


def truncated(matrix, share):
    return np.asarray(cut(matrix, share))


def draw(seed):
    """Weights {v, k, q} of L layers, each [L, e, e], and demonstrations as rows [n, e]."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(L, E, E)) / 3 for name in "vkq"}, rng.normal(size=(N, E))


@jax.jit
def sizes(weights, rows):
    """|G_t|_F and UB_t of every layer."""
    w_v, w_k, w_q = (weights[name] for name in "vkq")
    prompt = Prompt(rows[:, :-1], rows[:, -1], rows[0, :-1], rows[0, -1])
    path = implicit_gd.trajectory(Params((w_k.mT @ w_q)[:, None], w_v[:, None]), prompt)
    upper = implicit_gd.upper_bounds(path, w_v, w_k, w_q, tokens(prompt)[:-1])
    return implicit_gd.norms(path), upper


def growth(seed, name, t, share):
    """Ratios minus one: own |G_t|, its UB, the largest of earlier, of later |G|, and Σ|G|²."""
    weights, rows = draw(seed)
    exact, upper = map(np.asarray, sizes(weights, rows))
    weights[name][t] = truncated(weights[name][t], share)
    after, bound = map(np.asarray, sizes(weights, rows))
    each, total = after / exact, (after**2).sum() / (exact**2).sum()
    others = max(each[:t], default=1.0), max(each[t + 1 :], default=0.0)
    names, ratios = "own bound earlier later total", (each[t], bound[t] / upper[t], *others, total)
    return dict(zip(names.split(), np.array(ratios) - 1, strict=True))


def merged_growth(seed, share):
    """|W_V S K| with K = W_Kᵀ W_Q truncated, at the first layer."""
    weights, rows = draw(seed)
    w_v, w_k, w_q = (weights[name][0] for name in "vkq")
    left, merged = w_v @ rows.T @ rows, w_k.T @ w_q
    before, after = (np.linalg.norm(left @ k) for k in (merged, truncated(merged, share)))
    return after / before - 1


@layers
@pytest.mark.parametrize("name", "vkq")
@cases
def test_the_upper_bound_falls_whatever_is_cut_and_updates_before_it_stay(name, t, seed, share):
    grown = growth(seed, name, t, share)
    assert grown["bound"] < 1e-12
    assert grown["earlier"] == 0  # of L updates layer t touches L - t + 1 (A2, Remark 5)


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
