"""What the experiments on heads share: importance of runs, and other ways to write their heads."""

import jax
import numpy as np
import pytest

from experiments.heads import importance
from experiments.heads.head_importance import measures
from experiments.models.model import Model, gates_of
from experiments.models.specs import Architecture, Spec, Task, Training
from lsa_lab.analyses import heads
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt

SPEC = Spec(
    Task(2, (8,)),
    Architecture(2, 2, ((2, 1), (2, 2)), scratch=1, own_units=True),
    Training(steps=1, batch=1, learning_rate=1.0, seeds=2),
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


def predicted(models):  # [R, B]
    run = jax.jit(jax.vmap(lambda model: model.predict(prompts())))
    return np.asarray(run(models))


@pytest.mark.parametrize("variant", [0, 1])
def test_importances_are_those_of_one_run_after_the_other(variant):
    every = models(variant)
    rises, gates = importance.importances(every, prompts()), every.gates[1]
    second = jax.tree.map(lambda leaf: leaf[1], every)
    loss = lambda mask: second.replace(gates=gates * mask).risk(prompts())  # noqa: E731
    np.testing.assert_allclose(rises[1], heads.importance(loss, 2, 2), atol=1e-12)
    assert not rises[:, gates == 0].any(), "a head that is not there has no importance"


def test_other_representatives_are_the_same_model():
    every = models(1)
    written = measures.represented(every, seed=0)
    for others in written.values():
        np.testing.assert_allclose(predicted(others), predicted(every), atol=1e-10)
        change = np.abs(others.params.w_pv - every.params.w_pv).max()
        assert change > 0.1, "its heads are other ones"
    params = written["orthogonal"].params.replace(w_pv=written["turned"].params.w_pv)
    halves = written["turned"].replace(params=params)
    assert np.abs(predicted(halves) - predicted(every)).max() > 0.01, "control: half of each"
