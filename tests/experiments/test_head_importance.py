"""What the experiments on heads share: importance of runs, and which heads are a layer's own."""

import jax
import numpy as np
import pytest

from experiments.heads import importance
from experiments.heads.head_importance import measures, mixings
from experiments.heads.head_importance.compute import effective
from experiments.heads.head_importance.config import TIERS
from experiments.models.model import Model, gates_of
from experiments.models.named import MODELS
from experiments.models.specs import Architecture, Recipe, Spec, Task
from experiments.models.trained import resolve
from lsa_lab.analyses import heads
from lsa_lab.models import head_gauge
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt

SPEC = Spec(
    Task(2, (8,)),
    Architecture(2, 2, ((2, 1), (2, 2)), scratch=1, own_units=True),
    Recipe(steps=1, batch=1, learning_rate=1.0, seeds=2),
)
RUNS, PROMPTS = 2, 8


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def models(variant):
    w_kq, w_pv = 0.3 * normal(2, RUNS, 2, 2, 4, 4)
    gates = np.tile(gates_of(SPEC.architecture)[variant], (RUNS, 1, 1))
    return Model(SPEC, Params(w_kq=w_kq, w_pv=w_pv), gates)


def prompts():
    numbers = normal(PROMPTS, 6, 3)
    return Prompt(numbers[:, :5, :2], numbers[:, :5, 2], numbers[:, 5, :2], numbers[:, 5, 2])


@pytest.mark.parametrize("variant", [0, 1])
def test_importances_are_those_of_one_run_after_the_other(variant):
    every = models(variant)
    rises, gates = importance.importances(every, prompts()), every.gates[1]
    second = jax.tree.map(lambda leaf: leaf[1], every)
    loss = lambda mask: second.replace(gates=gates * mask).risk(prompts())  # noqa: E731
    np.testing.assert_allclose(rises[1], heads.importance(loss, 2, 2), atol=1e-12)
    assert not rises[:, gates == 0].any(), "a head that is not there has no importance"


def test_mixings_change_the_count_of_heads_and_no_prediction():
    every, config = models(1), TIERS["smoke"]
    ends = mixings.ranges(config, every, prompts(), prompts())
    assert ends.shape == (RUNS, 2, 3)
    model, place = jax.tree.map(lambda leaf: leaf[0], every), normal(5, 2)
    mixing = np.asarray(mixings.mixing_of(place, 20.0))
    assert np.linalg.cond(mixing) <= 20
    both = np.stack([np.eye(2), mixing])
    mixed = model.replace(params=head_gauge.mixed(model.params, both))
    answers = [np.asarray(jax.jit(Model.predict)(m, prompts())) for m in (model, mixed)]
    np.testing.assert_allclose(*answers, atol=1e-10)
    counts = [float(jax.jit(mixings.effective)(model, 1, m, prompts())) for m in both]
    assert abs(counts[0] - counts[1]) > 1e-3, "but the count has changed"
    rises = heads.importance(lambda mask: mixed.replace(gates=mask).risk(prompts()), 2, 2)
    assert counts[1] == pytest.approx(float(heads.effective_heads(rises)[1]), rel=1e-9)


@pytest.mark.parametrize("name", ["narrow keys", "depth 3"])
def test_layers_determine_trained_heads_of_narrow_keys_and_no_merged_ones(name):
    spec = MODELS["laptop"][name]
    one = resolve(((name, spec),), "test")[name].models(seeds=slice(1)).in_float64()
    numbers = measures.condition_numbers(one)
    assert numbers.shape == (1, 3)
    assert (numbers < 1e4).all() if name == "narrow keys" else (numbers > 1e8).all()


def test_a_head_without_which_the_risk_is_no_number_does_not_count_as_idle():
    rise = normal(2, 3, 4) ** 2
    rise[0, 1, 2] = np.nan
    counts = effective(rise)
    assert np.isnan(counts[0, 1])
    counts[0, 1] = 0
    rise[0, 1] = 0
    np.testing.assert_allclose(counts, heads.effective_heads(rise))
