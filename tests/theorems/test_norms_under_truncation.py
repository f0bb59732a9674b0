"""Which norms of a layer's update truncation provably lowers, and which not.

    G_t = W_V S_{t-1} W_Kᵀ W_Q W_{t-1},   UB_t = (1/n) Σ_i |W_V h_i| |W_K h_i| |W_Q|_F.

A norm falls where the truncated matrix stands at the outer end of the product, as W_V does, and W_O
with its heads stacked. Papers: A2, Remarks 4 and 5, Example 4. docs/theory, "Norms under
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
clip = jit_numpy(lambda params, name, rate: clipping.clip(params, 0, name, rate), static_argnums=1)
cases = seed_and(share=(0, 0.999))


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


@pytest.mark.parametrize("name", "vkq")
@cases
def test_the_upper_bound_falls_whatever_is_truncated_and_earlier_updates_stay(name, seed, share):
    for t in range(L):
        grown = growth(seed, name, t, share)
        assert grown["bound"] < 1e-12
        assert grown["earlier"] == 0  # of L updates layer t touches L - t + 1 (A2, Remark 5)
        if name == "v" or (name == "q" and t == 0):
            assert grown["own"] < 1e-12


@cases
def test_an_update_shrinks_with_merged_scores_at_first_and_with_an_mlp_behind_it(seed, share):
    weights, rows = draw(seed)
    w_v, w_k, w_q = (weights[name][0] for name in "vkq")
    left, merged, mlp = w_v @ rows.T @ rows, w_k.T @ w_q, weights["v"][1]
    update = np.linalg.norm(left @ merged)
    assert np.linalg.norm(left @ truncate(merged, share)) <= update * (1 + 1e-12)
    after = np.linalg.norm(truncate(mlp, share) @ left @ merged)
    assert after <= np.linalg.norm(mlp @ left @ merged) * (1 + 1e-12)


@pytest.mark.parametrize(  # the last is the sum in Theorem 2
    ("name", "t", "ratio"),
    [("q", 1, "own"), ("k", 0, "own"), ("k", 1, "own"), ("v", 0, "later"), ("v", 0, "total")],
)
def test_control_norms_that_are_not_claimed_to_fall_are_found_to_grow(name, t, ratio):
    assert any(growth(seed, name, t, 0.5)[ratio] > 0.01 for seed in range(50))


def test_control_by_hand_keys_let_an_update_grow_tenfold_and_residuals_a_block_with_an_mlp():
    """S = I: truncating the second key direction uncovers what had cancelled the first."""
    w_v, w_k = np.array([[1.0, 1.0], [0.0, 0.0]]), np.diag([1.0, 0.9])
    w_q = np.array([[1.0, 0.0], [-1.0, 0.0]])
    sizes = [np.linalg.norm(w_v @ k.T @ w_q) for k in (w_k, truncate(w_k, 0.5))]
    np.testing.assert_allclose(sizes, [0.1, 1.0], atol=1e-12)
    mlp, update = -np.diag([1.0, 0.5]), np.diag([0.0, 1.0])
    sizes = [np.linalg.norm(update + w + w @ update) for w in (mlp, truncate(mlp, 0.5))]
    np.testing.assert_allclose(sizes, [1, 2**0.5], atol=1e-12)


def growth_with_outputs(seed, change):
    """By how much a change of the weights makes |Σ_h W_O^h W_V^h S W_{K,h}ᵀ W_Q^h| larger."""
    rng = np.random.default_rng(seed)
    params, rows = draw_transformer(rng, 1, 2, 3, E), rng.normal(size=(N, E))
    before, after = (
        np.linalg.norm((p.w_o @ p.w_v @ rows.T @ rows @ p.w_k.mT @ p.w_q).sum(1))
        for p in (params, change(params))
    )
    return after / before - 1


def clip_one_head(params):
    return params.replace(w_o=np.stack([truncate(params.w_o[0, 0], 0.5), params.w_o[0, 1]])[None])


@seed_and(rate=(0, 0.999))
def test_the_update_shrinks_with_the_stacked_outputs(seed, rate):
    assert growth_with_outputs(seed, lambda params: clip(params, "w_o", rate)) < 1e-12


def test_control_values_under_outputs_keys_and_outputs_of_one_head_let_it_grow():
    clipped = [lambda params, name=name: clip(params, name, 0.5) for name in ("w_v", "w_k")]
    for change in (*clipped, clip_one_head):
        assert any(growth_with_outputs(seed, change) > 0.01 for seed in range(30))
