"""One step of training at test time is one step of descent, from the estimate in context.

The rows it trains on are independent of the context. docs/theory, "One step at test time".
"""

import jax
import jax.numpy as jnp
import numpy as np

from draws import jit_numpy, seeds, two_sizes
from lsa_lab.models import constructions
from population import gauss_hermite, predict

ROWS, NOISE, ERROR = 2, 0.3, np.array([0.8, -0.5])


@jit_numpy
def weights_around_a_step(matrix, x, y, x_new, y_new, step):  # [d], [d]
    """The implied weights of one layer A, before and after a step on the rows' squared errors."""

    def answers(matrix, queries):
        params = constructions.preconditioned(matrix[None])
        return jax.vmap(lambda query: predict(params, x, y, query))(queries)

    slope = jax.grad(lambda matrix: ((answers(matrix, x_new) - y_new) ** 2).sum())(matrix)
    return [answers(each, jnp.eye(len(matrix))) for each in (matrix, matrix - step * slope)]


@two_sizes
@seeds
def test_the_step_moves_the_estimate_as_descent_on_the_new_rows_does(n, d, seed):
    rng = np.random.default_rng(seed)
    matrix, x, y = rng.normal(size=(d, d)), rng.normal(size=(n, d)), rng.normal(size=n)
    x_new, y_new = rng.normal(size=(ROWS, d)), rng.normal(size=ROWS)
    before, after = weights_around_a_step(matrix, x, y, x_new, y_new, 0.1)
    length = 2 * 0.1 * ((x.T @ y / n) ** 2).sum()
    expected = before + length * x_new.T @ (y_new - x_new @ before)
    np.testing.assert_allclose(after, expected, atol=1e-10)


def mean_risk(step, mix):  # E|w - v'|² over the rows at the error w - v; ``mix`` makes rows depend
    points, masses = gauss_hermite([3] * (ROWS * 2))
    x = np.einsum("kl,pld->pkd", mix, points.reshape(-1, ROWS, 2))
    moved = ERROR - step * np.einsum("pkd,pke,e->pd", x, x, ERROR)
    return masses @ ((moved**2).sum(1) + step**2 * NOISE * (x**2).sum((1, 2)))


def test_its_best_step_leaves_the_stated_risk():
    square = ERROR @ ERROR
    best = square / ((ROWS + 3) * square + 2 * NOISE)
    stated = square * (1 - ROWS * best)
    np.testing.assert_allclose(mean_risk(best, np.eye(ROWS)), stated, rtol=1e-12)
    assert min(mean_risk(c * best, np.eye(ROWS)) for c in (0.9, 1.1)) > stated
    # Control: rows that repeat leave more.
    repeated = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert min(mean_risk(step, repeated) for step in np.linspace(0, 1, 201)) > 1.05 * stated
