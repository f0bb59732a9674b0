"""Which norms of a layer's update truncation provably lowers, and which not (THEORY I.2.7).

    G_t = W_V S_{t-1} W_Kᵀ W_Q W_{t-1},   UB_t = Σ_i |W_V h_i| |W_K h_i| |W_Q|_F.

U_r U_rᵀ is what truncation multiplies a matrix by on its left, V_r V_rᵀ on its right; a norm falls
where that projection stands at the outer end of the product. What stands inside is turned, and for
those norms a search finds weights whose update grows. One head, W_V the whole value matrix.
"""

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest

from lsa_lab.analyses import clipping

E, N, L = 6, 8, 3
cut = jax.jit(clipping.truncate)
cases = hypothesis.given(seed=st.integers(0, 2**32 - 1), share=st.floats(0, 0.999))
layers = pytest.mark.parametrize("t", range(L))


def truncated(matrix, share):
    return np.asarray(cut(matrix, share))


def draw(seed):
    """Weights {v, k, q} of L layers, and demonstrations as columns."""
    rng = np.random.default_rng(seed)
    weights = [{name: rng.normal(size=(E, E)) / E for name in "vkq"} for _ in range(L)]
    return weights, rng.normal(size=(E, N))


def walk(weights, h):
    """|G_t|_F and UB_t of every layer."""
    w, exact, upper = np.eye(E), [], []
    for layer in weights:
        now = w @ h
        values, keys = layer["v"] @ now, layer["k"] @ now
        update = values @ keys.T @ layer["q"] @ w
        exact.append(np.linalg.norm(update))
        lengths = np.linalg.norm(values, axis=0) * np.linalg.norm(keys, axis=0)
        upper.append(lengths.sum() * np.linalg.norm(layer["q"]))
        w = w + update
    return np.array(exact), np.array(upper)


def growth(seed, name, t, share):
    """Ratios minus one: own |G_t|, its UB, the largest of later |G|, and Σ|G|² of Theorem 2."""
    weights, h = draw(seed)
    exact, upper = walk(weights, h)
    weights[t] = {**weights[t], name: truncated(weights[t][name], share)}
    after, bound = walk(weights, h)
    later = max(after[t + 1 :] / exact[t + 1 :], default=0.0)
    ratios = after[t] / exact[t], bound[t] / upper[t], later, (after**2).sum() / (exact**2).sum()
    return dict(zip(("own", "bound", "later", "total"), np.array(ratios) - 1, strict=True))


def merged_growth(seed, share):
    """|W_V S K| with K = W_Kᵀ W_Q truncated as one matrix, at the first layer."""
    (layer, *_), h = draw(seed)
    merged = layer["k"].T @ layer["q"]
    left = layer["v"] @ h @ h.T
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


FOUND = {
    "queries behind a layer": lambda seed: growth(seed, "q", 1, 0.5)["own"],
    "keys at the first layer": lambda seed: growth(seed, "k", 0, 0.5)["own"],
    "keys behind a layer": lambda seed: growth(seed, "k", 1, 0.5)["own"],
    "a later layer": lambda seed: growth(seed, "v", 0, 0.5)["later"],
    "the sum in Theorem 2": lambda seed: growth(seed, "v", 0, 0.5)["total"],
}


@pytest.mark.parametrize("norm", FOUND)
def test_control_norms_that_are_not_claimed_to_fall_are_found_to_grow(norm):
    assert max(map(FOUND[norm], range(50))) > 0.01


def test_control_a_tenfold_growth_by_hand():
    """S = I: cutting the second key direction uncovers what had cancelled the first."""
    w_v, w_k = np.array([[1.0, 1.0], [0.0, 0.0]]), np.diag([1.0, 0.9])
    w_q = np.array([[1.0, 0.0], [-1.0, 0.0]])
    before, after = (np.linalg.norm(w_v @ k.T @ w_q) for k in (w_k, truncated(w_k, 0.5)))
    np.testing.assert_allclose([before, after], [0.1, 1.0], atol=1e-12)
