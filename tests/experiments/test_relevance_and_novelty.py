"""The experiment on relevance and novelty: its factors and its classes, on small numbers."""

import jax
import numpy as np

from experiments.flow.relevance_and_novelty import compute
from experiments.models.model import Model
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt


def prompts(seed, count, n=6, d=3):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(count, n, d)), rng.normal(size=(count, n))
    return Prompt(x, y, rng.normal(size=(count, d)), rng.normal(size=count))


def test_the_bayes_rule_moves_by_flow_times_surprise_and_gains_its_square():
    factors = jax.jit(jax.vmap(lambda prompt: compute.factors_of(prompt, 0.25)))(prompts(0, 20))
    move = factors["flow"] * factors["surprise"]
    gain = compute.gains(factors["without"], factors["with"], factors["with"])
    np.testing.assert_allclose(gain, move**2, atol=1e-12)


def test_models_answer_without_the_last_demonstration_and_with_it():
    spec = Spec(
        Task(2, (4,)), Architecture(1), Recipe(steps=1, batch=1, learning_rate=1.0, seeds=2)
    )
    weights = np.zeros((2, 2, 1, 1, 3, 3))
    weights[0, :, 0, 0, :2, :2], weights[1, :, 0, 0, 2, 2] = np.diag([1.0, 3.0]), [-0.5, 0.2]
    batches = jax.tree.map(lambda leaf: leaf.reshape(2, 3, *leaf.shape[1:]), prompts(1, 6, 4, 2))
    without, with_it = compute.answers(Model(spec, Params(*weights)), batches)
    for r, b in np.ndindex(2, 3):
        x, y, query = batches.x[r, b], batches.y[r, b], batches.x_query[r, b]
        terms = [[0.5, -0.2][r] * y[i] * (x[i] @ np.diag([1.0, 3.0]) @ query) for i in range(4)]
        assert abs(without[r, b] - sum(terms[:3]) / 3) < 1e-10
        assert abs(with_it[r, b] - sum(terms) / 4) < 1e-10
