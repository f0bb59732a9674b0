"""The experiment on the Bayes rule's flows at any depth: one step of descent, in loops."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.flow.bayes_flows import claims, compute
from lsa_lab.models import constructions, linear_attention
from lsa_lab.prompts import Prompt

NOISE = 0.3


@pytest.fixture(scope="module")
def prompt():
    rng = np.random.default_rng(1)
    return Prompt(*(jnp.asarray(rng.normal(size=shape)) for shape in ((4, 2), 4, 2, ())))


def test_distances_of_answers_and_of_flows_to_labels(prompt):
    params = constructions.gradient_descent(jnp.array([0.7]), 2)
    run = jax.jit(compute.beside, static_argnums=(0, 1, 2))
    _, _, gaps = run(linear_attention.forward, NOISE, None, params, prompt)
    x, y, x_query = (np.asarray(part) for part in (prompt.x, prompt.y, prompt.x_query))
    step = 0.7 / 4 * x @ x_query
    best = x @ np.linalg.solve(x.T @ x + NOISE * np.eye(2), x_query)
    covariance = x @ x.T + NOISE * np.eye(4)
    apart = step - best
    squares = [(apart @ y) ** 2, apart @ covariance @ apart, (best @ y) ** 2]
    squares += [best @ covariance @ best, (best @ y - float(prompt.y_query)) ** 2]
    np.testing.assert_allclose(gaps, squares, rtol=1e-10)


def test_a_run_is_judged_where_it_first_is_near(monkeypatch):
    near = np.array([[2.0, 0.09, 0.2], [0.3, 0.2, 0.05]])
    flows = claims.Flows.__new__(claims.Flows)
    flows.config = SimpleNamespace(depths=(1, 2))
    monkeypatch.setattr(claims.Flows, "excess", lambda self, k, p, depth: near)
    ends = np.arange(6.0).reshape(2, 3)
    monkeypatch.setattr(claims.Flows, "end", lambda self, k, p, depth: depth * ends)
    assert flows.once_near("linear", "dense", 1).tolist() == [1, 5]
    assert flows.slope("linear", "dense").tolist() == [1, 5]  # from depth 1 to 2
    near[1] = 1
    assert flows.once_near("linear", "dense", 1) is None
