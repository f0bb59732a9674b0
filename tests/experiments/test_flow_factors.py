"""One demonstration by hand: its effects, its classes, its relevance and novelty."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow.flow_factors import compute
from experiments.flow.relevance_and_novelty import compute as of_models
from experiments.models.model import Model
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt


def test_the_contribution_is_relevance_times_novelty_and_the_flow_its_gradient():
    prompt = Prompt(
        jnp.array([[1.0, 2.0]]), jnp.array([3.0]), jnp.array([2.0, 1.0]), jnp.array(4.0)
    )
    effects = jax.jit(compute.measure_effects)(prompt, jnp.array([0.5, 0.0]), jnp.asarray(0.1))
    # s = 0.1 · 4, r = 3 - 0.5, and of 4 - 1 that is missing the demonstration adds s r = 1.
    exact = {"s": 0.4, "r": 2.5, "contribution": 1.0, "missing": 3.0}
    exact |= {"zero_shot": 9.0, "reduction": 5.0}
    # η (r x_query - (x·x_query) w_0) to x, η x·x_query to y
    exact["flow"] = np.linalg.norm([0.1 * (5 - 2), 0.1 * 2.5, 0.4])
    for name, value in exact.items():
        np.testing.assert_allclose(effects[name], value, rtol=1e-12, err_msg=name)


def test_seven_demonstrations_are_summed_up_as_by_hand():
    s = np.array([1.0, -2.0, 1.0, 2.0, 0.0, 1.0, 0.0])
    r = np.array([1.0, 1.0, -3.0, 3.0, 1.0, 0.0, 0.0])
    effects = {
        "s": s,
        "r": r,
        "contribution": s * r,
        "flow": np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0]),
        "reduction": np.array([1.0, 2.0, -4.0, 3.0, 0.0, 0.0, 0.0]),
        "zero_shot": np.array([1.0, 3.0, 2.0, 2.0, 2.0, 2.0, 2.0]),
    }
    summary = compute.summary(effects, 2)
    contribution, flow, reduction = summary["grid"]  # rows by |s|, columns by |r|
    np.testing.assert_allclose(contribution, np.array([[1, 9], [4, 36]]) / 2)
    np.testing.assert_allclose(flow, np.array([[1, 9], [4, 16]]) / 7.5)
    np.testing.assert_allclose(reduction, np.array([[1, -4], [2, 3]]) / 2)
    np.testing.assert_allclose(summary["centre"], [[1, 2], [1, 3]])
    np.testing.assert_allclose(summary["of_kind"], [[1, 2, 2.4, 0], [1, 0, 0, 0]])
    assert summary["helps"] == 0.75
    np.testing.assert_allclose(summary["r2"][:, 0, 0], 1)  # c is a product


def prompts(seed, count, n=6, d=3):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(count, n, d)), rng.normal(size=(count, n))
    return Prompt(x, y, rng.normal(size=(count, d)), rng.normal(size=count))


def test_the_bayes_rule_moves_by_flow_times_surprise_and_gains_its_square():
    factors = jax.jit(jax.vmap(lambda prompt: of_models.factors_of(prompt, 0.25)))(prompts(0, 20))
    move = factors["flow"] * factors["surprise"]
    gain = of_models.gains(factors["without"], factors["with"], factors["with"])
    np.testing.assert_allclose(gain, move**2, atol=1e-12)


def test_models_answer_without_the_last_demonstration_and_with_it():
    spec = Spec(
        Task(2, (4,)), Architecture(1), Recipe(steps=1, batch=1, learning_rate=1.0, seeds=2)
    )
    weights = np.zeros((2, 2, 1, 1, 3, 3))
    weights[0, :, 0, 0, :2, :2], weights[1, :, 0, 0, 2, 2] = np.diag([1.0, 3.0]), [-0.5, 0.2]
    batches = jax.tree.map(lambda leaf: leaf.reshape(2, 3, *leaf.shape[1:]), prompts(1, 6, 4, 2))
    without, with_it = of_models.answers(Model(spec, Params(*weights)), batches)
    for r, b in np.ndindex(2, 3):
        x, y, query = batches.x[r, b], batches.y[r, b], batches.x_query[r, b]
        terms = [[0.5, -0.2][r] * y[i] * (x[i] @ np.diag([1.0, 3.0]) @ query) for i in range(4)]
        assert abs(without[r, b] - sum(terms[:3]) / 3) < 1e-10
        assert abs(with_it[r, b] - sum(terms) / 4) < 1e-10
