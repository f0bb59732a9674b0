"""The algorithms beside trained stacks in `depth`: each is the loop that its name says."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.descent.depth.tuned import algorithm, draw, errors, tune

D, N = 2, 4
MATRIX = np.array([[2.0, 0.5], [0.5, 1.0]])
THETA = np.array([[0.4, 0.7], [0.3, 0.2]])  # step sizes, γ
draw = jax.jit(draw, static_argnums=(2, 3))
BATCH = jax.tree.map(np.asarray, draw(jax.random.key(0), np.eye(D), N, 3))


def errors_by_loops(batch, matrix, step_sizes, gammas):  # -> [B]
    """GD++ in the coordinates of the prompt; γ = 0 is descent with a matrix before the gradient."""
    rows = np.zeros(len(batch.y))
    for b, (x, y) in enumerate(zip(batch.x, batch.y, strict=True)):
        query, predicted = batch.x_query[b], 0.0
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


def test_one_tuned_step_is_that_of_least_squares():
    """The prediction is ηa with a = x_query·Xᵀy/n: the best η is Σ a y_query / Σ a²."""
    config = SimpleNamespace(d=D, n=N, tuning_prompts=6, coarse_prompts=3)
    key, sigma = jax.random.key(2), jnp.asarray(MATRIX)
    arrays = tune(config, 1, [sigma], key), draw(key, sigma, N, 6)
    tuned, batch = jax.tree.map(np.asarray, arrays)
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
