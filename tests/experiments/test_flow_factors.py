"""The experiment on one demonstration: its effects and its classes, by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow.flow_factors import cells, one_shot
from lsa_lab.prompts import Prompt


def test_the_contribution_is_relevance_times_novelty_and_the_flow_its_gradient():
    prompt = Prompt(
        jnp.array([[1.0, 2.0]]), jnp.array([3.0]), jnp.array([2.0, 1.0]), jnp.array(4.0)
    )
    effects = jax.jit(one_shot.effects)(prompt, jnp.array([0.5, 0.0]), jnp.asarray(0.1))
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
    summary = cells.summary(effects, 2)
    contribution, flow, reduction = summary["grid"]  # rows by |s|, columns by |r|
    np.testing.assert_allclose(contribution, np.array([[1, 9], [4, 36]]) / 2)
    np.testing.assert_allclose(flow, np.array([[1, 9], [4, 16]]) / 7.5)
    np.testing.assert_allclose(reduction, np.array([[1, -4], [2, 3]]) / 2)
    np.testing.assert_allclose(summary["centre"], [[1, 2], [1, 3]])
    np.testing.assert_allclose(summary["of_kind"], [[1, 2, 2.4, 0], [1, 0, 0, 0]])
    assert summary["helps"] == 0.75
    np.testing.assert_allclose(summary["r2"][:, 0, 0], 1)  # c is a product
