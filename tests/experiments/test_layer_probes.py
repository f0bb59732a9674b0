"""Linear readers of models by hand: what they find, and descent on what a layer writes."""

import numpy as np
import pytest

from draws import descend
from experiments.heads import layer_probes
from experiments.heads.layer_probes import FEATURES, Config
from experiments.models.model import Model, compilation_key
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab.models import linear_attention

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
