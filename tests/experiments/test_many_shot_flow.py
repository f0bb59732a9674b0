"""The experiments on flows of the Bayes rule and of many demonstrations, in loops."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.flow import bayes
from experiments.flow.bayes_flows import claims, compute
from experiments.flow.many_shot_flow import flows
from lsa_lab.models import constructions, linear_attention
from lsa_lab.prompts import Prompt

NOISE = 0.3
STEP = constructions.gradient_descent(jnp.array([0.7]), 2)  # ŷ = 0.7 Σ y_i x_i·x_query / n


@pytest.fixture(scope="module")
def prompt():
    rng = np.random.default_rng(1)
    return Prompt(*(jnp.asarray(rng.normal(size=shape)) for shape in ((4, 2), 4, 2, ())))


def test_distances_of_answers_and_of_flows_to_labels(prompt):
    run = jax.jit(compute.beside, static_argnums=(0, 1, 2))
    _, _, gaps = run(linear_attention.forward, NOISE, None, STEP, prompt)
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
    monkeypatch.setattr(claims.Flows, "excess", lambda self, k, p, depth: near)
    ends = np.arange(6.0).reshape(2, 3)
    monkeypatch.setattr(claims.Flows, "end", lambda self, k, p, depth: ends)
    assert flows.once_near("linear", "dense", 1).tolist() == [1, 5]
    near[1] = 1
    assert flows.once_near("linear", "dense", 1) is None


CONFIG = SimpleNamespace(seed=0, runs=2, prompts=3, most=4, n=5, d=2, correlations=(0.0, 0.6))


def test_a_duplicate_has_its_correlation_and_the_label_of_its_own_covariates():
    normals = flows.draw(CONFIG)
    first, second, w, x_query = normals
    assert first.shape == second.shape == (2, 3, 3, 2)  # halves of 5, rounded up
    batch = flows.prompts_of(CONFIG, normals, 5, 1)
    assert batch.x.shape == (2, 2, 3, 5, 2)
    for c, r, b in np.ndindex(2, 2, 3):
        x, y = batch.x[c, r, b], batch.y[c, r, b]
        twin = 0.6 * first[r, b, 0] + 0.8 * second[r, b, 0] if c else second[r, b, 0]
        rows = [first[r, b, 0], twin, first[r, b, 1], second[r, b, 1], first[r, b, 2]]
        np.testing.assert_allclose(x, rows, rtol=1e-12)
        np.testing.assert_allclose(y, [row @ w[r, b] for row in rows], rtol=1e-12)
        assert abs(batch.y_query[c, r, b] - x_query[r, b] @ w[r, b]) < 1e-12


def test_sizes_of_flows_are_those_of_a_step_of_descent(prompt):
    sizes = jax.jit(flows.sizes, static_argnums=0)(linear_attention.forward, STEP, prompt)
    lengths = []
    for x, y in zip(np.asarray(prompt.x), np.asarray(prompt.y), strict=True):
        to_x, to_y = y * prompt.x_query, x @ prompt.x_query
        lengths.append(0.7 / 4 * np.linalg.norm(np.append(to_x, to_y)))
    np.testing.assert_allclose(sizes["logs"], np.log(lengths)[None], rtol=1e-10)
    assert abs(sizes["size"][0] - np.log(np.mean(lengths))) < 1e-12


def test_layers_are_compared_with_the_bayes_rule_by_pairs_of_log_flows():
    ours = np.array([[0.0, 1.0, 3.0], [5.0, 1.0, 0.0]])[None, None]
    best = np.array([10.0, 2.0, 0.0])[None, None]
    compared = bayes.compare(ours, best)
    # Pairs (0, 1), (0, 2), (1, 2): -1, -3, -2 at the first layer, then 4, 5, 1 and 8, 10, 2.
    assert compared["disparity"].tolist() == [[2, 4, 8]]
    assert compared["lead"].tolist() == [[2, -4, -8]]
    correlation = np.corrcoef(ours[0, 0, 1], best[0, 0])[0, 1]
    np.testing.assert_allclose(compared["agreement"][0, 1], correlation)
