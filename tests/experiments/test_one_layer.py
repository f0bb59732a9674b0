"""The experiments on one layer: their measures beside sums over prompts."""

import jax
import numpy as np

from draws import descend
from experiments.one_layer import finite_pretraining, one_layer_optimum
from lsa_lab.models.linear_attention import Params
from lsa_lab.theory import optimum

D, N, NOISE_VAR = 4, 6, 0.3


def make_layer(*matrices):
    """Return one layer whose heads have label entries -1/H and covariate blocks ``matrices``."""
    e = len(matrices[0]) + 1
    w_kq, w_pv = np.zeros((2, 1, len(matrices), e, e))
    w_kq[0, :, :-1, :-1], w_pv[0, :, -1, -1] = matrices, -1 / len(matrices)
    return Params(w_kq, w_pv)


def test_excess_is_that_of_predictions_by_loops():
    task, n, size = (np.diag([1.0, 0.5, 2.0]), 0.4), 4, 5
    best = np.asarray(optimum.one_layer(task[0], np.eye(3), n, task[1]))
    other = np.random.default_rng(0).normal(size=(3, 3))
    runs = [make_layer(best, best), make_layer(other, 3 * other)]  # the heads' mean is A
    layers = jax.tree.map(lambda *leaves: np.stack(leaves), *runs)
    measured, least = one_layer_optimum.measure_excess(
        (layers,), task, n, size, np.random.default_rng(1)
    )
    rng = np.random.default_rng(1)
    for run, matrix in enumerate((best, 2 * other)):
        moment, x_query, y_query = one_layer_optimum.draw_prompts(rng, *task, n, size)
        answers = [np.einsum("ib,ij,jb->b", moment[:-1, -1], a, x_query) for a in (matrix, best)]
        risk, risk_of_best = ((answers - y_query) ** 2).mean(1)
        expected = [risk, (risk - risk_of_best) / least]
        np.testing.assert_allclose(measured[run, 0], expected, rtol=1e-9, atol=1e-12)


def test_errors_on_a_table_are_those_of_loops():
    config = one_layer_optimum.Config(shift_n=3, runs=1)
    table = np.random.default_rng(0).normal(size=(9, 3))
    layers = jax.tree.map(lambda leaf: leaf[None], make_layer(0.5 * np.eye(2)))
    rows = np.random.default_rng(1).permutation(9)[:8].reshape(2, 4)
    errors = one_layer_optimum.measure_table(layers, table, config, np.random.default_rng(1))
    for group, members in enumerate(table[rows]):
        expected = np.zeros(3)
        for i, (*query, target) in enumerate(members):
            *columns, y = np.delete(members, i, axis=0).T
            x = np.stack(columns, axis=1)
            steps = [3 / np.linalg.norm(x, ord=2) ** 2] * config.descent_steps
            weights = 0.5 * x.T @ y / 3, descend(x, y, steps), np.zeros(2)
            expected += [(w @ query - target) ** 2 / 4 for w in weights]
        np.testing.assert_allclose(errors[:, group], expected, rtol=1e-9)


def draw_by_demonstrations(rng, w):
    """Draw x_query, (h, s) and y_query of prompts with tasks w [B, d] from their demonstrations."""
    x = rng.standard_normal((len(w), N + 1, D)) / np.sqrt(D)
    noise = np.sqrt(NOISE_VAR) * rng.standard_normal((len(w), N + 1))
    y = np.einsum("bnd,bd->bn", x, w) + noise
    h = D / N * np.einsum("bn,bnd->bd", y[:, :N], x[:, :N])
    return x[:, N], np.concatenate([h, (y[:, :N] ** 2).mean(1, keepdims=True)], axis=1), y[:, N]


def average_products(x_query, read, y_query):
    """Return means of the products of all features, and their standard errors."""
    columns = np.concatenate([read, read**2, y_query[:, None] * x_query * read[:, :-1]], axis=1)
    products = columns[:, :, None] * columns[:, None]
    return products.mean(0), products.std(0) / np.sqrt(len(products))


def test_features_have_the_law_of_those_of_demonstrations():
    rng, size = np.random.default_rng(0), 50_000
    tasks = rng.standard_normal((3, D))
    draw = jax.jit(finite_pretraining.draw_features, static_argnums=(2, 3, 5))
    drawn = jax.device_get(draw(jax.random.key(0), tasks, N, 3, NOISE_VAR, size))
    left, left_error = average_products(
        *draw_by_demonstrations(rng, tasks[rng.integers(3, size=size)])
    )
    right, right_error = average_products(*drawn)
    assert (np.abs(left - right) < 5 * np.hypot(left_error, right_error)).all()


def test_risks_of_a_layer_are_its_mean_squared_errors():
    rng = np.random.default_rng(1)
    tasks, layer = rng.standard_normal((5, D)), 0.3 * rng.standard_normal((D, D + 1))
    layer += 0.7 * np.eye(D, D + 1)  # like a trained one: the terms with its trace are not small
    measure = jax.jit(finite_pretraining.layer_risks, static_argnums=3)
    risks = measure(layer, tasks, np.arange(5) < 3, N, NOISE_VAR)
    draws = rng.standard_normal((400_000, D)), tasks[rng.integers(3, size=400_000)]
    for risk, w in zip(risks, draws, strict=True):
        x_query, read, y = draw_by_demonstrations(rng, w)
        errors = (y - np.einsum("bi,ij,bj->b", x_query, layer, read)) ** 2
        assert abs(float(risk) - errors.mean()) < 4 * errors.std() / np.sqrt(len(errors))
