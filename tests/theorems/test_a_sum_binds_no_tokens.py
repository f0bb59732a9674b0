"""A stack whose states are plain sums answers interleaved tokens x_1, y_1, x_2, ... with nothing.

docs/theory, "A sum binds no tokens". Sides: recurrent stacks with any weights; the same prompt with
the labels of the opposite task, and the risk of the answer 0.
Hypothesis: nothing is added to a token but what is linear in it; (w, ε), (-w, -ε) are as likely.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.models import prefixes, recurrent
from lsa_lab.prompts import Prompt

N, D = 6, 3


@partial(jit_numpy, static_argnums=0)
def answers(config, constant, params, pair):  # [2, n+1], to both prompts
    def forward(params, rows):
        constants = jnp.broadcast_to(constant, (len(rows), 1))
        return recurrent.forward(params, jnp.concatenate([rows, constants], 1), config)

    def answer(prompt):
        return prefixes.predictions(forward, params, prompt, "interleaved")

    return jax.vmap(answer)(pair)


def answers_of(kind, layers, seed, constant=0.0):  # [2, n+1], to a task and to its opposite
    shape = dict(key_width=2, width=5, norm=True, layout="bound")
    config = recurrent.Config(kind, D + 2, layers, 2, **shape)
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(recurrent.init, jax.random.key(0), config)
    params = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), shapes)
    params = params.replace(attention_norm_offset=0 * params.attention_norm_offset)
    x, w = rng.normal(size=(N + 1, D)), rng.normal(size=D)
    pair = [Prompt(x[:N], sign * x[:N] @ w, x[N], sign * x[N] @ w) for sign in (1, -1)]
    pair = jax.tree.map(lambda *leaves: np.stack(leaves), *pair)
    return answers(config, constant, params, pair), x @ w


@pytest.mark.parametrize(("kind", "layers"), [("additive", 1), ("retention", 3)])
@seeds
def test_sums_give_one_answer_to_a_task_and_to_its_opposite(kind, layers, seed):
    answers, targets = answers_of(kind, layers, seed)
    np.testing.assert_allclose(*answers, rtol=1e-7, atol=1e-10)
    risk = ((answers - np.stack([targets, -targets])) ** 2).mean(0)
    assert (risk >= targets**2 * (1 - 1e-9)).all()


def test_control_a_constant_in_the_token_or_steps_of_its_own_tell_them_apart():
    for kind, layers, constant in (("additive", 2, 1.0), ("delta", 2, 0.0)):
        answers, _ = answers_of(kind, layers, 0, constant)
        assert np.abs(np.subtract(*answers))[2:].max() > 1e-3 * np.abs(answers).max()
