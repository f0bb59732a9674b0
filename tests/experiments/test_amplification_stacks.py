"""The trained stacks of `amplification` read a prompt as their models do, units included."""

import jax
import numpy as np
import pytest

from experiments.flow.amplification import cases
from experiments.models import tasks
from experiments.models.model import Model, init
from experiments.models.named import MODELS
from lsa_lab import prompts
from lsa_lab.models.trace import predict


@pytest.mark.parametrize("name", ["linear attention", "transformer"])
def test_a_stack_that_reads_prompts_as_they_are_predicts_as_its_model_does(name):
    spec = MODELS["smoke"][name]
    params = jax.tree.map(lambda leaf: leaf.astype(float), init(spec, jax.random.key(0)))
    batch = tasks.draw(jax.random.key(1), tasks.distribution(spec.task, dtype=float), 5)
    read = cases.as_read(spec)
    predicted = jax.vmap(lambda prompt: predict(read(params, prompts.tokens(prompt))))(batch)
    np.testing.assert_allclose(predicted, Model(spec, params).predict(batch), rtol=1e-9)
