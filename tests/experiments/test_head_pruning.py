"""Models without some of their heads are judged as they are, and their heads chosen well."""

import itertools

import jax
import numpy as np
import pytest

from experiments.heads import fewer_heads, importance
from experiments.heads.each_run import prompts_of, run
from experiments.heads.head_pruning import masked_models
from experiments.models.model import Model, head_gates
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab.analyses import heads
from lsa_lab.models import linear_attention
from lsa_lab.prompts import Prompt

SPEC = Spec(
    Task(2, (8,), sparsity=1, noise_std=0.5),
    Architecture(3, 2, ((2, 2, 2),), normalise_prompt=True),
    Recipe(steps=1, batch=1, learning_rate=1.0, seeds=2),
)
OF_TWO = Spec(
    Task(2, (8,)),
    Architecture(2, 2, ((2, 1), (2, 2)), padding_slots=1, normalise_prompt=True),
    Recipe(steps=1, batch=1, learning_rate=1.0, seeds=2),
)


@pytest.fixture(scope="module")
def models():
    rng = np.random.default_rng(0)
    leaves = (rng.normal(scale=0.3, size=(2, 3, 2, 3, 3)) for _ in range(2))
    return Model(SPEC, linear_attention.Params(*leaves), np.ones((2, 3, 2)))


@pytest.fixture(scope="module")
def batch():
    return prompts_of(SPEC.task, 0, 1, 4, 8, 2)


def test_each_mask_has_its_risk(models, batch):
    rows = np.array([[[1, 0], [1, 1], [0, 1]], [[1, 1], [1, 0], [1, 0]], [[0, 1], [1, 1], [1, 1]]])
    of_runs = np.stack([rows, rows[::-1]]).astype(float)
    risks = masked_models.risks(models, batch, of_runs)
    risk = jax.jit(Model.risk)
    for r, m in itertools.product(range(2), range(3)):
        model = run(models, r).replace(gates=of_runs[r, m])
        assert risks[r, m] == pytest.approx(float(risk(model, run(batch, r))), rel=1e-9)


def test_the_best_mixed_head_is_as_good_as_any_head_as_it_is(models, batch):
    key = jax.random.key_data(jax.random.key(0))
    best = fewer_heads.best_mixed(models, batch, key, starts=4, steps=4)
    # Layer 1 whole and the first head of each later layer.
    assert np.array_equal(best.gates, [[[1, 1], [1, 0], [1, 0]]] * 2)
    chosen = np.array([[[1, 1], a, b] for a in np.eye(2) for b in np.eye(2)])
    every = masked_models.risks(models, batch, np.stack([chosen, chosen]))
    least = masked_models.risks(best, batch, best.gates[:, None])[:, 0]
    assert (least <= every.min(1) * (1 + 1e-9)).all()


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def models_of(variant):
    w_kq, w_pv = 0.3 * normal(2, 2, 2, 2, 4, 4)
    gates = np.tile(head_gates(OF_TWO.architecture)[variant], (2, 1, 1))
    return Model(OF_TWO, linear_attention.Params(w_kq=w_kq, w_pv=w_pv), gates)


def prompts():
    numbers = normal(8, 6, 3)
    return Prompt(numbers[:, :5, :2], numbers[:, :5, 2], numbers[:, 5, :2], numbers[:, 5, 2])


@pytest.mark.parametrize("variant", [0, 1])
def test_importances_are_those_of_one_run_after_the_other(variant):
    every = models_of(variant)
    rises, gates = importance.importances(every, prompts()), every.gates[1]
    second = jax.tree.map(lambda leaf: leaf[1], every)
    loss = lambda mask: second.replace(gates=gates * mask).risk(prompts())  # noqa: E731
    np.testing.assert_allclose(rises[1], heads.importance(loss, 2, 2), atol=1e-12)
    assert not rises[:, gates == 0].any(), "a head that is not there has no importance"
