"""d + 1 virtual demonstrations give every query the answer of n in masked linear attention, and one
does before steps of descent.

The rows √(mλ_k) v_kᵀ of the eigenvectors of S_0 have the second moment S_0. Control: a causal mask
and softmax read more than it; another stack does not answer one demonstration as descent does.
docs/theory, "Virtual demonstrations".
"""

import jax
import numpy as np
import pytest

from draws import draw_prompt, draw_stack, draw_transformer, jit_numpy, seeds, stack_sizes
from lsa_lab import prompts
from lsa_lab.analyses import patches
from lsa_lab.models import constructions, linear_attention, transformer
from lsa_lab.models.trace import predict

SIZE, LONG = (3, 2, 5, 3), (3, 2, 40, 3)  # layers, heads, demonstrations, covariates
answer = jit_numpy(
    lambda params, prompt, keys="demonstrations": predict(
        linear_attention.forward(params, prompts.tokens(prompt), keys=keys)
    ),
    static_argnames="keys",
)
virtual = jit_numpy(patches.virtual_demonstrations)
moment = jit_numpy(patches.moment_demonstrations)
SOFTMAX = transformer.Config(4, 3, 2, 3)
answer_softmax = jit_numpy(
    lambda params, prompt: predict(transformer.forward(params, prompts.tokens(prompt), SOFTMAX))
)


def largest_difference(answer, prompt, other, rng):
    """The largest relative difference of the answers to four queries, one of them long."""
    differences, answers = [], []
    for size in (1.0, 1.0, 1.0, 10.0):
        query = size * rng.normal(size=prompt.x.shape[1])
        first, second = (answer(each.replace(x_query=query)) for each in (prompt, other))
        differences.append(abs(first - second) / size)
        answers.append(abs(first) / size)
    return max(differences) / max(answers)


def draw(seed, size):
    (num_layers, num_heads, n, d), rng = size, np.random.default_rng(seed)
    return rng, draw_prompt(rng, n, d), draw_stack(rng, num_layers, num_heads, d + 1, 0.1)


def error(seed, size, keys="demonstrations", kept=None):
    rng, prompt, params = draw(seed, size)
    few = virtual(params, prompt)
    assert len(few.y) == min(size[2], size[3] + 1)
    np.testing.assert_allclose(*map(prompts.second_moment, (few, prompt)), atol=1e-10)
    if kept is not None:  # the largest rows alone, 1/m and all
        scale = (kept / len(few.y)) ** 0.5
        few = few.replace(x=scale * few.x[:kept], y=scale * few.y[:kept])
    return largest_difference(lambda each: answer(params, each, keys=keys), prompt, few, rng)


@stack_sizes
@seeds
def test_virtual_demonstrations_answer_every_query_as_the_prompt(size, seed):
    assert error(seed, size) < 1e-8


def test_four_answer_as_forty_after_three_layers():
    assert error(0, LONG) < 1e-8


def test_control_a_causal_mask_and_fewer_eigenvectors_answer_otherwise():
    assert error(0, LONG, "causal") > 1e-3
    assert error(0, LONG, kept=1) > 1e-3


def test_control_softmax_answers_otherwise():
    rng, prompt, _ = draw(0, LONG)
    params = draw_transformer(rng, 3, 2, 3, 4, 0.5)
    few = moment(prompt)
    assert largest_difference(lambda each: answer_softmax(params, each), prompt, few, rng) > 1e-3
    same = prompt.replace(x=prompt.x[::-1], y=prompt.y[::-1])  # an equivalent prompt: the order
    assert largest_difference(lambda each: answer_softmax(params, each), prompt, same, rng) < 1e-10


def descent_error(seed, d, scale=1.0, spread=0.0):
    """One demonstration against a prompt, before three steps of descent, times a scale of steps."""
    rng = np.random.default_rng(seed)
    prompt, step_sizes = draw_prompt(rng, 2 * d, d), rng.uniform(0.05, 0.3, 3)
    params = jax.device_get(constructions.gradient_descent(step_sizes, d))
    noise = draw_stack(rng, 3, 1, d + 1, spread)
    params = jax.tree.map(np.add, params, noise)
    basis = [answer(params, prompt.replace(x_query=row)) for row in np.eye(d)]
    one = jax.device_get(patches.descent_demonstration(np.array(basis), scale * step_sizes))
    one = one.replace(x_query=prompt.x_query)
    return largest_difference(lambda each: answer(params, each), prompt, one, rng)


@pytest.mark.parametrize("d", [3, 1])
@seeds
def test_one_demonstration_stands_for_a_prompt_before_descent(d, seed):
    assert descent_error(seed, d) < 1e-8


def test_control_other_steps_and_other_weights_need_more_than_this_one():
    assert descent_error(0, 3, scale=0.5) > 1e-3
    assert descent_error(0, 3, spread=0.1) > 1e-3
