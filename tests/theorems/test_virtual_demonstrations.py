"""d + 1 virtual demonstrations give every query the answer of n in masked linear attention, and one
does before steps of descent.

The rows √(mλ_k) v_kᵀ of the eigenvectors of S_0 have the second moment S_0. docs/theory, "Virtual
demonstrations".
"""

from functools import partial

import jax
import numpy as np
import pytest

from draws import draw_prompt, draw_stack, jit_numpy, seeds, stack_sizes
from lsa_lab import prompts
from lsa_lab.analyses import patches
from lsa_lab.models import constructions, linear_attention, transformer
from lsa_lab.models.trace import predict

SIZE = (3, 2, 5, 3)  # layers, heads, demonstrations, covariates
virtual = jit_numpy(patches.virtual_demonstrations)


@partial(jit_numpy, static_argnames="keys")
def answers(params, prompt, queries, keys="demonstrations"):  # [Q, d] -> [Q]
    def answer(query):
        tokens = prompts.tokens(prompt.replace(x_query=query))
        return predict(linear_attention.forward(params, tokens, keys=keys))

    return jax.vmap(answer)(queries)


def largest_difference(params, prompt, other, rng, **rule):
    """The largest relative difference of the answers to four queries, one of them long."""
    scales = np.array([1.0, 1.0, 1.0, 10.0])
    queries = scales[:, None] * rng.normal(size=(4, prompt.x.shape[1]))
    first, second = (answers(params, each, queries, **rule) / scales for each in (prompt, other))
    return np.abs(first - second).max() / np.abs(first).max()


def draw(seed, size):
    (num_layers, num_heads, n, d), rng = size, np.random.default_rng(seed)
    return rng, draw_prompt(rng, n, d), draw_stack(rng, num_layers, num_heads, d + 1, 0.1)


def error(seed, size, keys="demonstrations"):
    rng, prompt, params = draw(seed, size)
    few = virtual(params, prompt)
    assert len(few.y) == min(size[2], size[3] + 1)
    np.testing.assert_allclose(*map(prompts.second_moment, (few, prompt)), atol=1e-10)
    return largest_difference(params, prompt, few, rng, keys=keys)


@stack_sizes
@seeds
def test_virtual_demonstrations_answer_every_query_as_the_prompt(size, seed):
    assert error(seed, size) < 1e-8


def descent_error(seed, scale=1.0, spread=0.0):
    """One demonstration against a prompt, before three steps of descent, times a scale of steps."""
    rng, prompt, _ = draw(seed, SIZE)
    step_sizes = rng.uniform(0.05, 0.3, 3)
    params = jax.device_get(constructions.gradient_descent(step_sizes, 3))
    params = jax.tree.map(np.add, params, draw_stack(rng, 3, 1, 4, spread))
    basis = answers(params, prompt, np.eye(4, 3))[:3]
    size, left = np.linalg.norm(basis), np.prod(1 - scale * step_sizes)
    one = prompt.replace(x=basis[None] / size, y=size[None] / (1 - left))  # x = w/|w|
    return largest_difference(params, prompt, one, rng)


@seeds
def test_one_demonstration_stands_for_a_prompt_before_descent(seed):
    assert descent_error(seed) < 1e-8


def test_control_a_causal_mask_other_steps_and_other_weights_read_more_than_the_few():
    assert error(0, SIZE, "causal") > 1e-3
    assert descent_error(0, scale=0.5) > 1e-3
    assert descent_error(0, spread=0.1) > 1e-3
    softmax = transformer.init(jax.random.key(0), transformer.Config(4, 1, 1, 2))
    with pytest.raises(TypeError, match="an exact set of virtual demonstrations"):
        patches.virtual_demonstrations(softmax, draw(0, SIZE)[1])
