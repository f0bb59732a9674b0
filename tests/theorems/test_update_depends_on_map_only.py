"""A2's Theorem 1 and Remark 2: G_t is a function of W_{t-1} and the demonstrations' second moment.

Sides: Lemma 1 walked through the demonstrations, token by token; the recursion on matrices.
docs/theory, "The common map": G_t = W_V W_{t-1} S W_{t-1}ᵀ W_Kᵀ W_Q W_{t-1}.
"""

import jax
import numpy as np
import pytest

from draws import seeds
from lsa_lab.analyses import implicit_gd
from lsa_lab.models import linear_attention
from lsa_lab.prompts import Prompt

SHAPES = [(3, 2, 5, 1), (5, 9, 3, 2), (4, 2100, 2, 1)]  # L, n, d, H
shapes = pytest.mark.parametrize("shape", SHAPES)
trajectory_of = jax.jit(implicit_gd.trajectory)


def draw(seed, shape):
    """A prompt, and W_O W_V, W_K, W_Q of every head."""
    num_layers, n, d, num_heads = shape
    rng = np.random.default_rng(seed)
    prompt = Prompt(rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=d), np.zeros(()))
    w_v = 0.15 * rng.normal(size=(num_layers, num_heads, d + 1, d + 1))
    return prompt, w_v, *0.5 * rng.normal(size=(2, num_layers, num_heads, 2, d + 1))


def walk(prompt, w_v, w_k, w_q, causal=False):
    """W_t and G_t = ΔW_t W_{t-1} from ΔW_t = (1/n) Σ_h Σ_i (W_V h_i)(W_K h_i)ᵀ W_Q."""
    rows = np.concatenate([prompt.x, prompt.y[:, None]], 1)
    maps, updates, n = [np.eye(rows.shape[1])], [], len(rows)
    for layer in zip(w_v, w_k, w_q, strict=True):
        delta, moved = 0, 0
        for v, k, q in zip(*layer, strict=True):
            outer = np.einsum("ti,tk->tik", rows @ v.T, rows @ k.T) / n
            delta = delta + outer.sum(0) @ q
            read = np.cumsum(outer, 0) if causal else np.broadcast_to(outer.sum(0), outer.shape)
            moved = moved + np.einsum("tik,tk->ti", read, rows @ q.T)
        rows = rows + moved
        updates.append(delta @ maps[-1])
        maps.append(maps[-1] + updates[-1])
    return np.stack(maps), np.stack(updates)


def run(prompt, w_v, w_k, w_q):
    return trajectory_of(linear_attention.Params(np.swapaxes(w_k, 2, 3) @ w_q, w_v), prompt)


def discrepancy(case, causal=False):
    path = run(*case)
    maps, updates = walk(*case, causal)
    difference = max(np.abs(maps - path.maps).max(), np.abs(updates - path.updates).max())
    return difference / np.abs(maps).max()


@shapes
@seeds
def test_lemma_1_on_the_demonstrations_gives_the_recursion_on_maps(shape, seed):
    assert discrepancy(draw(seed, shape)) < 1e-10


@shapes
@seeds
def test_the_forward_pass_follows_the_maps(shape, seed):
    """Above 2048 demonstrations the residual is taken on a stand-in for them."""
    path = run(*draw(seed, shape))
    assert path.residual < 1e-10
    size = np.abs(path.maps).max()
    np.testing.assert_allclose(path.updates, np.diff(path.maps, axis=0), rtol=0, atol=1e-10 * size)


def test_control_causal_demonstrations_leave_the_recursion_at_the_second_layer():
    assert discrepancy(draw(0, SHAPES[0]), causal=True) > 1e-3
    assert discrepancy(draw(0, (1, 4, 2, 2)), causal=True) < 1e-10
