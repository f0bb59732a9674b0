"""Descent on features of heads beside loops, and what is chosen on other prompts."""

import jax
import numpy as np

from draws import descend
from experiments.heads import preprocess_then_optimise as experiment
from lsa_lab.prompts import Prompt

CONFIG = experiment.Config(d=4, n=6, heads=(1, 2, 4), shares=(0.3,), step_sizes=(0.5, 1.5),
                           sizes_for_all=(0.1,), doublings=2)  # fmt: skip
measure = jax.jit(experiment.measure_prompt, static_argnums=0)


def scale(x, matrix):
    return matrix / (np.linalg.norm(x @ matrix.T, ord=2) / len(x) ** 0.5)


def square_errors(prompt, matrix, size):
    """Return the clipped squared errors after 1, 2 and 4 steps of a loop."""
    most, features = 2 * np.abs(prompt.y).max(), prompt.x @ matrix.T
    answers = [descend(features, prompt.y, [size] * k) @ matrix @ prompt.x_query for k in (1, 2, 4)]
    return (np.clip(answers, -most, most) - prompt.y_query) ** 2


def test_errors_are_those_of_loops_over_heads_and_shares():
    x, y, x_query = map(np.random.default_rng(0).standard_normal, ((6, 4), 6, 4))
    prompt = Prompt(x, y, x_query, np.array(0.3))
    by_heads, for_all = measure(CONFIG, prompt)
    raw, r = scale(x, np.eye(4)), x.T @ y / 6
    for h, count in enumerate(CONFIG.heads):
        group = np.repeat(np.eye(count), 4 // count, axis=1) * r  # head j has its share of x
        for i, share in enumerate((0.0, 0.3, 1.0)):
            matrix = np.concatenate([share**0.5 * raw, (1 - share) ** 0.5 * scale(x, group)])
            largest = np.linalg.norm(x @ matrix.T, ord=2) ** 2 / 6
            for k, size in enumerate(CONFIG.step_sizes):
                expected = square_errors(prompt, matrix, size / largest)
                np.testing.assert_allclose(by_heads[h, i, k], expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(for_all[0], square_errors(prompt, np.diag(r), 0.1), rtol=1e-8)


def test_parameters_are_the_best_on_the_first_halves_of_all_runs():
    first = np.array([[1.0, 2.0, 3.0], [5.0, 1.0, 2.0]])  # [R, P]: the second is best on average
    second = np.array([[9.0, 8.0, 7.0], [6.0, 5.0, 4.0]])
    chosen = experiment.choose(np.stack([first, second], axis=1))
    np.testing.assert_array_equal(chosen, [8.0, 5.0])
