"""The algorithms beside trained stacks in `depth`: each is the loop that its name says."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.descent.depth.config import ALGORITHMS, COVARIANCES
from experiments.descent.depth.tuned import (
    algorithm,
    algorithm_errors,
    covariance,
    draw,
    empty_last,
    errors,
    tune,
)

D, N = 2, 4
MATRIX = np.array([[2.0, 0.5], [0.5, 1.0]])
THETA = np.array([[0.4, 0.7], [0.3, 0.2]])  # step sizes, γ
draw = jax.jit(draw, static_argnums=(2, 3))
BATCH = draw(jax.random.key(0), jnp.eye(D), N, 3)


def errors_by_loops(batch, matrix, step_sizes, gammas):  # -> [B]
    """GD++ in the coordinates of the prompt; γ = 0 is descent with a matrix before the gradient."""
    rows = np.zeros(len(batch.y))
    for b, (x, y) in enumerate(zip(*map(np.asarray, (batch.x, batch.y)), strict=True)):
        query, predicted = np.asarray(batch.x_query[b]), 0.0
        labels = y
        for step, gamma in zip(step_sizes, gammas, strict=True):
            kernel = x @ matrix.T
            predicted = predicted + step * sum(labels * (kernel @ query)) / len(y)
            labels = labels - step * (x @ kernel.T @ labels) / len(y)
            moment = x.T @ x / len(y) @ matrix
            query, x = query - gamma * moment @ query, x - gamma * x @ moment.T
        rows[b] = (predicted - batch.y_query[b]) ** 2
    return rows


@pytest.mark.parametrize(("matrix", "gate"), [(np.eye(D), 1.0), (MATRIX, 0.0)])
def test_an_algorithm_is_its_loop(matrix, gate):
    form = {"matrix": jnp.asarray(matrix), "gate": jnp.asarray(gate)}
    params = algorithm(jnp.asarray(THETA), form)
    expected = errors_by_loops(BATCH, matrix, THETA[0], gate * THETA[1])
    np.testing.assert_allclose(jax.jit(errors)(params, BATCH), expected)


def test_an_empty_demonstration_is_none_but_for_the_step():
    """n = 4 with one empty and step η, or n = 3 and step 3η/4."""
    fewer = BATCH.replace(x=BATCH.x[:, :3], y=BATCH.y[:, :3])
    expected = errors_by_loops(fewer, np.eye(D), 0.75 * THETA[0], [0, 0])
    emptied = errors_by_loops(empty_last(BATCH), np.eye(D), THETA[0], [0, 0])
    np.testing.assert_allclose(emptied, expected)


def test_the_rotated_covariance_has_the_published_spectrum_and_is_not_diagonal():
    sigma = covariance("rotated", 5)
    np.testing.assert_allclose(np.linalg.eigvalsh(sigma), [1 / 16, 1 / 4, 1, 1, 1])
    assert np.abs(sigma - np.diag(np.diag(sigma))).max() > 0.01
    np.testing.assert_array_equal(covariance("identity", 3), np.eye(3))


def test_labels_have_the_variance_d_whatever_the_covariance():
    """E wᵀΣw = tr Σ^{-1}Σ = d."""
    batch = draw(jax.random.key(1), jnp.asarray(MATRIX), N, 20_000)
    moment = np.einsum("bni,bnj->ij", batch.x, batch.x) / batch.y.size
    np.testing.assert_allclose(moment, MATRIX, atol=0.05)
    np.testing.assert_allclose((batch.y**2).mean(), D, rtol=0.06)


def test_rows_are_those_of_the_algorithms_that_are_tuned_on_one_covariance():
    steps = 0.1 * np.arange(1, 1 + len(ALGORITHMS) * len(COVARIANCES))
    form = {"matrix": jnp.eye(D), "gate": jnp.asarray(0.0)}
    theta = jnp.asarray(steps)[:, None, None] * jnp.ones((1, 2, 1))
    tuned = jax.vmap(lambda each: algorithm(each, form))(theta)
    rows = algorithm_errors(tuned, 1, BATCH)
    for row, step in enumerate((0.2, 0.4, 0.6, 0.8)):
        batch = empty_last(BATCH) if row == 1 else BATCH
        np.testing.assert_allclose(rows[row], errors_by_loops(batch, np.eye(D), [step], [0]))


def test_one_tuned_step_is_that_of_least_squares():
    """The prediction is ηa with a = x_query·Xᵀy/n: the best η is Σ a y_query / Σ a²."""
    config = SimpleNamespace(d=D, n=N, tuning_prompts=6, coarse_prompts=3)
    key, sigma = jax.random.key(2), jnp.asarray(MATRIX)
    tuned, batch = tune(config, 1, [sigma], key), draw(key, sigma, N, 6)
    inverse, n = np.linalg.inv(MATRIX), np.array([N, N - 1, N, N])
    for row, used in enumerate(n):
        metric = np.eye(D) if row < 2 else inverse
        a = np.array(
            [
                q @ metric @ x[:used].T @ y[:used] / N
                for q, x, y in zip(batch.x_query, batch.x, batch.y, strict=True)
            ]
        )
        expected = a @ batch.y_query / (a @ a)
        np.testing.assert_allclose(-tuned.w_pv[row, 0, 0, -1, -1], expected, rtol=1e-4)
        np.testing.assert_allclose(tuned.w_kq[row, 0, 0, :D, :D], metric)
