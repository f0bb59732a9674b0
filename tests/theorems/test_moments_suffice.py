"""A2's Theorem 1, and more: masked linear attention sees only the second moment of its prompt.

Sides: the forward pass over n tokens; the recursion on one e x e matrix, for the query as a key on
the moment of n + 1 tokens, for a causal mask by superposition. docs/theory, "Moments suffice", "The
common map".
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_prompt, jit_numpy, seeds
from lsa_lab import prompts
from lsa_lab.models import linear_attention, moments

SHAPES = [(3, 2, 3, 2), (2, 3, 4, 9)]  # L, H, d, n


def draw(seed, num_layers, num_heads, d, n, scale=0.1):
    """A prompt and weights; at a scale of 0.25 one deep stack in 10⁵ blows rounding up."""
    rng = np.random.default_rng(seed)
    weights = scale * rng.normal(size=(2, num_layers, num_heads, d + 1, d + 1))
    return draw_prompt(rng, n, d), linear_attention.Params(*weights)


@partial(jit_numpy, static_argnames="keys")
def run(params, prompt, keys="demonstrations"):
    return linear_attention.forward(params, prompts.tokens(prompt), keys=keys)


@jit_numpy
def maps_of(params, prompt):
    return moments.layer_maps(params, prompts.second_moment(prompt))


@pytest.mark.parametrize("shape", SHAPES)
@seeds
def test_one_map_takes_every_token_to_every_layer(shape, seed):
    prompt, params = draw(seed, *shape)
    stream = run(params, prompt).stream
    mapped = np.einsum("lij,tj->lti", maps_of(params, prompt), stream[0])
    np.testing.assert_allclose(mapped, stream, rtol=1e-10, atol=1e-10)


@jit_numpy
def maps_with_the_query(params, prompt):
    """The recursion on S_0 + q qᵀ/n."""
    query = prompts.tokens(prompt)[-1]
    moment = prompts.second_moment(prompt) + jnp.outer(query, query) / len(prompt.y)
    return moments.layer_maps(params, moment)


@seeds
def test_a_query_that_is_a_key_shares_a_map_with_the_other_tokens(seed):
    prompt, params = draw(seed, *SHAPES[0])
    stream = run(params, prompt, "all").stream
    mapped = np.einsum("lij,tj->lti", maps_with_the_query(params, prompt), stream[0])
    np.testing.assert_allclose(mapped, stream, rtol=1e-10, atol=1e-10)


def from_superposition(seed, keys):
    """The query 2a - 3b at every layer, less 2 times that of a and -3 times that of b."""
    prompt, params = draw(seed, *SHAPES[0])
    a, b = prompt.x_query, prompt.x[0]
    queries = [prompt.replace(x_query=x) for x in (2 * a - 3 * b, a, b)]
    both, first, second = (run(params, each, keys).stream[:, -1] for each in queries)
    return np.abs(both - 2 * first + 3 * second).max() / (1 + np.abs(both).max())


@seeds
def test_one_map_takes_every_query_after_a_causal_mask(seed):
    assert from_superposition(seed, "causal") < 1e-10


def test_control_a_query_that_is_a_key_has_a_map_of_its_own():
    assert from_superposition(0, "all") > 1e-3


@pytest.mark.parametrize("keys", ["all", "causal"])
def test_control_other_masks_have_no_such_map(keys):
    prompt, params = draw(0, *SHAPES[0])
    stream = run(params, prompt, keys).stream
    mapped = np.einsum("lij,tj->lti", maps_of(params, prompt), stream[0])
    assert np.abs(mapped - stream).max() > 1e-3
