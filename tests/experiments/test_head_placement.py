"""`head_placement` and `heads_per_layer`: risks that are known, and each run with its own."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from experiments.heads import model_risks
from experiments.heads.head_placement import claims
from experiments.heads.head_placement.config import TIERS, specs
from experiments.heads.rule_names import RULES
from experiments.models.model import Model
from experiments.models.specs import Architecture, Recipe, Spec, Task
from experiments.models.tasks import distribution
from lsa_lab.models.linear_attention import Params
from lsa_lab.store import results

CONFIG = TIERS["laptop"]
STEPS = 30_000


@pytest.fixture(scope="module")
def dataset():
    """Log risks over the Bayes rule's: .1 h_2 - .2 h_3, and ± .03 by seed; a run diverged."""
    names, seeds = list(specs(CONFIG)), np.array([-0.03, 0.03, 0.03, -0.03, 0.0])
    rows = np.array([list(map(int, name.split(","))) for name in names])
    logs = (rows @ [0, 0.1, -0.2])[:, None] + seeds
    bayes = np.array([0.4, 0.2, 0.1, 0.05])
    risks = np.exp(logs)[..., None] * bayes
    risks[..., 3] = 99.0  # at an n that is not in the training
    taken = np.full(logs.shape, STEPS)
    taken[0, 4] = STEPS - 1
    return xr.Dataset(
        {
            "risk": (("heads", "seed", "shots"), risks),
            "taken": (("heads", "seed"), taken),
            "rule_risk": (("rule", "shots"), np.outer([2, 2, 2, 1], bayes)),
        },
        {"heads": names, "shots": list(CONFIG.shots), "rule": list(RULES)},
        {"config": json.dumps(results.plain(CONFIG))},
    )


def test_ratios_and_factors_are_those_of_the_law_without_the_run_that_diverged(dataset):
    other = claims.over_other(dataset, "2,2,2")
    np.testing.assert_allclose(other, np.full(4, np.exp(-0.1 - -0.2)), rtol=1e-9)
    for to, slope in (("layer 2", 0.1), ("layer 3", -0.2)):
        np.testing.assert_allclose(claims.factor_of_move(dataset, to), np.exp(slope), rtol=1e-9)
    np.testing.assert_allclose(
        claims.ridge_ratio(dataset, "4,1,1"), np.exp([-0.13, -0.07, -0.07, -0.13]) / 2, rtol=1e-9
    )


def test_a_spread_over_placements_is_over_that_over_seeds(dataset):
    rows = np.array([list(map(int, name.split(","))) for name in dataset.heads.values])
    within = [[-0.03, 0.03, 0.03, -0.03]] + [[-0.03, 0.03, 0.03, -0.03, 0]] * 9
    pooled = np.sqrt(np.mean([np.var(row, ddof=1) for row in within]))
    expected = np.std(rows @ [0, 0.1, -0.2], ddof=1) / pooled
    np.testing.assert_allclose(claims.spread_ratio(dataset), np.full(4, expected), rtol=1e-9)


SPEC = Spec(
    Task(2, (4,), noise_std=0.5),
    Architecture(1),
    Recipe(steps=1, batch=1, learning_rate=1.0, seeds=2),
)


def test_heads_per_layer_keeps_variants_and_seeds_in_their_places_and_cuts_predictions():
    config = SimpleNamespace(seed=0, test_prompts=5)
    batch = model_risks.prompts_of(config, distribution(SPEC.task, 3))
    assert batch.x.shape == (5, 3, 2)
    steps = np.array([[0.1, 0.2], [0.4, 30.0], [0.8, 0.3]])  # [A, S]
    weights = np.zeros((2, 3, 2, 1, 1, 3, 3))
    weights[0, :, :, 0, 0, :2, :2], weights[1, :, :, 0, 0, 2, 2] = np.eye(2), -steps
    gates = np.ones((3, 2, 1, 1))
    runs = SimpleNamespace(all_models=Model(SPEC, Params(*weights), gates))
    risks = model_risks.risks_of(runs, [(batch, None)])[..., 0]
    assert risks.shape == (3, 2)
    for a, s in np.ndindex(3, 2):
        total = 0
        for x, y, query, target in zip(*map(np.asarray, vars(batch).values()), strict=True):
            predicted = steps[a, s] * sum(y[i] * (x[i] @ query) for i in range(3)) / 3
            most = 2 * max(abs(y))
            total += (min(max(predicted, -most), most) - target) ** 2 / 5
        np.testing.assert_allclose(risks[a, s], total, rtol=1e-9)
