"""The experiment on the best layer: its tasks, its prompts and its measures."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

import population
from experiments.one_layer.one_layer_optimum import compute
from experiments.one_layer.one_layer_optimum.tasks import best_layer, draw, tasks
from lsa_lab.models.linear_attention import Params

best_of_four = jax.jit(lambda task: best_layer(task, 4))
loss_and_slope = jax.jit(
    jax.value_and_grad(lambda matrix, *task: population.one_layer_loss(matrix, task[0], 4, task[1]))
)
CONFIG = SimpleNamespace(d=3, noise_var=0.5)


def test_tasks_have_their_eigenvalues_and_noise():
    covariances, noise_vars = tasks(CONFIG)
    np.testing.assert_allclose(covariances[0], np.eye(3))
    np.testing.assert_allclose(np.linalg.eigvalsh(covariances[1]), [0.5, 1, 1], rtol=1e-12)
    assert np.abs(covariances[1] - np.diag(np.diag(covariances[1]))).max() > 0.05
    np.testing.assert_allclose(covariances[2], np.eye(3))
    assert noise_vars.tolist() == [0, 0, 0.5]


def test_the_best_layer_has_no_slope_and_its_risk():
    for task in zip(*tasks(CONFIG), strict=True):
        matrix, risk = best_of_four(task)
        loss, slope = loss_and_slope(matrix, *task)
        np.testing.assert_allclose(slope, 0, atol=1e-12)
        assert abs(2 * loss - risk) < 1e-12
    # Λ = I: A* = n I / (n + 1 + d + σ²), of risk d (1 - a).
    np.testing.assert_allclose(matrix, 4 / 8.5 * np.eye(3), atol=1e-12)
    assert abs(risk - 3 * 4.5 / 8.5) < 1e-12


def test_labels_of_the_task_without_noise_are_linear():
    prompts = draw(jax.random.key(0), (jnp.eye(3), jnp.zeros(())), 4, 5)
    for b in range(5):
        w = np.linalg.lstsq(prompts.x[b], prompts.y[b], rcond=None)[0]
        np.testing.assert_allclose(prompts.x[b] @ w, prompts.y[b], atol=1e-10)
        assert abs(prompts.x_query[b] @ w - prompts.y_query[b]) < 1e-9


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
