"""Masked linear attention sees only the second moment of its prompt: one map W_t takes every token
to layer t, and its update G_t = W_V W_{t-1} S W_{t-1}ᵀ W_Kᵀ W_Q W_{t-1} depends on W_{t-1} alone.

With the query as a key the moment is that of n + 1 tokens; after a causal mask queries share a map.
A linear head takes h to h + ΔW h, and the rank of ΔW is limited by demonstrations and weights.
Papers: A2, Lemma 1, Theorem 1, Remark 2. docs/theory, "The implicit update", "Moments suffice",
"The common map".
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

import draws
from draws import forward, jit_numpy, relative_error, seeds, stack_sizes
from lsa_lab import prompts
from lsa_lab.analyses import implicit_gd
from lsa_lab.models import linear_attention, moments, transformer

SIZE = (3, 2, 5, 3)
trajectory = jit_numpy(implicit_gd.trajectory)


@jit_numpy
def layer_maps(params, prompt, query_share):  # of S_0 + share q qᵀ/n
    query = prompts.tokens(prompt)[-1]
    moment = prompts.second_moment(prompt) + query_share * jnp.outer(query, query) / len(prompt.y)
    return moments.layer_maps(params, moment)


@stack_sizes
@seeds
def test_one_map_takes_every_token_to_every_layer(size, seed):
    (num_layers, num_heads, n, d), rng = size, np.random.default_rng(seed)
    prompt = draws.draw_prompt(rng, n, d)
    rows = draws.as_tokens(prompt)
    # At a scale of 0.25 one deep stack in 10⁵ blows rounding up.
    params = draws.draw_stack(rng, num_layers, num_heads, d + 1, 0.1)
    streams = {k: forward(params, rows, keys=k).stream for k in ("demonstrations", "all", "causal")}
    mapped, with_query = (
        np.einsum("lij,tj->lti", layer_maps(params, prompt, share), rows) for share in (0.0, 1.0)
    )
    assert relative_error(mapped, streams["demonstrations"]) < 1e-10
    assert relative_error(with_query, streams["all"]) < 1e-10
    if seed == 0 and size == SIZE:  # Control: other masks have no such map
        assert min(relative_error(mapped, streams[keys]) for keys in ("all", "causal")) > 1e-3

    def error_of_superposition(keys):  # at the query 2a - 3b
        queries = 2 * prompt.x_query - 3 * prompt.x[0], prompt.x_query, prompt.x[0]
        tokens = [draws.as_tokens(prompt.replace(x_query=query)) for query in queries]
        whole, first, second = (forward(params, t, keys=keys).stream[:, -1] for t in tokens)
        return relative_error(2 * first - 3 * second, whole)

    assert error_of_superposition("causal") < 1e-10
    if seed == 0 and size == SIZE:  # Control: a query that is a key has a map of its own
        assert error_of_superposition("all") > 1e-3


def walk(prompt, w_v, w_k, w_q, causal):
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


def error_of_recursion(seed, size, causal=False):
    (num_layers, num_heads, n, d), rng = size, np.random.default_rng(seed)
    w_v = 0.15 * rng.normal(size=(num_layers, num_heads, d + 1, d + 1))  # W_O W_V
    w_k, w_q = 0.5 * rng.normal(size=(2, num_layers, num_heads, 2, d + 1))
    prompt = draws.draw_prompt(rng, n, d)
    path = trajectory(linear_attention.Params(w_k.swapaxes(2, 3) @ w_q, w_v), prompt)
    assert path.residual < 1e-10  # the forward pass follows the maps
    maps, updates = walk(prompt, w_v, w_k, w_q, causal)
    difference = max(np.abs(maps - path.maps).max(), np.abs(updates - path.updates).max())
    return difference / np.abs(maps).max()


LONG = (4, 1, 2100, 2)  # above 2048 demonstrations the residual is taken on a stand-in for them


@pytest.mark.parametrize("size", [SIZE, (1, 1, 1, 1), LONG], ids=str)
@seeds
def test_lemma_1_on_the_demonstrations_gives_the_recursion_on_maps(size, seed):
    assert error_of_recursion(seed, size) < 1e-10
    if seed == 0 and size == SIZE:  # Control: causal ones leave it, at the second layer
        assert error_of_recursion(0, SIZE, causal=True) > 1e-3
        assert error_of_recursion(0, (1, *SIZE[1:]), causal=True) < 1e-10


@partial(jit_numpy, static_argnames="keys")
def run(params, tokens, keys):  # the stream of one layer without 1/n, as in A2
    _, num_heads, k, e = params.w_q.shape
    config = transformer.Config(e, 1, num_heads, k, kernel="linear", keys=keys, normalise=False)
    return transformer.forward(params, tokens, config).stream


@pytest.mark.parametrize("shape", [(9, 3, 2, 2), (2, 5, 6, 1), (1, 1, 1, 1)])  # n, d, k, H
@seeds
def test_a_linear_layer_is_an_implicit_update_of_every_token_of_limited_rank(shape, seed):
    """ΔW = (Σ_i W_O W_V h_i ⊗ W_K h_i) W_Q of every head, the query being no demonstration."""
    (n, d, k, num_heads), rng = shape, np.random.default_rng(seed)
    params = draws.draw_transformer(rng, 1, num_heads, k, d + 1)
    tokens = rng.normal(size=(n + 1, d + 1))
    w_q, w_k, w_v, w_o = (w[0] for w in (params.w_q, params.w_k, params.w_v, params.w_o))
    updates = w_o @ w_v @ tokens[:-1].T @ tokens[:-1] @ w_k.swapaxes(1, 2) @ w_q  # [H, e, e]
    stated = tokens + tokens @ updates.sum(0).T

    def error(keys):
        after = run(params, tokens, keys)[1]
        return np.abs(stated - after).max() / np.abs(after).max()

    assert error("demonstrations") < 1e-10
    rtol = 10 * (d + 1) * np.finfo(float).eps
    assert (np.linalg.matrix_rank(updates, rtol=rtol) <= min(n, d + 1, k)).all()
    if seed == 0 and num_heads == 2:  # Control: other masks, and two heads together
        assert min(error("all"), error("causal")) > 1e-3
        assert np.linalg.matrix_rank(updates.sum(0), rtol=rtol) > k
