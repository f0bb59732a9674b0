"""The experiment on depth: what it judges of a stack, and the algorithms beside it, by loops."""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from experiments.descent.depth.compute import shape_distances
from experiments.descent.depth.config import ALGORITHMS
from experiments.descent.depth.tuned import algorithm, draw, errors, tune
from lsa_lab.models import linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.prompts import tokens
from lsa_lab.tasks.linear import LinearTask, sample

WIDTH, SHOTS = 3, 8


def prompts_of(size, seed=0):
    return jax.vmap(partial(sample, task=LinearTask(SHOTS, WIDTH)))(
        jax.random.split(jax.random.key(seed), size)
    )


@pytest.mark.parametrize("num_layers", [1, 3])
def test_no_direction_that_leaves_all_predictions_moves_a_judged_distance(num_layers):
    params = linear_attention.init(jax.random.key(1), num_layers, 1, WIDTH, scale=0.4)
    weights, unravel = ravel_pytree(params)

    def prediction(weights, prompt):
        return predict(linear_attention.forward(unravel(weights), tokens(prompt)))

    def distances(weights):
        stacks = jax.tree.map(lambda leaf: leaf[None], unravel(weights))
        return shape_distances(stacks, jnp.eye(WIDTH)[None])[:, 0]

    gradients = jax.jit(jax.vmap(jax.grad(prediction), (None, 0)))(weights, prompts_of(400))
    values, rows = np.linalg.svd(gradients / np.linalg.norm(gradients, axis=1)[:, None])[1:]
    silent = rows[values < 1e-10 * values[0]]  # scales of the two matrices, and what is never read
    assert len(silent) > num_layers
    moved = np.einsum("mlp,kp->mlk", jax.jit(jax.jacobian(distances))(weights), silent)
    moved = np.abs(moved).max(2)
    assert moved[0].max() < 1e-10  # A of every layer
    assert moved[1, :-1].max(initial=0) < 1e-10  # B of all but the last
    assert moved[1, -1] > 1e-3  # which moves nothing that is read, and is not judged


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
    inverse = np.linalg.inv(MATRIX)
    for row in range(len(ALGORITHMS)):
        metric = inverse if row else np.eye(D)
        a = np.array(
            [
                q @ metric @ x.T @ y / N
                for q, x, y in zip(batch.x_query, batch.x, batch.y, strict=True)
            ]
        )
        expected = a @ batch.y_query / (a @ a)
        np.testing.assert_allclose(-tuned.w_pv[row, 0, 0, -1, -1], expected, rtol=1e-4)
        np.testing.assert_allclose(tuned.w_kq[row, 0, 0, :D, :D], metric)
