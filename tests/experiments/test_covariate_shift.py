"""The experiment on a shift: no patient is in two of the groups that a real table is split into."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.one_layer.covariate_shift import risks
from experiments.one_layer.covariate_shift.compute import split
from experiments.one_layer.covariate_shift.config import TIERS
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt
from lsa_lab.tasks import tables


def test_groups_are_disjoint_rows_of_the_table():
    table = tables.load_diabetes()
    groups = split(table, 12, jax.random.key(0))
    assert groups.x.shape == (12, 36, 10)
    rows = np.column_stack([groups.x.reshape(-1, 10), groups.y.reshape(-1)])
    assert len(np.unique(rows, axis=0)) == 12 * 36
    whole = {tuple(row) for row in np.column_stack([table.x, table.y])}
    assert {tuple(row) for row in rows} <= whole


def descent(x, y, steps):
    """w after so many steps of size 1/λ_max(XᵀX/n)."""
    w, size = np.zeros(x.shape[1]), len(y) / np.linalg.norm(x, ord=2) ** 2
    for _ in range(steps):
        w = w + size * sum((y[i] - x[i] @ w) * x[i] for i in range(len(y))) / len(y)
    return w


def layer(steps):
    """ŷ = η (1/n) Σ y_i x_i·x_query for each η."""
    weights = np.zeros((2, len(steps), 1, 1, 3, 3))
    weights[0, :, 0, 0, :2, :2], weights[1, :, 0, 0, 2, 2] = np.eye(2), -np.array(steps)
    return Params(*jnp.asarray(weights))


def test_errors_on_a_table_are_those_of_loops():
    rng = np.random.default_rng(0)
    shapes = ((3, 4, 2), (3, 4), (3, 2), 3)
    prompts = Prompt(*(jnp.asarray(rng.normal(size=shape)) for shape in shapes))
    errors = risks.table_errors(layer([0.5, 0.8]), prompts, (2, 4), 3)
    for j, m in enumerate((2, 4)):
        for b in range(3):
            x, y, query, target = (np.asarray(leaf[b]) for leaf in vars(prompts).values())
            x, y = x[:m], y[:m]
            once = sum(y[i] * (x[i] @ query) for i in range(m)) / m
            ridge = np.linalg.solve(x.T @ x / m + 2 / m * np.eye(2), x.T @ y / m)
            exact = [np.mean([(eta * once - target) ** 2 for eta in (0.5, 0.8)])]
            exact += [(w @ query - target) ** 2 for w in (descent(x, y, 3), ridge, np.zeros(2))]
            np.testing.assert_allclose(errors[:, j, b], exact, rtol=1e-8)


def test_risks_after_a_shift_are_those_of_prompts_times_a_root():
    config = dataclasses.replace(TIERS["smoke"], test_prompts=3, scales=(1.0, 4.0), lengths=(2,))
    key, steps = jax.random.key(0), config.descent_steps
    of_layer, zero, of_descent = risks.shifted_risks(
        jax.tree.map(lambda w: w[0], layer([0.5])), key, config
    )
    sample = jax.jit(partial(risks.sample, task=risks.LinearTask(4, 2)))
    prompts = [sample(each) for each in jax.random.split(key, (1, 3))[0]]

    def mean(c, m, rule):
        total = 0
        for prompt in prompts:
            x, y, query = (
                c**0.5 * np.asarray(part) for part in (prompt.x, prompt.y, prompt.x_query)
            )
            total += (rule(x[:m], y[:m]) @ query - c**0.5 * prompt.y_query) ** 2
        return total / 3 / 2 / c  # over tr Λ'

    def once(x, y):
        return 0.5 * x.T @ y / len(y)

    exact = [mean(c, m, once) for c, m in ((1, 4), (4, 4), (1, 2), (3, 2))]
    np.testing.assert_allclose(of_layer, exact, rtol=1e-9)
    np.testing.assert_allclose(zero, mean(1, 4, lambda x, y: np.zeros(2)), rtol=1e-9)
    exact = [mean(c, 4, lambda x, y: descent(x, y, steps)) for c in (1, 4)]
    np.testing.assert_allclose(of_descent, exact, rtol=1e-8)
