"""Linear readers of trained models: what they are called, what they are refused, what they find."""

import dataclasses
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from experiments.heads.each_run import prompts_of
from experiments.heads.layer_probes import compute, probing
from experiments.heads.layer_probes.claims import statements
from experiments.heads.layer_probes.config import FEATURES, FORMULA, RAW, TIERS, Config
from experiments.models.model import Model
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab.analyses import probes
from lsa_lab.judging.statements import cells_of
from lsa_lab.models import linear_attention

SPEC = Spec(
    Task(2, (8,), sparsity=1, noise_std=0.5),
    Architecture(2, 2, ((1, 1), (2, 2)), scratch=2, own_units=True),
    Recipe(steps=1, batch=1, learning_rate=1.0, seeds=1),
)
CONFIG = dataclasses.replace(TIERS["smoke"], n=4, prompts=512, descents=1024)


def preprocessing(mask, finished=True):
    """Layer 1 writes r_j x_j to scratch slot j with head j, layer 2 nothing."""
    w_kq, w_pv = np.zeros((2, 1, 2, 2, 5, 5))
    for j in range(2):
        w_kq[0, 0, j, j, j] = w_pv[0, 0, j, 2 + j, 4] = 1
    models = Model(SPEC, linear_attention.Params(w_kq, w_pv), np.array([mask], float))
    return probing.Variant(models, np.array([finished]))


def read(masks, config=CONFIG):
    """Risks of reader and read-out, and R² [3, L+1], of one run for each mask."""
    variants = {name: preprocessing(mask) for name, mask in masks.items()}
    numbers = probing.readers(config, probing.Case(SPEC, variants, 0))[:, 0]
    return dict(zip(variants, numbers, strict=True))


def test_a_reader_finds_one_preprocessed_covariate_for_each_head_of_layer_one():
    numbers = read({"full": [[1, 1], [1, 1]], "one": [[1, 0], [1, 1]]})
    assert numbers["full"][2] == pytest.approx([0, 1, 1], abs=0.03)
    assert numbers["one"][2] == pytest.approx([0, 0.5, 0.5], abs=0.1)


def test_what_is_read_is_scored_in_the_units_of_the_labels():
    many = dataclasses.replace(CONFIG, prompts=4096)  # a reader of 512 fits a tenth of noise
    reader, own = read({"full": [[1, 1], [1, 1]]}, many)["full"][:2]
    batch = prompts_of(SPEC.task, CONFIG.seed, probing.FRESH, 4, 4096, 1)
    zero = (batch.y_query[0] ** 2).mean()
    assert own == pytest.approx(zero, rel=1e-9)  # nothing is written to the label slot
    assert reader[0] == pytest.approx(zero, rel=0.05)
    assert reader[1] < 0.7 * zero


def test_a_training_that_has_not_ended_has_no_numbers():
    variants = {"full": preprocessing(np.ones((2, 2)), finished=False)}
    assert np.isnan(probing.readers(CONFIG, probing.Case(SPEC, variants, 1))).all()


@pytest.mark.parametrize(
    ("variant", "name"),
    [((4, 4, 4), "full"), ((1, 1, 1), "single head"), ((4, 1, 1), "4 1…"), ((1, 4, 2), "1 4 2…")],
)
def test_variants_have_short_names(variant, name):
    assert probing.short(variant, (4, 4, 4)) == name


def test_too_few_prompts_for_a_probe_are_refused_with_the_number_needed():
    with pytest.raises(ValueError, match=r"tokens of width 9, which needs 20.*nearest 184"):
        Config(prompts=100)
    assert Config(prompts=184).learned >= 180


def test_a_row_says_the_seeds_of_the_models_that_it_is_about():
    over = {row.id: row.over for row in cells_of(statements(TIERS["paper"]))}
    assert over["held"] == over["descent_raw"] == "20 seeds"
    assert over["at_last"] == "5 or 20 seeds"
    assert {row.over for row in cells_of(statements(TIERS["laptop"]))} == {"5 seeds"}


def test_readings_and_shares_of_heads_stand_under_their_names(monkeypatch):
    masks = {"full": [[1, 1], [1, 1]], "single head": [[1, 0], [1, 0]]}
    case = probing.Case(SPEC, {name: preprocessing(mask) for name, mask in masks.items()}, 3)
    numbers = np.arange(18.0).reshape(2, 1, 3, 3)  # variants, runs, readings, layers
    monkeypatch.setattr(probing, "readers", lambda *_: numbers)
    monkeypatch.setattr(probing, "risks_of_rules", lambda *_: np.array([0.3, 0.1]))
    data = compute.measure(CONFIG, case, dissected=False)
    for i, name in enumerate(("reader", "own", "held")):
        for v, model in enumerate(masks):
            assert data[name].sel(model=model, run=0, layer=2) == 9 * v + 3 * i + 2
    assert data.share.values.tolist() == [1, 0.5]
    assert (int(data.lost), "descent" in data) == (3, False)


def test_descent_on_raw_and_weighed_covariates_is_that_of_loops():
    config = SimpleNamespace(seed=0, n=4, prompts=4, descents=4, steps=3, share=0.4)
    masks = {"full": [[1, 1], [1, 1]], "single head": [[1, 0], [1, 0]]}
    case = probing.Case(SPEC, {name: preprocessing(mask) for name, mask in masks.items()}, 0)
    paths = compute.descents(config, case)
    assert paths.shape == (1, len(FEATURES), 2, 4)
    batch = prompts_of(SPEC.task, 0, probing.DESCENT, 4, 4, 1)
    for feature in (RAW, FORMULA):
        squares = np.zeros((4, 4))
        for b in range(4):
            x, y, query, target = (np.asarray(leaf)[0, b] for leaf in vars(batch).values())
            gains = x.T @ y if feature == FORMULA else np.ones(2)
            rows, asked, theta = x * gains, query * gains, np.zeros(2)
            size, most = 0.4 * 2 / np.linalg.norm(rows, ord=2) ** 2, 2 * np.abs(y).max()
            for step in range(4):
                squares[b, step] = (np.clip(theta @ asked, -most, most) - target) ** 2
                theta = theta + size * rows.T @ (y - rows @ theta)
        exact = [squares[:2].mean(0), squares[2:].mean(0)]
        np.testing.assert_allclose(paths[0, FEATURES.index(feature)], exact, rtol=1e-8)


def test_white_tokens_are_white_and_have_no_more_directions():
    features = np.random.default_rng(0).standard_normal((8, 5, 2)) @ np.array(
        [[3, 1, 3], [0, 1, 0]]
    )
    first = compute.whitened(features)[:4].reshape(-1, 3)
    moment = first.T @ first / len(first)
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(moment)), [0, 1, 1], atol=1e-10)


def test_descent_on_white_tokens_does_not_depend_on_the_basis_of_the_stream():
    rng = np.random.default_rng(1)
    features, basis, y = rng.standard_normal((8, 5, 3)), rng.standard_normal((3, 3)), np.ones(4)
    path = jax.jit(lambda features: probes.descend(features[0], y, 8, 0.5))
    turned = features @ basis
    np.testing.assert_allclose(
        path(compute.whitened(turned)),
        path(compute.whitened(features)),
        atol=1e-10,
    )
    assert np.abs(path(turned) - path(features)).max() > 1e-3
