"""The stacks of `amplification` read a prompt as their models do, with empty slots too."""

import jax
import numpy as np
import pytest

from experiments.flow import pairs
from experiments.flow.amplification import width
from experiments.models import tasks
from experiments.models.model import Model, init
from experiments.models.named import MODELS
from lsa_lab import prompts
from lsa_lab.models import linear_attention
from lsa_lab.models.linear_attention import Params
from lsa_lab.models.trace import predict
from lsa_lab.prompts import Prompt


@pytest.mark.parametrize("name", ["linear attention", "transformer"])
def test_a_stack_that_reads_prompts_as_they_are_predicts_as_its_model_does(name):
    spec = MODELS["smoke"][name]
    read = pairs.plain_forward(spec)

    @jax.jit
    def both():
        params = jax.tree.map(lambda leaf: leaf.astype(float), init(spec, jax.random.key(0)))
        batch = tasks.draw(jax.random.key(1), tasks.distribution(spec.task, dtype=float), 5)
        predicted = jax.vmap(lambda prompt: predict(read(params, prompts.tokens(prompt))))(batch)
        return predicted, Model(spec, params).predict(batch)

    np.testing.assert_allclose(*both(), rtol=1e-9)


def test_empty_slots_are_covariates_that_are_zero():
    rng = np.random.default_rng(0)
    prompt = Prompt(rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal(size=2), 0.3)
    params = Params(*(0.3 * rng.normal(size=(2, 2, 1, 6, 6))))
    slotted = width.forward_with_slots(params, prompts.tokens(prompt)).stream
    wider = prompts.tokens(prompts.with_scratch(prompt, 3))
    np.testing.assert_allclose(slotted, linear_attention.forward(params, wider).stream, rtol=1e-12)
