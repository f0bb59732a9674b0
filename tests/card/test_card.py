"""Cards of models, saved cards, and the refusal of unsuitable models and files."""

import dataclasses
import json
import signal
from html import escape

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.card import (
    UnfitError,
    layers,
    leaderboard,
    leaderboard_page,
    mechanism,
    page,
    pictures,
    probe,
    probes,
    recipe,
    report_card,
    tracking,
)
from lsa_lab.card.evaluation import EvaluationContext
from lsa_lab.card.model_checks import prepare_model
from lsa_lab.card.recipe import Tier
from lsa_lab.models import trace as traces

TINY = Tier(steps=200, pilot_steps=100, batch=8, prompts=32, d=3, runs=2, lengths=(16, 32))


def init(key):
    return {"a": jnp.eye(3) + 0.01 * jax.random.normal(key, (3, 3)), "b": jnp.ones(())}


def forward(params, tokens):
    """Return the predictions of linear attention with normaliser n + e^b on bound tokens."""
    queries, keys, labels = tokens[:, :3], tokens[:, 3:6], tokens[:, 6]
    sums = jnp.cumsum(keys * labels[:, None], 0)
    counts = jnp.arange(len(tokens), dtype=tokens.dtype) + jnp.exp(params["b"])
    return (queries @ params["a"] * sums).sum(1) / counts


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    """Return a card of two seeds, although the tier has three."""
    tier, folder = dataclasses.replace(TINY, runs=3), tmp_path_factory.mktemp("work")
    return report_card(forward, init, tier=tier, seeds=2, folder=folder)


def test_a_trained_layer_of_linear_attention_is_a_step_of_descent(card):
    assert card.probes["nearest rule"].value.startswith("gradient descent")
    assert card.probes["squared change under a permutation"].verdict == "holds"
    assert card.probes["risk over ridge, covariates twice as large"].verdict == "fails"
    assert card.probes["share of the new label"].value == pytest.approx(0.5, abs=0.1)
    last = card.probes["risk over Bayes, n = 24"]
    assert 1 < last.value < last.null
    assert card.facts["trained"]
    assert card.facts["runs"] == 2
    words = page.render_card(card.to_json("linear"))  # absent for given weights
    assert "24 demonstrations in training, 2 seeds" in words
    assert "8 times as long as in training" in words
    assert "of 2 runs agree" in words


def test_a_saved_card_is_valid_until_it_is_changed(card, tmp_path):
    folder = card.save(tmp_path / "linear")
    assert leaderboard.find_errors(folder) == []
    page = (folder / "index.html").read_text("utf-8")
    assert all(escape(probe.name) in page for probe in card.probes.values())
    assert "linear" in leaderboard.write_leaderboard(tmp_path).read_text("utf-8")
    body = json.loads((folder / "card.json").read_text("utf-8"))
    body["probes"][0]["value"] = 1.0
    (folder / "card.json").write_text(json.dumps(body), "utf-8")
    (error,) = leaderboard.find_errors(folder)
    assert "changed after it was written" in error


def test_a_killed_card_resumes_to_the_same_weights(card, tmp_path, python):
    code = """
import os, signal
from pathlib import Path
import jax
jax.config.update("jax_default_matmul_precision", "highest")
from tests.card.test_card import TINY, forward, init, report_card
end = lambda line: line.startswith("learning rate") and os.kill(os.getpid(), signal.SIGKILL)
report_card(forward, init, tier=TINY, folder=Path("work"), log=end)
"""
    ended = python(code, cwd=tmp_path, timeout=None, JAX_ENABLE_X64="1")
    assert ended.returncode == -signal.SIGKILL
    pilot = tmp_path / "work" / "pilot.ckpt"
    before = pilot.stat().st_mtime_ns
    resumed = report_card(forward, init, tier=TINY, folder=tmp_path / "work")
    assert pilot.stat().st_mtime_ns == before
    assert resumed.facts["weights_sha256"] == card.facts["weights_sha256"]
    assert (resumed.facts["resumed"], card.facts["resumed"]) == (True, False)


