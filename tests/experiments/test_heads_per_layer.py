"""`heads_per_layer` and `head_placement`: every run has the risk of its own layer."""

from types import SimpleNamespace

import numpy as np

from experiments.heads import model_risks
from experiments.models.model import Model
from experiments.models.specs import Architecture, Recipe, Spec, Task
from experiments.models.tasks import distribution
from lsa_lab.models.linear_attention import Params

SPEC = Spec(
    Task(2, (4,), noise_std=0.5),
    Architecture(1),
    Recipe(steps=1, batch=1, learning_rate=1.0, seeds=2),
)


def test_variants_and_seeds_keep_their_places_and_predictions_are_cut():
    config = SimpleNamespace(seed=0, test_prompts=5)
    batch = model_risks.prompts_of(config, distribution(SPEC.task, 3))
    assert batch.x.shape == (5, 3, 2)
    steps = np.array([[0.1, 0.2], [0.4, 30.0], [0.8, 0.3]])  # [A, S]
    weights = np.zeros((2, 3, 2, 1, 1, 3, 3))
    weights[0, :, :, 0, 0, :2, :2], weights[1, :, :, 0, 0, 2, 2] = np.eye(2), -steps
    gates = np.ones((3, 2, 1, 1))
    runs = SimpleNamespace(every=Model(SPEC, Params(*weights), gates))
    risks = model_risks.risks_of(runs, [(batch, None)])[..., 0]
    assert risks.shape == (3, 2)
    for a, s in np.ndindex(3, 2):
        total = 0
        for x, y, query, target in zip(*map(np.asarray, vars(batch).values()), strict=True):
            predicted = steps[a, s] * sum(y[i] * (x[i] @ query) for i in range(3)) / 3
            most = 2 * max(abs(y))
            total += (min(max(predicted, -most), most) - target) ** 2 / 5
        np.testing.assert_allclose(risks[a, s], total, rtol=1e-9)
