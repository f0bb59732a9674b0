"""The experiment on one demonstration: its effects, its steps and its classes, by hand."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.flow.flow_factors import compute
from experiments.flow.flow_factors.config import best_step
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


def test_labels_are_those_of_the_task_and_weights_know_a_part_of_it():
    config = SimpleNamespace(seed=3, draws=500, d=4, known=4, density=0.5, query_density=0.5)
    prompt, w = compute.sample_prompts(config, 1)
    for i in range(10):
        assert abs(prompt.y[i, 0] - sum(w[i] * prompt.x[i, 0])) < 1e-12
        assert abs(prompt.y_query[i] - sum(w[i] * prompt.x_query[i])) < 1e-12
    config.known = 1
    part = compute.sample_prompts(config, 1)[1]
    assert ((part != 0).sum(1) == 1).all()
    assert np.array_equal(part[part != 0], w[part != 0])


def test_the_best_step_is_one_over_the_fourth_moment():
    # |x|² is χ² with 0, 1, 1 or 2 degrees of freedom: E|x|⁴ = (0 + 3 + 3 + 8) / 4.
    assert abs(best_step(SimpleNamespace(d=2, density=0.5)) - 4 / 14) < 1e-12


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


def test_means_over_classes_leave_out_what_is_zero():
    sizes, values = np.array([0.4, 0.0, 0.1, 0.2, 0.3]), np.array([4.0, 100.0, 1.0, 2.0, 5.0])
    np.testing.assert_allclose(compute.class_means(values, sizes, 2), [1.5, 4.5])


def test_a_class_without_members_has_no_mean():
    with pytest.raises(ValueError, match="1 of 3 classes are empty"):
        compute.class_means(np.ones(5), np.array([0.1, 0.1, 0.1, 0.1, 0.2]), 3)


def test_the_bayes_rule_beside_attention_on_three_demonstrations():
    x = np.array([[3.0, 1.0], [1.0, 0.0], [0.0, 2.0]])[:, None]
    prompt = Prompt(x, np.array([[4.0], [2.0], [6.0]]), np.array([[1.0, 1.0]] * 3), np.zeros(3))
    # The first weight is known to be 1; what is new, 1, 1 and 6, is the second's.
    added = compute.bayes_contribution(prompt, np.array([[1.0, 0.0]] * 3))
    np.testing.assert_allclose(added, [1.0, 0.0, 3.0])
    effects = {"s": np.array([0.4, 0.1, 0.2]), "r": np.array([1.0, 1.0, 6.0])}
    effects |= {"contribution": np.array([0.4, 0.1, 1.2]), "missing": np.array([1.0, 1.0, 1.0])}
    effects["reduction"] = 1 - (1 - effects["contribution"]) ** 2
    effects["zero_shot"] = np.ones(3)
    beside = compute.bayes_effects(effects, added)
    np.testing.assert_allclose(beside["lowers"], [1.0, 1 / 3])
    np.testing.assert_allclose(beside["taken"], effects["reduction"].mean())