def test_differences_of_seeds_and_of_layers_are_computed_by_hand():
    def body(name, *levels, tier="laptop"):
        facts = dict(tier=tier, causal=True, trained=True, runs=len(levels))
        facts["curves"] = {"risk": {"runs": [[level, level / 2] for level in levels]}}
        asked = [
            probe.make_probe(f"shift {i}", "", "", np.add(levels, i), ratio=not i) for i in (0, 3)
        ]
        return dict(name=name, probes=[dataclasses.asdict(each) for each in asked], **facts)

    longer = body("c", 0.01, 0.011, tier="paper")  # not compared with a shorter training
    cards = [body("a", 1.0, 1.1), body("b", 2.0, 2.2), longer]
    words = leaderboard_page.describe_differences(cards)
    assert "one layer differ by 9.5 %" in words
    assert "two layers of one tier differ by 69 %, 7.3 times" in words
    # two seeds are .954 of their standard deviation apart, which is |difference|/√2 of two
    logs = np.log(2) / (0.954 * np.log(1.1) / 2**0.5)
    plain = 1.05 / (0.954 * (0.1 + 0.2) / 2 / 2**0.5)
    ratios = leaderboard_page.layer_to_seed_ratios(cards)
    assert ratios == pytest.approx({"shift 0": logs, "shift 3": plain})
    assert f"median over probes is {(logs + plain) / 2:.2g}" in words
    assert leaderboard_page.describe_differences([body("a", 1.0, 1.1)]) == ""
    identical_seeds = [body("a", 1.0, 1.0), body("b", 2.0, 2.0)]
    assert leaderboard_page.describe_differences(identical_seeds) == ""


def ridge(params, tokens):
    """Return the Bayes predictions of TINY at every token."""
    queries, keys, labels = tokens[:, :3], tokens[:, 3:6], tokens[:, 6]
    moments = jnp.cumsum(keys[:, :, None] * keys[:, None], 0) + 3 * 0.5**2 * jnp.eye(3)[None]
    sums = jnp.cumsum(keys * labels[:, None], 0)[..., None]
    return (queries * jnp.linalg.solve(moments, sums)[..., 0]).sum(1)


@pytest.mark.parametrize(("scale", "least", "most"), [(1.0, 1.0, 1.0), (0.0, 10.0, 100.0)])
def test_only_ridge_has_the_bayes_risk_at_late_places_of_test_prompts(scale, least, most):
    model = prepare_model(lambda params, tokens: scale * ridge(params, tokens), {}, 3, 24, True)
    ratio = float(recipe._make_late_risk(model, TINY.distribution(), TINY.n)({}))
    assert least * (1 - 1e-9) <= ratio <= most * (1 + 1e-9)


def test_the_first_time_below_twice_the_bayes_risk_is_counted_in_steps():
    late = np.array([[9.0, 2.5, 1.9, 2.1, 1.5], [9.0, 8.0, 7.0, 6.0, 5.0]])
    (probe,) = probes.measure_training_steps(
        EvaluationContext(None, [{}, {}], TINY, TINY.distribution(), late_risk_ratios=late)
    )
    assert probe.value == (2 * recipe.STRIDE + TINY.steps) / 2
    assert probe.note == "1 of 2 runs never did"


def test_a_state_that_explodes_gives_a_card():
    grows = lambda params, tokens: 1.2 ** jnp.arange(len(tokens), dtype=tokens.dtype)  # noqa: E731
    model = prepare_model(grows, {}, 3, 24, causal=True)
    twice, eight = probes.measure_long_prompts(
        EvaluationContext(model, [{}, {}], TINY, TINY.distribution())
    )
    assert (eight.verdict, eight.note) == ("fails", "diverges at n = 13")  # 1.2^(2 13) > 100
    assert twice.note == ""


