"""Which norms of a layer's update truncation provably lowers, and which not.

    G_t = W_V S_{t-1} W_Kᵀ W_Q W_{t-1},   UB_t = (1/n) Σ_i |W_V h_i| |W_K h_i| |W_Q|_F.

Truncation multiplies a matrix by a projection; a norm falls where that stands at the outer end of
the product, as for W_V, and for W_O with its heads stacked. For what stands inside a search finds
weights whose update grows. Papers: A2, Remarks 4 and 5, Example 4. docs/theory, "Norms under
truncation", "Two readings of the MLP".
"""

import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_transformer, jit_numpy, seed_and
from lsa_lab.analyses import clipping, implicit_gd
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt, tokens

E, N, L = 6, 8, 3
truncate = jit_numpy(clipping.truncate)
cases = seed_and(share=(0, 0.999))
layers = pytest.mark.parametrize("t", range(L))


def draw(seed):
    """Weights {v, k, q} of L layers, each [L, e, e], and demonstrations as rows [n, e]."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(L, E, E)) / 3 for name in "vkq"}, rng.normal(size=(N, E))


@jit_numpy
def sizes(weights, rows):  # |G_t|_F and UB_t of every layer
    w_v, w_k, w_q = (weights[name] for name in "vkq")
    prompt = Prompt(rows[:, :-1], rows[:, -1], rows[0, :-1], rows[0, -1])
    path = implicit_gd.trajectory(Params((w_k.mT @ w_q)[:, None], w_v[:, None]), prompt)
    h = tokens(prompt)[:-1] @ path.maps[:-1].mT  # [L, n, e]
    lengths = jnp.linalg.norm(h @ w_v.mT, axis=2) * jnp.linalg.norm(h @ w_k.mT, axis=2)
    upper = lengths.mean(1) * jnp.linalg.norm(w_q, axis=(1, 2))
    return jnp.linalg.norm(path.updates, axis=(1, 2)), upper


def growth(seed, name, t, share):
    """Ratios minus one: own |G_t|, its UB, the largest of earlier, of later |G|, and Σ|G|²."""
    weights, rows = draw(seed)
    exact, upper = sizes(weights, rows)
    weights[name][t] = truncate(weights[name][t], share)
    after, bound = sizes(weights, rows)
    each, total = after / exact, (after**2).sum() / (exact**2).sum()
    others = max(each[:t], default=1.0), max(each[t + 1 :], default=0.0)
    names, ratios = "own bound earlier later total", (each[t], bound[t] / upper[t], *others, total)
    return dict(zip(names.split(), np.array(ratios) - 1, strict=True))


@layers
@pytest.mark.parametrize("name", "vkq")
@cases
def test_the_upper_bound_falls_whatever_is_truncated_and_earlier_updates_stay(name, t, seed, share):
    grown = growth(seed, name, t, share)
    assert grown["bound"] < 1e-12
    assert grown["earlier"] == 0  # of L updates layer t touches L - t + 1 (A2, Remark 5)
    if name == "v" or (name == "q" and t == 0):
        assert grown["own"] < 1e-12


@cases
def test_at_the_first_layer_it_shrinks_with_merged_scores(seed, share):
    weights, rows = draw(seed)
    w_v, w_k, w_q = (weights[name][0] for name in "vkq")
    left, merged = w_v @ rows.T @ rows, w_k.T @ w_q
    before, after = (np.linalg.norm(left @ k) for k in (merged, truncate(merged, share)))
    assert after / before - 1 < 1e-12


NOT_CLAIMED = {
    "queries after a layer": ("q", 1, "own"),
    "keys at the first layer": ("k", 0, "own"),
    "keys after a layer": ("k", 1, "own"),
    "a later layer": ("v", 0, "later"),
    "the sum in Theorem 2": ("v", 0, "total"),
}


@pytest.mark.parametrize("norm", NOT_CLAIMED)
def test_control_norms_that_are_not_claimed_to_fall_are_found_to_grow(norm):
    name, t, ratio = NOT_CLAIMED[norm]
    assert max(growth(seed, name, t, 0.5)[ratio] for seed in range(50)) > 0.01


def test_control_a_tenfold_growth_by_hand():
    """S = I: truncating the second key direction uncovers what had cancelled the first."""
    w_v, w_k = np.array([[1.0, 1.0], [0.0, 0.0]]), np.diag([1.0, 0.9])
    w_q = np.array([[1.0, 0.0], [-1.0, 0.0]])
    before, after = (np.linalg.norm(w_v @ k.T @ w_q) for k in (w_k, truncate(w_k, 0.5)))
    np.testing.assert_allclose([before, after], [0.1, 1.0], atol=1e-12)


clip = jit_numpy(lambda params, name, rate: clipping.clip(params, 0, name, rate), static_argnums=1)


def growth_with_outputs(seed, name, rate, head=None):
    """|Σ_h W_O^h W_V^h S W_{K,h}ᵀ W_Q^h| with a matrix, or a head's, truncated: ratio minus one."""
    rng = np.random.default_rng(seed)
    params, rows = draw_transformer(rng, 1, 2, 3, E), rng.normal(size=(N, E))
    clipped = clip(params, name, rate)
    if head is not None:
        heads = getattr(params, name).copy()
        heads[0, head] = truncate(heads[0, head], rate)
        clipped = params.replace(**{name: heads})

    def size(params):
        w_q, w_k, w_v, w_o = (w[0] for w in (params.w_q, params.w_k, params.w_v, params.w_o))
        return np.linalg.norm((w_o @ w_v @ rows.T @ rows @ w_k.swapaxes(1, 2) @ w_q).sum(0))

    return size(clipped) / size(params) - 1


@seed_and(rate=(0, 0.999))
def test_the_update_shrinks_with_the_stacked_outputs(seed, rate):
    assert growth_with_outputs(seed, "w_o", rate) < 1e-12


@pytest.mark.parametrize(("name", "head"), [("w_v", None), ("w_o", 0), ("w_k", None)])
def test_control_values_under_outputs_and_outputs_of_one_head_let_it_grow(name, head):
    assert max(growth_with_outputs(seed, name, 0.5, head) for seed in range(30)) > 0.01


@cases
def test_an_update_shrinks_with_an_mlp_behind_it(seed, share):
    mlp, update = np.random.default_rng(seed).normal(size=(2, E, E))
    before, after = (np.linalg.norm(w @ update) for w in (mlp, truncate(mlp, share)))
    assert after <= before * (1 + 1e-12)


def test_control_a_block_with_residuals_grows():
    mlp, update = -np.diag([1.0, 0.5]), np.diag([0.0, 1.0])
    before, after = (np.linalg.norm(update + w + w @ update) for w in (mlp, truncate(mlp, 0.5)))
    np.testing.assert_allclose([before, after], [1, 2**0.5], atol=1e-12)
