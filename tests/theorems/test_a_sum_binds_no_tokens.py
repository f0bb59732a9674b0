"""A stack whose states are plain sums gives interleaved prompts of opposite tasks one answer.

Nothing is added to a token but what is linear in it. docs/theory, "A sum binds no tokens".
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_weights, jit_numpy, seeds
from lsa_lab.models import prefixes, recurrent
from lsa_lab.prompts import Prompt

N, D = 6, 3


@partial(jit_numpy, static_argnums=0)
def answers(config, constant, params, pair):  # [2, n+1], to both prompts
    def forward(params, rows):
        constants = jnp.broadcast_to(constant, (len(rows), 1))
        return recurrent.forward(params, jnp.concatenate([rows, constants], 1), config)

    return jax.vmap(lambda each: prefixes.predictions(forward, params, each, "interleaved"))(pair)


def answers_to_opposite_tasks(kind, layers, seed, constant=0.0):  # [2, n+1], and targets [n+1]
    sizes = dict(key_width=2, width=5, norm=True, layout="bound")
    config, rng = recurrent.Config(kind, D + 2, layers, 2, **sizes), np.random.default_rng(seed)
    params = draw_weights(rng, recurrent.init, config)
    params = params.replace(attention_norm_offset=0 * params.attention_norm_offset)
    x, w = rng.normal(size=(N + 1, D)), rng.normal(size=D)
    labels, covariates = np.stack([x @ w, -x @ w]), np.stack([x, x])
    pair = Prompt(covariates[:, :N], labels[:, :N], covariates[:, N], labels[:, N])
    return answers(config, constant, params, pair), x @ w


@pytest.mark.parametrize(("kind", "layers"), [("additive", 1), ("retention", 3)])
@seeds
def test_sums_give_one_answer_to_a_task_and_to_its_opposite(kind, layers, seed):
    predictions, targets = answers_to_opposite_tasks(kind, layers, seed)
    np.testing.assert_allclose(*predictions, rtol=1e-7, atol=1e-10)
    risk = ((predictions - np.stack([targets, -targets])) ** 2).mean(0)
    assert (risk >= targets**2 * (1 - 1e-9)).all()  # that of the answer 0


@pytest.mark.parametrize(("kind", "constant"), [("additive", 1.0), ("delta", 0.0)])
def test_control_a_constant_in_the_token_or_steps_of_a_delta_rule_tell_them_apart(kind, constant):
    predictions, _ = answers_to_opposite_tasks(kind, 2, 0, constant)
    assert np.abs(np.subtract(*predictions))[2:].max() > 1e-3 * np.abs(predictions).max()