def test_with_tasks_of_any_size_the_null_is_the_risk_of_predicting_0():
    """Growth's null took |w|² = 1: 100 for a model of risk ratio 1300, which also diverged."""
    tasks = 12 * np.random.default_rng(0).normal(size=(4, 3))
    model = prepare_model(lambda params, tokens: 0 * tokens[:, 0], {}, 3, 24, causal=True)
    context = EvaluationContext(model, [{}] * 4, TINY, TINY.distribution(tasks))
    twice, eight = probes.measure_long_prompts(context)
    for each in (twice, eight):
        assert each.value == pytest.approx(each.null, rel=0.2)  # of other prompts, of four tasks
        assert each.note == ""
    probes.measure_risk(context)
    risk = context.curves["risk"]
    assert risk["rules"] == {}  # closed curves are of Gaussian w
    picture = pictures.draw_risks({"name": "zero", "curves": context.curves})
    assert picture.count("<polyline") == len(risk["runs"])
    assert "ridge" not in picture


@pytest.mark.parametrize("layer", [layers.lms, layers.ttt])
def test_small_first_steps_keep_a_state_finite_over_the_length_in_training(layer):
    tokens = jnp.asarray(np.random.default_rng(0).normal(size=(65, 17)))

    def answer(params):
        return (traces.label_slots(layer.forward(params, tokens)) ** 2).mean()

    params = layer.init(jax.random.key(0))
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(jax.grad(answer)(params)))


def test_counts_agree_with_sums_of_signs():
    signs, parity = tracking.draw_counts(jax.random.key(0), 4, 9, jnp.asarray(2.0))
    np.testing.assert_array_equal(parity, np.cumprod(signs, 1))
    signs, thirds = tracking.draw_counts(jax.random.key(0), 4, 9, jnp.asarray(3.0))
    np.testing.assert_array_equal(thirds, 1 - np.cumsum(signs < 0, 1) % 3)


def test_eight_seeds_of_a_training_step_are_lowered_for_a_gpu():
    model = prepare_model(forward, init(jax.random.key(0)), 3, 24, causal=True)
    loss, data = recipe._make_loss(model, TINY), recipe._make_sampler(TINY, None, model.dtype)
    step = jax.vmap(lambda params, key: jax.value_and_grad(loss)(params, data(key)))
    keys = jax.random.split(jax.random.key(0), 8)
    lowered = jax.jit(step).trace(jax.vmap(init)(keys), keys)
    assert "8x3x3" in lowered.lower(lowering_platforms=("cuda",)).as_text()


def test_given_weights_are_not_trained():
    said = []
    card = report_card(forward, params=init(jax.random.key(0)), tier=TINY, log=said.append)
    assert not card.facts["trained"]
    assert card.facts["runs"] == 8
    assert "steps to twice the Bayes risk" not in card.probes
    assert len(said) > 10
    says = card.probes["risk over Bayes, 8 times the length"].says
    assert says == "On prompts of 192 pairs the risk is at most twice that of the Bayes rule."
    assert "of 8 sets of prompts agree" in card.probes["nearest rule"].note
    words = page.render_card(card.to_json("given")).split("<details>")[0]
    assert "The prompts have more than 24 demonstrations." in words
    assert "training" not in words


def leaking_early(params, tokens):
    """Return the next label as the first four predictions."""
    return jnp.where(jnp.arange(len(tokens)) < 4, jnp.roll(tokens[:, 6], -1), 0.0)


def looping(params, tokens):
    """Return predictions that have no reverse derivative."""
    total = jax.lax.while_loop(
        lambda s: s[0] < 1, lambda s: (s[0] + 1, 2 * s[1]), (0, tokens[0, 0])
    )
    return forward(params, tokens) + total[1]


def noisy(params, tokens):
    draw = lambda t: np.random.default_rng().normal(size=t.shape).astype(t.dtype)  # noqa: E731
    noise = jax.pure_callback(draw, tokens[0, 0], tokens[0, 0], vmap_method="broadcast_all")
    return forward(params, tokens) + noise


