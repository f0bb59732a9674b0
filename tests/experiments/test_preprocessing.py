"""Descent on features of heads beside loops, and what is chosen on other prompts."""

import jax
import numpy as np
import pytest

from experiments.heads import preprocess_then_optimise as experiment
from experiments.heads.preprocess_then_optimise import Config
from lsa_lab.prompts import Prompt

CONFIG = Config(d=4, n=6, heads=(1, 2, 4), shares=(0.3,), step_sizes=(0.5, 1.5),
                sizes_for_all=(0.1,), doublings=2)  # fmt: skip
GROUPS = {1: [[0, 1, 2, 3]], 2: [[0, 1], [2, 3]], 4: [[0], [1], [2], [3]]}


def scale(x, matrix):
    return matrix / (np.linalg.norm(x @ matrix.T, ord=2) / len(x) ** 0.5)


def descend(prompt, matrix, size):
    """Return the clipped squared errors after 1, 2 and 4 steps of a loop."""
    rows, query, theta, errors = prompt.x @ matrix.T, matrix @ prompt.x_query, 0, []
    theta, most = np.zeros(len(matrix)), 2 * np.abs(prompt.y).max()
    for _ in range(4):
        theta = theta + size * rows.T @ (prompt.y - rows @ theta) / len(prompt.y)
        errors.append((np.clip(theta @ query, -most, most) - prompt.y_query) ** 2)
    return np.array(errors)[[0, 1, 3]]


def test_errors_are_those_of_loops_over_heads_and_shares():
    x, y, x_query = map(np.random.default_rng(0).standard_normal, ((6, 4), 6, 4))
    prompt = Prompt(x, y, x_query, np.array(0.3))
    by_heads, for_all = jax.jit(experiment.measure_prompt, static_argnums=0)(CONFIG, prompt)
    r = x.T @ y / 6
    raw = scale(x, np.eye(4))
    for h, count in enumerate(CONFIG.heads):
        group = np.zeros((count, 4))
        for row, columns in zip(group, GROUPS[count], strict=True):
            row[columns] = r[columns]
        for i, share in enumerate((0.0, 0.3, 1.0)):
            matrix = np.concatenate([share**0.5 * raw, (1 - share) ** 0.5 * scale(x, group)])
            features = x @ matrix.T
            largest = np.linalg.norm(features, ord=2) ** 2 / 6
            for k, size in enumerate(CONFIG.step_sizes):
                expected = descend(prompt, matrix, size / largest)
                np.testing.assert_allclose(by_heads[h, i, k], expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(for_all[0], descend(prompt, np.diag(r), 0.1), rtol=1e-8)


def test_what_overflows_counts_as_the_clipped_answer():
    prompt = Prompt(np.full((3, 1), 9.0), np.full(3, 9.0), np.ones(1), np.array(-1.0))
    config = Config(d=1, n=3, heads=(1,), sizes_for_all=(1e6,), doublings=6)
    _, for_all = jax.jit(experiment.measure_prompt, static_argnums=0)(config, prompt)
    assert np.asarray(for_all)[0, -1] in (pytest.approx(19.0**2), pytest.approx(17.0**2))


def test_parameters_are_the_best_on_the_first_halves_of_all_runs():
    first = np.array([[1.0, 2.0, 3.0], [5.0, 1.0, 2.0]])  # [R, P]: the second is best on average
    second = np.array([[9.0, 8.0, 7.0], [6.0, 5.0, 4.0]])
    chosen = experiment.choose(np.stack([first, second], axis=1))
    np.testing.assert_array_equal(chosen, [8.0, 5.0])
