"""Models without some of their heads are judged as they are, and their heads chosen well."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

from experiments.heads.each_run import run
from experiments.heads.head_pruning import masked_models, masks
from experiments.heads.head_pruning.config import TIERS
from experiments.heads.head_pruning.masked_models import SEARCH
from experiments.models.model import Model
from experiments.models.specs import Architecture, Spec, Task, Training
from lsa_lab.analyses import head_subsets
from lsa_lab.models import linear_attention

SPEC = Spec(
    Task(2, (8,), sparsity=1, noise_std=0.5),
    Architecture(3, 2, ((2, 2, 2),), own_units=True),
    Training(steps=1, batch=1, learning_rate=1.0, seeds=2),
)
CONFIG = dataclasses.replace(TIERS["smoke"], n=4, lengths=(2, 4, 6), prompts=8, search=8)


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    leaves = (rng.normal(scale=0.3, size=(2, 3, 2, 3, 3)) for _ in range(2))
    models = Model(SPEC, linear_attention.Params(*leaves), np.ones((2, 3, 2)))
    return masked_models.Case(models, None, 0)


@pytest.fixture(scope="module")
def searched(case):
    return masked_models.batch_of(CONFIG, case, SEARCH, 4, 8)


def test_each_mask_has_its_risk_on_repeated_prompts(case):
    rows = np.array([[[1, 0], [1, 1], [0, 1]], [[1, 1], [1, 0], [1, 0]], [[0, 1], [1, 1], [1, 1]]])
    of_runs = np.stack([rows, rows[::-1]]).astype(float)
    batch = masked_models.judging_batch(CONFIG, case, 4)
    risks = masked_models.risks(CONFIG, case, batch, of_runs)
    risk = jax.jit(Model.risk)
    for r, m in itertools.product(range(2), range(3)):
        model = run(case.models, r).replace(gates=of_runs[r, m])
        assert risks[r, m] == pytest.approx(float(risk(model, run(batch, r))), rel=1e-9)


def test_short_prompts_are_the_beginnings_of_long_ones(case):
    short, long = (masked_models.judging_batch(CONFIG, case, n) for n in (2, 6))
    assert np.array_equal(short.x, long.x[:, :, :2])
    assert np.array_equal(short.y_query, long.y_query)


def test_every_choice_keeps_layer_one_and_one_head_of_each_later_layer(case):
    every = masks.choices(case)
    assert len({mask.tobytes() for mask in every}) == 4
    assert np.array_equal(every.sum(2), np.tile([2, 1, 1], (4, 1)))


def test_greed_removes_a_head_at_a_time_and_the_one_missed_least(case, searched):
    order = masks.greedy(CONFIG, case, searched)
    assert np.array_equal(order.sum((2, 3)), np.tile(np.arange(6, 0, -1), (2, 1)))
    without = 1 - np.eye(6).reshape(6, 3, 2)
    risks = masked_models.risks(CONFIG, case, searched, np.stack([without, without]))
    assert np.array_equal(order[:, 1], without[risks.argmin(1)])


def test_the_best_subsets_have_every_size(case, searched):
    best, worth = masks.best_subsets(CONFIG, case, searched)
    assert np.array_equal(best.sum(4)[:, 1, :, 1], np.tile([0, 1, 2], (2, 1)))
    rows = np.asarray(head_subsets.subsets(2))
    every = np.ones((4, 3, 2))
    every[:, 1] = rows
    risks = masked_models.risks(CONFIG, case, searched, np.stack([every, every]))
    assert worth[:, 1].sum(1) == pytest.approx(risks[:, 0] - risks[:, 3], rel=1e-9)