def read_refusal(model, causal=True, params=None):
    with pytest.raises(UnfitError) as raised:
        report_card(model, params=params or init(jax.random.key(0)), tier=TINY, causal=causal)
    return str(raised.value)


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (lambda p, t: forward(p, t)[-1], "one prediction for each"),
        (lambda p, t: (forward(p, t) > 0).astype(int), "return floats"),
        (leaking_early, "mask later tokens"),
        (lambda p, t: forward(p, t) * 24 / len(t), "depends on the number of tokens"),
        (lambda p, t: forward(p, t) / jnp.linalg.norm(t[:, 3:6], axis=1), "first pair is 0"),
        (lambda p, t: forward(p, t) + jnp.ones(25)[: len(t)], "not on 193"),
        (looping, "lax.scan"),
        (lambda p, t: forward(p, t) + np.random.default_rng().normal(), "two calls"),
        (noisy, "two calls"),
        (lambda p, t: forward(p, t) * (1 if t[0, 0] > 0 else 2), "cannot be traced"),
        (lambda p, t: forward(p, t[:, :2]), "[x_t, x_{t-1}, y_{t-1}]"),
    ],
)
def test_an_unsuitable_model_is_refused_with_advice(model, advice):
    assert advice in read_refusal(model)


def test_a_model_without_label_gradients_has_no_shares():
    model = prepare_model(lambda params, tokens: tokens[:, 0], {}, 3, 24, causal=True)
    _, *shares = mechanism.measure_label_gradients(
        EvaluationContext(model, [{}] * 2, TINY, TINY.distribution())
    )
    assert [probe.note for probe in shares] == ["2 of 2 values are not finite"] * 2
    model = prepare_model(ridge, {}, 3, 24, causal=True)
    _, *shares = mechanism.measure_label_gradients(
        EvaluationContext(model, [{}] * 2, TINY, TINY.distribution())
    )
    assert [probe.note for probe in shares] == [""] * 2


def test_weights_that_are_nan_are_named():
    given = init(jax.random.key(0))
    words = read_refusal(forward, params=given | {"b": jnp.asarray(jnp.nan)})
    assert "params['b'] holds NaN" in words
    assert "steps" not in words


def test_params_that_are_not_numeric_are_named():
    given = init(jax.random.key(0))
    assert "params['act'] is a str" in read_refusal(forward, params=given | {"act": "relu"})
    assert "eqx.partition" in read_refusal(forward, params=given | {"f": jnp.sin})


def test_leaves_that_cannot_be_trained_are_named():
    whole = lambda key: init(key) | {"n": jnp.arange(3)}  # noqa: E731
    with pytest.raises(UnfitError, match=r"params\['n'\] is int"):
        report_card(forward, whole, tier=TINY)
    with pytest.raises(UnfitError, match=r"init\(key\) raises TypeError"):
        report_card(forward, lambda: {}, tier=TINY)


@pytest.mark.parametrize("wrong", [{"d": 2}, {"runs": 1}, {"steps": 20}, {"noise_std": 0.0}])
def test_a_tier_that_is_too_small_is_refused(wrong):
    with pytest.raises(UnfitError, match=f"{next(iter(wrong))}.* is at least"):
        dataclasses.replace(TINY, **wrong)


@pytest.mark.parametrize("slot", [0, 3, 6])
def test_signs_to_be_counted_occupy_query_key_and_label(slot):
    product = lambda params, tokens: params["a"] * jnp.cumprod(tokens[:, slot])  # noqa: E731
    start = lambda key: {"a": jnp.ones(())}  # noqa: E731
    model = prepare_model(product, start(0), 3, 24, causal=True)
    context = EvaluationContext(model, [start(0)] * 2, TINY, TINY.distribution(), init=start)
    parity, longer, *_ = tracking.measure_state_tracking(context)
    assert (parity.value, longer.value) == (1, 1)


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ({"init": init, "tier": "Laptop"}, "tier = 'Laptop': choose smoke, laptop, paper"),
        ({}, "not both"),
        ({"init": init, "seeds": 1}, "at least 2"),
        ({"params": {}, "seeds": 8}, "leave seeds out"),
    ],
)
def test_contradictory_arguments_are_refused(given, advice):
    with pytest.raises(UnfitError, match=advice):
        report_card(forward, **given)
