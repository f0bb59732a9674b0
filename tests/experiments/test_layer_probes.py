"""Linear readers of models by hand: what they find, and descent on what a layer writes."""

import jax
import numpy as np
import pytest

from draws import descend
from experiments.heads import layer_probes
from experiments.heads import preprocess_then_optimise as experiment
from experiments.heads.layer_probes import FEATURES, Config
from experiments.models.model import Model, compilation_key
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab.models import linear_attention
from lsa_lab.prompts import Prompt

SPEC = Spec(
    Task(2, (8,), sparsity=1, noise_std=0.5),
    Architecture(2, 2, ((1, 1), (2, 2)), padding_slots=2, normalise_prompt=True),
    Recipe(steps=1, batch=1, learning_rate=1.0, seeds=1),
)
CONFIG = Config(n=4, prompts=512)


def build_preprocessing(heads):
    """Return a model whose heads j below a number write r_j x_j to padding slot j in layer 1."""
    w_kq, w_pv = np.zeros((2, 2, 2, 5, 5))
    for j in range(2):
        w_kq[0, j, j, j] = w_pv[0, j, 2 + j, 4] = 1
    gates = np.array([[1.0, heads == 2]] * 2)
    return Model(compilation_key(SPEC), linear_attention.Params(w_kq, w_pv), gates)


@pytest.mark.parametrize(("heads", "held"), [(2, 1.0), (1, 0.5)])
def test_a_reader_finds_one_preprocessed_covariate_for_each_head(heads, held):
    batch, fresh = (layer_probes.draw_prompts(CONFIG, SPEC.task, 0, tag, 512) for tag in (1, 2))
    measured = layer_probes.measure_readers(build_preprocessing(heads), batch, fresh, 500)
    np.testing.assert_allclose(measured["held"], [0, held, held], atol=0.1)
    # Nothing of the answer is in x_query alone, whose reader predicts 0.
    np.testing.assert_allclose(measured["reader"][0], np.mean(fresh.y_query**2), rtol=0.05)
    assert measured["reader"][1] < measured["reader"][0]


def test_descent_on_raw_and_weighed_covariates_is_that_of_loops():
    """The right number of steps is the best on the first half of the prompts."""
    batch = layer_probes.draw_prompts(CONFIG, SPEC.task, 0, 3, 8)
    models = tuple(build_preprocessing(heads).first(1) for heads in (2, 1))
    risks = np.asarray(layer_probes.measure_descents(models, batch, 3, 0.4))
    for feature in ("raw covariates", "r_j x_j"):
        squares = np.zeros((8, 4))
        for b in range(8):
            x, y, query, target = (np.asarray(leaf)[b] for leaf in vars(batch).values())
            gains = x.T @ y if feature == "r_j x_j" else np.ones(2)
            size = 0.4 * 2 / np.linalg.norm(x * gains, ord=2) ** 2 * len(x)
            most = 2 * np.abs(y).max()
            for steps in range(4):
                answer = descend(x * gains, y, [size] * steps) @ (query * gains)
                squares[b, steps] = (np.clip(answer, -most, most) - target) ** 2
        first, second = squares[:4].mean(0), squares[4:].mean(0)
        np.testing.assert_allclose(risks[FEATURES.index(feature)], second[first.argmin()])


PREPROCESSING = experiment.Config(d=4, n=6, heads=(1, 2, 4), shares=(0.3,), step_sizes=(0.5, 1.5),
                           sizes_for_all=(0.1,), doublings=2)  # fmt: skip
measure_prompt = jax.jit(experiment.measure_prompt, static_argnums=0)


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
    by_heads, for_all = measure_prompt(PREPROCESSING, prompt)
    raw, r = scale(x, np.eye(4)), x.T @ y / 6
    for h, count in enumerate(PREPROCESSING.heads):
        group = np.repeat(np.eye(count), 4 // count, axis=1) * r  # head j has its share of x
        for i, share in enumerate((0.0, 0.3, 1.0)):
            matrix = np.concatenate([share**0.5 * raw, (1 - share) ** 0.5 * scale(x, group)])
            largest = np.linalg.norm(x @ matrix.T, ord=2) ** 2 / 6
            for k, size in enumerate(PREPROCESSING.step_sizes):
                expected = square_errors(prompt, matrix, size / largest)
                np.testing.assert_allclose(by_heads[h, i, k], expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(for_all[0], square_errors(prompt, np.diag(r), 0.1), rtol=1e-8)


def test_parameters_are_the_best_on_the_first_halves_of_all_runs():
    first = np.array([[1.0, 2.0, 3.0], [5.0, 1.0, 2.0]])  # [R, P]: the second is best on average
    second = np.array([[9.0, 8.0, 7.0], [6.0, 5.0, 4.0]])
    chosen = experiment.choose(np.stack([first, second], axis=1))
    np.testing.assert_array_equal(chosen, [8.0, 5.0])
