"""Masked linear attention sees only the second moment of its prompt: one map W_t takes every token
to layer t, and its update G_t = W_V W_{t-1} S W_{t-1}ᵀ W_Kᵀ W_Q W_{t-1} depends on W_{t-1} alone.

With the query as a key the moment is that of n + 1 tokens; after a causal mask queries share a map.
Papers: A2, Theorem 1, Remark 2. docs/theory, "Moments suffice", "The common map".
"""

import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_prompt, draw_stack, forward, jit_numpy, seeds, stack_sizes
from lsa_lab import prompts
from lsa_lab.analyses import implicit_gd
from lsa_lab.models import linear_attention, moments

SIZE = (3, 2, 5, 3)
trajectory = jit_numpy(implicit_gd.trajectory)


def draw(seed, size):
    """A prompt and weights; at a scale of 0.25 one deep stack in 10⁵ blows rounding up."""
    (num_layers, num_heads, n, d), rng = size, np.random.default_rng(seed)
    return draw_prompt(rng, n, d), draw_stack(rng, num_layers, num_heads, d + 1, 0.1)


@jit_numpy
def layer_maps(params, prompt, query_share=0.0):  # of S_0 + share q qᵀ/n
    query = prompts.tokens(prompt)[-1]
    moment = prompts.second_moment(prompt) + query_share * jnp.outer(query, query) / len(prompt.y)
    return moments.layer_maps(params, moment)


def error_of_maps(seed, size, keys, query_share=0.0):
    prompt, params = draw(seed, size)
    stream = forward(params, np.asarray(prompts.tokens(prompt)), keys=keys).stream
    mapped = np.einsum("lij,tj->lti", layer_maps(params, prompt, query_share), stream[0])
    return np.abs(mapped - stream).max() / (1 + np.abs(stream).max())


@stack_sizes
@seeds
def test_one_map_takes_every_token_to_every_layer(size, seed):
    assert error_of_maps(seed, size, "demonstrations") < 1e-10
    assert error_of_maps(seed, size, "all", query_share=1.0) < 1e-10


@pytest.mark.parametrize("keys", ["all", "causal"])
def test_control_other_masks_have_no_such_map(keys):
    assert error_of_maps(0, SIZE, keys) > 1e-3


def error_of_superposition(seed, size, keys):
    """The query 2a - 3b at every layer, less 2 times that of a and -3 times that of b."""
    prompt, params = draw(seed, size)
    a, b = prompt.x_query, prompt.x[0]
    rows = [prompts.tokens(prompt.replace(x_query=x)) for x in (2 * a - 3 * b, a, b)]
    whole, first, second = (forward(params, np.asarray(r), keys=keys).stream[:, -1] for r in rows)
    return np.abs(whole - 2 * first + 3 * second).max() / (1 + np.abs(whole).max())


@stack_sizes
@seeds
def test_one_map_takes_every_query_after_a_causal_mask(size, seed):
    assert error_of_superposition(seed, size, "causal") < 1e-10


def test_control_a_query_that_is_a_key_has_a_map_of_its_own():
    assert error_of_superposition(0, SIZE, "all") > 1e-3


def draw_factors(seed, size):
    """A prompt, and W_O W_V, W_K, W_Q of every head."""
    (num_layers, num_heads, n, d), rng = size, np.random.default_rng(seed)
    w_v = 0.15 * rng.normal(size=(num_layers, num_heads, d + 1, d + 1))
    factors = 0.5 * rng.normal(size=(2, num_layers, num_heads, 2, d + 1))
    return draw_prompt(rng, n, d), w_v, *factors


def walk(prompt, w_v, w_k, w_q, causal=False):
    """W_t and G_t = ΔW_t W_{t-1} from ΔW_t = (1/n) Σ_h Σ_i (W_V h_i)(W_K h_i)ᵀ W_Q (Lemma 1)."""
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


def error_of_recursion(case, causal=False):
    prompt, w_v, w_k, w_q = case
    path = trajectory(linear_attention.Params(np.swapaxes(w_k, 2, 3) @ w_q, w_v), prompt)
    assert path.residual < 1e-10  # the forward pass follows the maps
    maps, updates = walk(*case, causal)
    difference = max(np.abs(maps - path.maps).max(), np.abs(updates - path.updates).max())
    return difference / np.abs(maps).max()


LONG = (4, 1, 2100, 2)  # above 2048 demonstrations the residual is taken on a stand-in for them


@pytest.mark.parametrize("size", [SIZE, (1, 1, 1, 1), LONG], ids=str)
@seeds
def test_lemma_1_on_the_demonstrations_gives_the_recursion_on_maps(size, seed):
    assert error_of_recursion(draw_factors(seed, size)) < 1e-10


def test_control_causal_demonstrations_leave_the_recursion_at_the_second_layer():
    assert error_of_recursion(draw_factors(0, SIZE), causal=True) > 1e-3
    assert error_of_recursion(draw_factors(0, (1, 2, 4, 2)), causal=True) < 1e-10
