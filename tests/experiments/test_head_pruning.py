"""Models without some of their heads are judged as they are, and their heads chosen well."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest
import xarray as xr

from experiments.heads import fewer_heads, importance
from experiments.heads.each_run import run
from experiments.heads.head_pruning import claims, compute, masked_models
from experiments.heads.head_pruning.claims import statements
from experiments.heads.head_pruning.config import TIERS
from experiments.heads.head_pruning.masked_models import SEARCH
from experiments.models.model import Model, gates_of
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab.analyses import heads
from lsa_lab.judging.statements import cells_of
from lsa_lab.models import head_gauge, linear_attention
from lsa_lab.prompts import Prompt
from lsa_lab.store import parts

SPEC = Spec(
    Task(2, (8,), sparsity=1, noise_std=0.5),
    Architecture(3, 2, ((2, 2, 2),), own_units=True),
    Recipe(steps=1, batch=1, learning_rate=1.0, seeds=2),
)
OF_TWO = Spec(
    Task(2, (8,)),
    Architecture(2, 2, ((2, 1), (2, 2)), scratch=1, own_units=True),
    Recipe(steps=1, batch=1, learning_rate=1.0, seeds=2),
)
CONFIG = dataclasses.replace(TIERS["smoke"], n=4, prompts=8, search=8)


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    leaves = (rng.normal(scale=0.3, size=(2, 3, 2, 3, 3)) for _ in range(2))
    models = Model(SPEC, linear_attention.Params(*leaves), np.ones((2, 3, 2)))
    return masked_models.Case(models, None, 0)


@pytest.fixture(scope="module")
def searched(case):
    return masked_models.batch_of(CONFIG, case, SEARCH, 8)


def test_each_mask_has_its_risk(case):
    rows = np.array([[[1, 0], [1, 1], [0, 1]], [[1, 1], [1, 0], [1, 0]], [[0, 1], [1, 1], [1, 1]]])
    of_runs = np.stack([rows, rows[::-1]]).astype(float)
    batch = masked_models.judging_batch(CONFIG, case)
    risks = masked_models.risks(case.models, batch, of_runs)
    risk = jax.jit(Model.risk)
    for r, m in itertools.product(range(2), range(3)):
        model = run(case.models, r).replace(gates=of_runs[r, m])
        assert risks[r, m] == pytest.approx(float(risk(model, run(batch, r))), rel=1e-9)


def test_the_best_mixed_head_is_as_good_as_any_head_as_it_is(case, searched):
    key = jax.random.key_data(jax.random.key(0))
    best = fewer_heads.best_mixed(case.models, searched, key, starts=4, steps=4)
    assert np.array_equal(best.gates, np.stack([choices_of_first()] * 2))
    chosen = np.array([[[1, 1], a, b] for a in np.eye(2) for b in np.eye(2)])
    every = masked_models.risks(case.models, searched, np.stack([chosen, chosen]))
    least = masked_models.risks(best, searched, best.gates[:, None])[:, 0]
    assert (least <= every.min(1) * (1 + 1e-9)).all()


def test_one_head_of_a_mixed_layer_is_what_two_vectors_make_of_it(case, searched):
    rng = np.random.default_rng(1)
    mixing = rng.standard_normal((3, 2, 2))
    mixing[0] = np.eye(2)
    model = run(case.models, 0)
    turned = model.replace(params=head_gauge.mixed(model.params, mixing), gates=choices_of_first())
    a, b = mixing[1:, 0], np.linalg.inv(mixing)[1:, :, 0]
    one = fewer_heads.one_head(jax.tree.map(jax.numpy.asarray, model), a, 3 * b)
    risks = [float(jax.jit(Model.risk)(each, run(searched, 0))) for each in (turned, one)]
    assert risks[0] == pytest.approx(risks[1], rel=1e-9)


def choices_of_first():
    """Layer 1 whole and the first head of each later layer."""
    return np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 0.0]])


def test_a_row_says_the_seeds_of_its_own_model():
    over = {row.id: row.over for row in cells_of(statements(TIERS["paper"]))}
    assert over["best_mixed_dense"] == over["best_mixed_long_training"] == "5 seeds"
    assert over["best_mixed_depth_3"] == over["softmax"] == over["first.softmax_full"] == "20 seeds"
    assert {row.over for row in cells_of(statements(TIERS["laptop"]))} == {"5 seeds"}


def test_numbers_of_masks_stand_where_the_masks_do(case, monkeypatch):
    weights = np.random.default_rng(3).normal(size=(3, 2))

    def risk_of(mask):
        return np.exp((weights * mask).sum())

    config = dataclasses.replace(CONFIG, draws=3)
    scores = np.array([[[1.0, 2.0], [4.0, 3.0], [5.0, 6.0]], [[2.0, 1.0], [3.0, 4.0], [6.0, 5.0]]])
    by_hand = {"importances": scores, "risks_of_fewer": np.array([7.0, np.nan])}
    for name, value in by_hand.items():
        monkeypatch.setattr(masked_models, name, lambda *_, value=value: value)
    monkeypatch.setattr(compute, "risks", lambda *given: risks_like(risk_of, given[2]))
    risk = compute.measure_own(config, case)
    pruned = [[[1, 1], [1, 0], [0, 1]], [[1, 1], [0, 1], [1, 0]]]
    first = [[[0, 1], [1, 1], [1, 1]], [[1, 0], [1, 1], [1, 1]]]
    treated = masked_models.treatment_masks(config, case, scores)
    for r in range(2):
        exact = {"full": np.ones((3, 2)), "pruned": pruned[r], "top head of layer 1": first[r]}
        for treatment, mask in exact.items():
            assert risk[treatment][r] == pytest.approx(risk_of(mask)), treatment
        for i, treatment in enumerate(("random later heads", "as many at random")):
            product = np.prod([risk_of(mask) for mask in treated[r, 3 + 3 * i : 6 + 3 * i]])
            assert risk[treatment][r] == pytest.approx(product ** (1 / 3))
    np.testing.assert_array_equal(risk["trained so"], [7, np.nan])
    assert "best of all mixings" not in risk


def risks_like(risk_of, every):  # [R, M, L, H] -> [R, M]
    return np.array([[risk_of(mask) for mask in row] for row in every])


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def models_of(variant):
    w_kq, w_pv = 0.3 * normal(2, 2, 2, 2, 4, 4)
    gates = np.tile(gates_of(OF_TWO.architecture)[variant], (2, 1, 1))
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


def test_heads_that_are_alike_everywhere_are_their_own_null():
    rise = normal(4, 3, 2) ** 2
    np.testing.assert_allclose(claims.count_of(rise), jax.vmap(heads.effective_heads)(rise))
    part = xr.Dataset({"rise": (("model", "run", "layer", "head"), rise[None])}, {"model": ["m"]})
    whole = parts.join(xr.Dataset(), importance=part)
    counts = claims.count_of(rise)
    by_layer = claims.exchanged_ratio(whole, "m", "layers")
    np.testing.assert_allclose(by_layer, counts[:, 0] / counts.mean(1))
    pairs = [
        [row.ravel()[list(two)] for two in itertools.combinations(range(6), 2)] for row in rise
    ]
    null = [np.mean([claims.count_of(pair) for pair in row]) for row in pairs]
    by_head = claims.exchanged_ratio(whole, "m", "heads")
    np.testing.assert_allclose(by_head, counts[:, 0] / null)
    rise[0, 1, 0] = np.nan
    part["rise"] = part.rise.copy(data=rise[None])
    kept = claims.rises(parts.join(xr.Dataset(), importance=part), "m")
    assert len(kept) == 3, "a run in which a rise is no number is left out"
