"""One step of training at test time is one step of descent, from the estimate in context.

docs/theory, "One step at test time". Sides: the model's own gradient in its weights; the update of
its implied weights in NumPy, and the mean risk on every point of a Gauss-Hermite rule. Hypotheses:
the rows it trains on are independent of the context.
"""

import jax
import jax.numpy as jnp
import numpy as np

from draws import seeds
from lsa_lab.models import constructions
from population import gauss_hermite, predict

N, D, ROWS = 5, 2, 2
NOISE = 0.3


@jax.jit
def weights_after_a_step(matrix, x, y, x_new, y_new, step):  # [d]
    """The implied weights of one layer A, before and after a step on the rows' squared errors."""

    def answers(matrix, queries):
        params = constructions.preconditioned(matrix[None])
        return jax.vmap(lambda query: predict(params, x, y, query))(queries)

    slope = jax.grad(lambda matrix: ((answers(matrix, x_new) - y_new) ** 2).sum())(matrix)
    return [answers(each, jnp.eye(D)) for each in (matrix, matrix - step * slope)]


@seeds
def test_the_step_moves_the_estimate_as_descent_on_the_new_rows_does(seed):
    generator = np.random.default_rng(seed)
    matrix, x, y = generator.normal(size=(D, D)), *generator.normal(size=(2, N, D))
    y, x_new, y_new = y[:, 0], generator.normal(size=(ROWS, D)), generator.normal(size=ROWS)
    before, after = weights_after_a_step(matrix, x, y, x_new, y_new, 0.1)
    length = 2 * 0.1 * ((x.T @ y / N) ** 2).sum()
    expected = before + length * x_new.T @ (y_new - x_new @ before)
    np.testing.assert_allclose(after, expected, atol=1e-10)


def mean_risk(step, error, mix):  # []
    """E|w - v'|² over the rows, at a given error w - v; ``mix`` [k, k] makes rows depend."""
    points, masses = gauss_hermite([3] * (ROWS * D))
    x = np.einsum("kl,pld->pkd", mix, points.reshape(-1, ROWS, D))
    moved = error - step * np.einsum("pkd,pke,e->pd", x, x, error)
    return masses @ ((moved**2).sum(1) + step**2 * NOISE * (x**2).sum((1, 2)))


def closed_risk(error):  # []
    square = (error**2).sum()
    return square * (1 - ROWS * square / ((ROWS + D + 1) * square + D * NOISE))


def test_its_best_step_leaves_the_stated_risk():
    error = np.array([0.8, -0.5])
    square = (error**2).sum()
    best = square / ((ROWS + D + 1) * square + D * NOISE)
    np.testing.assert_allclose(mean_risk(best, error, np.eye(ROWS)), closed_risk(error), rtol=1e-12)
    for other in (0.9 * best, 1.1 * best):
        assert mean_risk(other, error, np.eye(ROWS)) > closed_risk(error)


def test_control_rows_that_repeat_leave_more():
    error = np.array([0.8, -0.5])
    steps = np.linspace(0, 1, 201)
    repeated = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert min(mean_risk(step, error, repeated) for step in steps) > 1.05 * closed_risk(error)
