"""d + 1 virtual demonstrations give every query the answer of n in masked linear attention, and one
does before steps of descent. A patch of the weights from m queries has their answers, and carries
the share min(m/d, 1) to others in one layer.

The rows √(mλ_k) v_kᵀ of the eigenvectors of S_0 have the second moment S_0. The share is averaged
exactly: over the subsets of m of d orthogonal queries, and over the queries of an orthogonal basis.
Control: softmax and a query that is a key have no map for all queries. docs/theory, "Virtual
demonstrations", "A patch carries its share".
"""

import itertools
from functools import partial

import jax
import numpy as np
import pytest

from draws import (
    as_tokens,
    draw_prompt,
    draw_rotation,
    draw_stack,
    draw_transformer,
    forward,
    jit_numpy,
    seeds,
    stack_sizes,
)
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


N, D = 7, 4
SOFTMAX = transformer.Config(D + 1, 1, 2, 3)
run_softmax = jit_numpy(lambda params, tokens: transformer.forward(params, tokens, SOFTMAX).stream)
rank_one = jit_numpy(patches.rank_one_patch)
least_squares = jit_numpy(patches.least_squares_patch)
carried = jit_numpy(patches.carried_share)


def attend(rng, kind):
    """Return a function from a query to its token before and after a layer that reads a prompt."""
    prompt, linear = draw_prompt(rng, N, D), draw_stack(rng, 1, 2, D + 1)
    softmax = draw_transformer(rng, 1, 2, 3, D + 1)

    def layer(query):
        tokens = as_tokens(prompt.replace(x_query=query))
        if kind == "softmax":
            return run_softmax(softmax, tokens)[:, -1]
        return forward(linear, tokens, keys=kind).stream[:, -1]

    return layer


@pytest.mark.parametrize("kind", ["demonstrations", "softmax"])
@seeds
def test_the_rank_one_patch_does_for_its_query_what_the_context_does(kind, seed):
    rng = np.random.default_rng(seed)
    layer, weights = attend(rng, kind), rng.normal(size=(3, D + 1))
    bare, changed = layer(rng.normal(size=D))
    patch = rank_one(weights, bare, changed)
    np.testing.assert_allclose((weights + patch) @ bare, weights @ changed, atol=1e-10)
    singular = np.linalg.svd(patch, compute_uv=False)
    assert singular[1] < 1e-12 * (1 + singular[0])
    other, after = layer(rng.normal(size=D))  # Control: another query
    assert np.abs((weights + patch) @ other - weights @ after).max() > 1e-9


def mean_share(seed, kind, m):
    """The mean share that patches of m of d orthogonal queries carry to an orthogonal basis."""
    rng = np.random.default_rng(seed)
    layer = attend(rng, kind)
    frame, basis = (D**0.5 * draw_rotation(rng, D) for _ in range(2))
    writes, tested = (
        np.array([after - bare for bare, after in map(layer, rows)]) for rows in (frame, basis)
    )
    shares = []
    for chosen in map(list, itertools.combinations(range(D), m)):
        patch = least_squares(frame[chosen], writes[chosen])
        np.testing.assert_allclose(frame[chosen] @ patch.T, writes[chosen], atol=1e-10)
        shares.append(carried(patch, basis, tested))
    return np.mean(shares)


@seeds
def test_patches_of_m_queries_carry_the_share_m_over_d(seed):
    for m in (1, 3, D):
        assert abs(mean_share(seed, "demonstrations", m) - m / D) < 1e-10
    if seed == 0:  # Control: without a map of all queries
        assert min(abs(mean_share(0, kind, D) - 1) for kind in ("softmax", "all")) > 1e-3


def test_more_queries_than_covariates_carry_all_of_it():
    rng = np.random.default_rng(1)
    matrix, inputs, tested = rng.normal(size=(2, D)), *rng.normal(size=(2, 3 * D, D))
    patch = least_squares(inputs, inputs @ matrix.T)
    np.testing.assert_allclose(carried(patch, tested, tested @ matrix.T), 1, atol=1e-12)
