"""The experiment on the best layer: its measures, and those after a shift or on a real table."""

import dataclasses
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

import population
from experiments.one_layer.one_layer_optimum import compute, shift
from experiments.one_layer.one_layer_optimum.compute import best_layer, draw, tasks
from experiments.one_layer.one_layer_optimum.config import TIERS
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt

best_of_four = jax.jit(lambda task: best_layer(task, 4))
loss_and_slope = jax.jit(
    jax.value_and_grad(lambda matrix, *task: population.one_layer_loss(matrix, task[0], 4, task[1]))
)
CONFIG = SimpleNamespace(d=3, noise_var=0.5)


def test_the_best_layer_has_no_slope_and_its_risk():
    for task in zip(*tasks(CONFIG), strict=True):
        matrix, risk = best_of_four(task)
        loss, slope = loss_and_slope(matrix, *task)
        np.testing.assert_allclose(slope, 0, atol=1e-12)
        assert abs(2 * loss - risk) < 1e-12
    # Λ = I: A* = n I / (n + 1 + d + σ²), of risk d (1 - a).
    np.testing.assert_allclose(matrix, 4 / 8.5 * np.eye(3), atol=1e-12)
    assert abs(risk - 3 * 4.5 / 8.5) < 1e-12


def test_measures_of_a_layer_are_those_of_loops_over_its_prompts():
    task, key = tuple(part[1] for part in tasks(CONFIG)), jax.random.key(1)
    best, least = map(np.asarray, best_of_four(task))
    other = np.random.default_rng(0).normal(size=(3, 3))
    matrices = [best, other]  # of two runs, split up between two heads: A = -Σ_h v_h A_h
    w_kq, w_pv = np.zeros((2, 2, 1, 2, 4, 4))
    for r, matrix in enumerate(matrices):
        w_kq[r, 0, 0, :3, :3], w_kq[r, 0, 1, :3, :3] = matrix / 4, matrix
        w_pv[r, 0, :, 3, 3] = -2, -0.5
    layers = (Params(jnp.asarray(w_kq), jnp.asarray(w_pv)),)
    measured = compute.evaluate(layers, task, key, 4, 6)
    assert measured.shape == (3, 1, 2)
    prompts = jax.jit(draw, static_argnums=(2, 3))(key, task, 4, 6)

    def risk(matrix):
        total = 0
        for x, y, query, target in zip(*map(np.asarray, vars(prompts).values()), strict=True):
            total += (sum(y[i] * (x[i] @ matrix @ query) for i in range(4)) / 4 - target) ** 2
        return total / 6

    cosine = (best * other).sum() / np.sqrt((best**2).sum() * (other**2).sum())
    risks = [risk(matrix) for matrix in matrices]
    np.testing.assert_allclose(measured[0, 0], risks, rtol=1e-9)
    np.testing.assert_allclose(measured[1, 0], [0, (risks[1] - risks[0]) / least], atol=1e-9)
    np.testing.assert_allclose(measured[2, 0], [1, cosine], rtol=1e-9)


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
    errors = shift.table_errors(layer([0.5, 0.8]), prompts, (2, 4), 3)
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
    config = dataclasses.replace(
        TIERS["smoke"].shift, test_prompts=3, scales=(1.0, 4.0), lengths=(2,)
    )
    key, steps = jax.random.key(0), config.descent_steps
    of_layer, zero, of_descent = shift.shifted_risks(
        jax.tree.map(lambda w: w[0], layer([0.5])), key, config
    )
    sample = jax.jit(partial(shift.sample, task=shift.LinearTask(4, 2)))
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
