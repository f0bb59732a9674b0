"""`amplification` and limits of `bayes_flows`: stacks and counterexamples beside plain loops."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.flow import pairs
from experiments.flow.amplification import compute as stacks
from experiments.flow.bayes_flows import limits
from experiments.models import tasks
from experiments.models.model import Model, init
from experiments.models.named import tiny
from lsa_lab import prompts
from lsa_lab.models import linear_attention
from lsa_lab.models.linear_attention import Params
from lsa_lab.models.trace import predict
from lsa_lab.prompts import Prompt

STEP = 1e-30  # of a derivative in the complex plane, which is then exact


def layers(w_kq, w_pv, demonstration, query):  # [L, e, e] x 2 -> the query after every layer
    """Both tokens read both, one demonstration."""
    path = []
    for kq, pv in zip(w_kq, w_pv, strict=True):
        keys = (demonstration, query)
        demonstration, query = (
            token + sum((key @ kq @ token) * (pv @ key) for key in keys) for token in keys
        )
        path.append(query)
    return path


def flows(w_kq, w_pv, demonstration, query):  # -> |∂q/∂d| after every layer
    e, columns = len(query), []
    for i in range(e):
        moved = demonstration + 1j * STEP * np.eye(e)[i]
        columns.append([after.imag / STEP for after in layers(w_kq, w_pv, moved, query)])
    return np.linalg.norm(np.array(columns), axis=(0, 2))


def test_the_log_ratio_is_that_of_flows_through_loops():
    rng = np.random.default_rng(0)
    shapes = ((3, 3), (3, 3), (2, 3), (2,))
    point = tuple(jnp.asarray(rng.normal(size=shape)) for shape in shapes)
    small = jax.jit(limits.normalise)(point, 0.7)
    for part, size in zip(small, (0.7**0.5, 0.7**0.5, 2**0.5, 1), strict=True):
        assert abs(np.linalg.norm(part) - size) < 1e-12
    assert all(abs(np.linalg.norm(row) - 1) < 1e-12 for row in small[2])
    path = jax.jit(limits.log_ratio, static_argnums=1)(small, 2)
    w_kq, w_pv, pair, query = map(np.asarray, small)
    tied = [w_kq] * 2, [w_pv] * 2
    first, second = (flows(*tied, d, np.append(query, 0)) for d in pair)
    np.testing.assert_allclose(path, np.log(first / second), rtol=1e-9)


@pytest.mark.parametrize("name", ["linear attention", "transformer"])
def test_a_stack_that_reads_prompts_as_they_are_predicts_as_its_model_does(name):
    spec = tiny(name)
    read = pairs.plain_forward(spec)

    # In one program with both, float32 weights could be formed twice, with other last bits.
    params = jax.jit(partial(init, spec))(jax.random.key(0))

    @jax.jit
    def both(params):
        params = jax.tree.map(lambda leaf: leaf.astype(float), params)
        batch = tasks.draw(jax.random.key(1), tasks.distribution(spec.task, dtype=float), 5)
        predicted = jax.vmap(lambda prompt: predict(read(params, prompts.tokens(prompt))))(batch)
        return predicted, Model(spec, params).predict(batch)

    np.testing.assert_allclose(*both(params), rtol=1e-9)


def test_empty_slots_are_covariates_that_are_zero():
    rng = np.random.default_rng(0)
    prompt = Prompt(rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal(size=2), 0.3)
    params = Params(*(0.3 * rng.normal(size=(2, 2, 1, 6, 6))))
    slotted = stacks.forward_with_slots(params, prompts.tokens(prompt)).stream
    wider = prompts.tokens(prompts.with_scratch(prompt, 3))
    np.testing.assert_allclose(slotted, linear_attention.forward(params, wider).stream, rtol=1e-12)
