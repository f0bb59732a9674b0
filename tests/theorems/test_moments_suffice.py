"""A2's Theorem 1, and more: masked linear attention sees only the second moment of its prompt.

Sides: the forward pass over n tokens; the recursion on one e x e matrix. docs/theory, "Moments
suffice", "The common map".
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsa_lab import prompts
from lsa_lab.models import linear_attention, moments, trace
from lsa_lab.tasks.linear import LinearTask, sample

SHAPES = [(1, 1, 2, 3), (3, 2, 3, 2), (6, 1, 2, 5), (2, 3, 4, 9)]  # L, H, d, n
seeds = st.integers(0, 2**32 - 1)


def draw(seed, num_layers, num_heads, d, n, scale=0.1):
    """A prompt and weights; at a scale of 0.25 one deep stack in 10⁵ blows rounding up."""
    key_prompt, key_params = jax.random.split(jax.random.key(seed))
    prompt = sample(key_prompt, LinearTask(n, d, noise_std=0.3))
    return prompt, linear_attention.init(key_params, num_layers, num_heads, d, scale)


@jax.jit
def run(params, prompt):
    return linear_attention.forward(params, prompts.tokens(prompt))


@jax.jit
def maps_of(params, prompt):
    return moments.layer_maps(params, prompts.second_moment(prompt))


def rotated(prompt, seed):
    """The same second moment from other demonstrations: E → U E with U orthogonal over samples."""
    n = len(prompt.y)
    turn = jnp.linalg.qr(jax.random.normal(jax.random.key(seed), (n, n)))[0]
    return prompt.replace(x=turn @ prompt.x, y=turn @ prompt.y)


@pytest.mark.parametrize("shape", SHAPES)
@given(seed=seeds)
def test_one_map_takes_every_token_to_every_layer(shape, seed):
    prompt, params = draw(seed, *shape)
    stream = np.asarray(run(params, prompt).stream)
    mapped = np.einsum("lij,tj->lti", maps_of(params, prompt), prompts.tokens(prompt))
    np.testing.assert_allclose(mapped, stream, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES[1:])
@given(seed=seeds)
def test_rotated_demonstrations_are_indistinguishable(shape, seed):
    prompt, params = draw(seed, *shape)
    before = trace.predict(run(params, prompt))
    after = trace.predict(run(params, rotated(prompt, seed)))
    np.testing.assert_allclose(after, before, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("keys", ["all", "causal"])
def test_control_other_masks_have_no_such_map(keys):
    prompt, params = draw(0, *SHAPES[1])
    stream = linear_attention.forward(params, prompts.tokens(prompt), keys=keys).stream
    mapped = jnp.einsum("lij,tj->lti", maps_of(params, prompt), prompts.tokens(prompt))
    assert float(jnp.abs(mapped - stream).max()) > 1e-3
