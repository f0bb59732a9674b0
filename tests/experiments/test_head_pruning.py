"""Models without some of their heads are judged as they are, and their heads chosen well."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

from experiments.heads import fewer_heads
from experiments.heads.each_run import prompts_of, run
from experiments.heads.head_pruning import compute, masked_models, masks
from experiments.heads.head_pruning.claims import statements
from experiments.heads.head_pruning.config import TIERS
from experiments.heads.head_pruning.masked_models import SEARCH
from experiments.models.model import Model
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab.analyses import head_subsets
from lsa_lab.judging.statements import cells_of
from lsa_lab.models import head_gauge, linear_attention

SPEC = Spec(
    Task(2, (8,), sparsity=1, noise_std=0.5),
    Architecture(3, 2, ((2, 2, 2),), own_units=True),
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


def test_every_choice_keeps_layer_one_and_one_head_of_each_later_layer(case):
    every = masks.choices(case)
    assert len({mask.tobytes() for mask in every}) == 4
    assert np.array_equal(every.sum(2), np.tile([2, 1, 1], (4, 1)))


def test_greed_removes_a_head_at_a_time_and_the_one_missed_least(case, searched):
    order = masks.greedy(case, searched)
    assert np.array_equal(order.sum((2, 3)), np.tile(np.arange(6, 0, -1), (2, 1)))
    without = 1 - np.eye(6).reshape(6, 3, 2)
    risks = masked_models.risks(case.models, searched, np.stack([without, without]))
    assert np.array_equal(order[:, 1], without[risks.argmin(1)])


def test_the_best_subsets_have_every_size(case, searched):
    best, worth = masks.best_subsets(case, searched)
    assert np.array_equal(best.sum(4)[:, 1, :, 1], np.tile([0, 1, 2], (2, 1)))
    rows = np.asarray(head_subsets.subsets(2))
    every = np.ones((4, 3, 2))
    every[:, 1] = rows
    risks = masked_models.risks(case.models, searched, np.stack([every, every]))
    assert worth[:, 1].sum(1) == pytest.approx(risks[:, 0] - risks[:, 3], rel=1e-9)


def test_the_best_mixed_head_is_as_good_as_any_head_as_it_is(case, searched):
    key = jax.random.key_data(jax.random.key(0))
    best = fewer_heads.best_mixed(case.models, searched, key, starts=4, steps=4)
    assert np.array_equal(best.gates, masks.choices(case)[:1].repeat(2, axis=0))
    chosen = masks.choices(case)
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


def test_heads_fitted_for_longer_are_better_and_layer_one_stays(case):
    batch = prompts_of(SPEC.task, 0, 1, 4, 30 * 8, 2)
    batches = jax.tree.map(lambda leaf: leaf.reshape(2, 30, 8, *leaf.shape[2:]), batch)
    once = jax.tree.map(lambda leaf: leaf[:, :1], batches)
    judged = masked_models.judging_batch(CONFIG, case)
    fits = [fewer_heads.refitted(case.models, 1, each) for each in (batches, once)]
    many, few = (masked_models.risks(fit, judged, fit.gates[:, None]) for fit in fits)
    assert (many < few).all()
    np.testing.assert_array_equal(fits[0].params.w_pv[:, 0], case.models.params.w_pv[:, 0])
    assert not fits[0].params.w_pv[:, 1:, 1:].any(), "one head is left in each later layer"


def test_a_row_says_the_seeds_of_its_own_model():
    over = {row.id: row.over for row in cells_of(statements(TIERS["paper"]))}
    assert over["best_mixed_dense"] == over["best_mixed_long_training"] == "5 seeds"
    assert over["best_mixed_depth_3"] == over["softmax"] == over["greedy_later"] == "20 seeds"
    assert {row.over for row in cells_of(statements(TIERS["laptop"]))} == {"5 seeds"}


def test_numbers_of_masks_stand_where_the_masks_do(case, monkeypatch):
    weights = np.random.default_rng(3).normal(size=(3, 2))

    def risk_of(mask):
        return np.exp((weights * mask).sum())

    config = dataclasses.replace(CONFIG, draws=3)
    scores = np.array([[[1.0, 2.0], [4.0, 3.0], [5.0, 6.0]], [[2.0, 1.0], [3.0, 4.0], [6.0, 5.0]]])
    order = np.ones((2, 6, 3, 2))
    for kept in range(6, 0, -1):
        order[:, 6 - kept].reshape(2, -1)[:, kept:] = 0
    subsets = np.random.default_rng(4).integers(2, size=(2, 3, 3, 3, 2)).astype(float)
    best = np.broadcast_to(masks.choices(case)[3], (2, 3, 2))
    by_hand = {"importances": scores, "risks_of_fewer": np.array([7.0, np.nan])}
    for name, value in by_hand.items():
        monkeypatch.setattr(masked_models, name, lambda *_, value=value: value)
    rows = {"greedy": order, "best_subsets": (subsets, scores), "best_choices": best}
    for name, value in rows.items():
        monkeypatch.setattr(masks, name, lambda *_, value=value: value)
    monkeypatch.setattr(compute, "risks", lambda *given: risks_like(risk_of, given[2]))
    data = compute.measure_own(config, case)
    pruned = [[[1, 1], [1, 0], [0, 1]], [[1, 1], [0, 1], [1, 0]]]
    first = [[[0, 1], [1, 1], [1, 1]], [[1, 0], [1, 1], [1, 1]]]
    treated = masks.treatment_masks(config, case, scores, best)
    for r in range(2):
        row = data.risk.sel(run=r)
        exact = {"full": np.ones((3, 2)), "pruned": pruned[r], "best later heads": best[r]}
        exact["top head of layer 1"] = first[r]
        for treatment, mask in exact.items():
            assert float(row.sel(treatment=treatment)) == pytest.approx(risk_of(mask)), treatment
        for i, treatment in enumerate(("random later heads", "as many at random")):
            product = np.prod([risk_of(mask) for mask in treated[r, 4 + 3 * i : 7 + 3 * i]])
            assert float(row.sel(treatment=treatment)) == pytest.approx(product ** (1 / 3))
        for kept in range(1, 7):
            assert data.greedy.sel(run=r, kept=kept) == pytest.approx(risk_of(order[r, 6 - kept]))
            assert data.left.sel(run=r, kept=kept).sum() == kept
        for layer, size in np.ndindex(3, 3):
            value = data.subset.sel(run=r, layer=layer + 1, size=size)
            assert float(value) == pytest.approx(risk_of(subsets[r, layer, size]))
    np.testing.assert_array_equal(data.risk.sel(treatment="trained so"), [7, np.nan])
    assert np.isnan(data.risk.sel(treatment="best of all mixings")).all()


def risks_like(risk_of, every):  # [R, M, L, H] -> [R, M]
    return np.array([[risk_of(mask) for mask in row] for row in every])


def test_prompts_to_fit_heads_to_are_each_seen_once(case):
    config = dataclasses.replace(CONFIG, fit_steps=3, fit_prompts=2)
    batches = compute.fresh_batches(config, case)
    assert batches.x.shape == (2, 3, 2, 4, 2)
    assert len(np.unique(batches.x)) == batches.x.size
