"""Cards of models, saved cards, and the refusal of unsuitable models and files."""

import dataclasses
import json
import re
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.card import (
    Card,
    UnfitError,
    cost,
    evaluation,
    layers,
    leaderboard,
    mechanism,
    page,
    probes,
    recipe,
    report_card,
    summary,
)
from lsa_lab.card.evaluation import EvaluationContext, Tier
from lsa_lab.card.model_checks import prepare_model
from lsa_lab.models import trace as traces

ROOT = Path(__file__).resolve().parents[2]
TINY = Tier(steps=200, pilot_steps=100, batch=8, prompts=32, d=3, runs=2, lengths=(16, 32))


def init(key):
    return {"a": jnp.eye(3) + 0.01 * jax.random.normal(key, (3, 3)), "b": jnp.ones(())}


def forward(params, tokens):
    """Return the predictions of linear attention with normaliser n + e^b on bound tokens."""
    queries, keys, labels = tokens[:, :3], tokens[:, 3:6], tokens[:, 6]
    sums = jnp.cumsum(keys * labels[:, None], 0)
    counts = jnp.arange(len(tokens), dtype=tokens.dtype) + jnp.exp(params["b"])
    return (queries @ params["a"] * sums).sum(1) / counts


def ridge(params, tokens):
    """Return the Bayes predictions of TINY at every token."""
    queries, keys, labels = tokens[:, :3], tokens[:, 3:6], tokens[:, 6]
    moments = jnp.cumsum(keys[:, :, None] * keys[:, None], 0) + 3 * 0.5**2 * jnp.eye(3)[None]
    sums = jnp.cumsum(keys * labels[:, None], 0)[..., None]
    return (queries * jnp.linalg.solve(moments, sums)[..., 0]).sum(1)


def make_context(function, runs=2, tasks=None, params=(), **fields):
    """Return the context of a model without a training."""
    model = prepare_model(function, params, 3, 24, causal=True)
    return EvaluationContext(model, [params] * runs, TINY, TINY.distribution(tasks), **fields)


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    """Return a card of two seeds, although the tier has three."""
    tier, folder = dataclasses.replace(TINY, runs=3), tmp_path_factory.mktemp("work")
    return report_card(forward, init, tier=tier, seeds=2, folder=folder)


def test_a_trained_layer_of_linear_attention_is_a_step_of_descent(card):
    assert card.probes["nearest rule"].value.startswith("linear attention")
    assert card.probes["squared change under a permutation"].verdict == "holds"
    assert card.probes["risk over ridge, covariates twice as large"].verdict == "fails"
    assert card.probes["share of the new label"].value == pytest.approx(0.5, abs=0.1)
    last = card.probes["risk over Bayes, n = 24"]
    assert 1 < last.value < last.null
    assert (card.facts["trained"], card.facts["runs"]) == (True, 2)
    assert last.samples[card.facts["median_run"]] == min(last.samples)  # the lower one of two
    assert set(card.weights) == {"a", "b"}


def test_a_saved_card_is_loaded_until_it_is_changed(card, tmp_path):
    folder = card.save(tmp_path / "linear")
    loaded = Card.load(folder)
    assert loaded.headline == card.headline
    assert loaded.probes.keys() == card.probes.keys()
    np.testing.assert_array_equal(loaded.weights["['a']"], card.weights["a"])
    assert Card.load(loaded.save(tmp_path / "again")).weights.keys() == loaded.weights.keys()
    assert loaded.to_dataframe().loc["nearest rule", "value"] == card.probes["nearest rule"].value
    table = leaderboard.write_leaderboard(tmp_path)
    pages = folder / "index.html", folder / "badge.svg", table
    texts = [repr(card), *(path.read_text("utf-8") for path in pages)]
    assert all("200 steps: not for judging" in text for text in texts)  # a short training
    assert "docs/card.md" not in texts[1]  # a page outside the clone
    body = json.loads((folder / "card.json").read_text("utf-8"))
    for change, words in {"probes": "changed after it was written", "schema": "schema 2"}.items():
        (folder / "card.json").write_text(json.dumps(body | {change: []}), "utf-8")
        with pytest.raises(ValueError, match=words):
            Card.load(folder)
    with pytest.raises(ValueError, match="name a folder that holds a card"):
        Card.load(tmp_path / "another")


def test_links_of_a_page_lead_to_headings_of_the_guide(card):
    body = card.to_json("a")
    body["probes"] = [probe | {"samples": []} for probe in body["probes"]]  # without pictures
    text = page.render_page("card", body, folder=ROOT)
    links = set(re.findall(r'href="docs/card.md#([\w-]+)"', text))
    headings = re.findall(r"^###? (.*)$", (ROOT / "docs/card.md").read_text("utf-8"), re.MULTILINE)
    assert {probe.group for probe in card.probes.values()} == links
    assert links <= {heading.lower().replace(" ", "-") for heading in headings}


def test_an_interrupted_card_resumes_to_the_same_weights(card, tmp_path):
    def interrupt(line):
        if line.startswith("learning rate"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        report_card(forward, init, tier=TINY, folder=tmp_path, log=interrupt)
    before = (tmp_path / "pilot.ckpt").stat().st_mtime_ns
    resumed = report_card(forward, init, tier=TINY, folder=tmp_path)
    assert (tmp_path / "pilot.ckpt").stat().st_mtime_ns == before
    assert resumed.facts["weights_sha256"] == card.facts["weights_sha256"]
    assert (resumed.facts["resumed"], card.facts["resumed"]) == (True, False)


def test_given_weights_are_not_trained():
    """The number of demonstrations is odd, and the counting probe needs a training."""
    lines, start = [], init(jax.random.key(0))
    card = report_card(forward, None, start, tier=TINY, n=7, log=lines.append)
    assert (card.facts["trained"], card.facts["runs"]) == (False, 8)
    assert "steps to twice the Bayes risk" not in card.probes
    assert "Measure the risk over" in "".join(lines)
    assert "parity" not in "".join(lines)
    assert "of 8 sets of prompts agree" in card.probes["nearest rule"].note


def test_one_of_eight_runs_may_miss_a_bound():
    verdicts = {
        "holds": [(3, 3), (7, 8), (9, 11)],
        "undecided": [(2, 3), (6, 7), (6, 8), (2, 8), (8, 11)],
        "fails": [(0, 3), (1, 8)],
    }
    for verdict, cases in verdicts.items():
        for kept, size in cases:
            samples = [0.5] * kept + [2.0] * (size - kept)
            assert evaluation.make_probe("", "", "", samples, at_most=1).verdict == verdict


@pytest.mark.parametrize(("size", "rank"), [(5, None), (6, 1), (8, 1), (9, 2), (12, 3)])
def test_the_interval_of_a_median_is_of_order_statistics(size, rank):
    samples = np.random.default_rng(0).permutation(size) + 1.0
    interval = evaluation.median_interval(samples)
    assert interval == (None if rank is None else (rank, size + 1 - rank))


def test_numbers_that_are_not_finite_or_undefined_are_counted():
    answers = np.zeros((3, 4))
    answers[0, :2] = np.inf
    diverged = evaluation.make_probe("", "", "", [np.inf, 1.0, 1.0], answers, at_most=2)
    assert (diverged.value, diverged.kept, diverged.verdict) == (1, 2, "undecided")
    assert diverged.note == "diverged in 2 of 12 prompts"
    undefined = evaluation.make_probe("", "", "", [np.nan, 1.0, 1.0], at_most=2)
    assert (undefined.verdict, undefined.note) == ("", "undefined in 1 of 3 runs")


@pytest.mark.parametrize(("scale", "least", "most"), [(1.0, 1.0, 1.0), (0.0, 10.0, 100.0)])
def test_only_ridge_has_the_bayes_risk_at_late_places_of_test_prompts(scale, least, most):
    context = make_context(lambda params, tokens: scale * ridge(params, tokens))
    ratio = float(recipe.make_late_risk(context)(()))
    assert least * (1 - 1e-9) <= ratio <= most * (1 + 1e-9)


def test_the_first_time_below_twice_the_bayes_risk_is_counted_in_steps():
    late = np.array([[9.0, 2.5, 1.9, 2.1, 1.5], [9.0, 8.0, 7.0, 6.0, 5.0], [1.0] * 5])
    training = SimpleNamespace(history={"watch": late, "loss": np.ones((3, TINY.steps))})
    (steps,) = cost.measure_training_steps(make_context(ridge, 3, training=training))
    assert steps.samples == (2 * recipe.STRIDE, np.inf, 0)
    assert steps.value == 2 * recipe.STRIDE
    assert steps.note == "1 of 3 runs never did"


def test_a_state_that_explodes_gives_a_card():
    grows = lambda params, tokens: 1.2 ** jnp.arange(len(tokens), dtype=tokens.dtype)  # noqa: E731
    twice, eight = probes.measure_long_prompts(make_context(grows))
    assert (eight.verdict, eight.note) == ("fails", "diverges at n = 13")  # 1.2^(2 13) > 100
    assert twice.note == ""


def test_with_tasks_of_any_size_the_null_is_the_risk_of_predicting_0():
    tasks = 12 * np.random.default_rng(0).normal(size=(4, 3))
    context = make_context(lambda params, tokens: 0 * tokens[:, 0], 4, tasks)
    for growth in probes.measure_long_prompts(context):
        assert growth.value == pytest.approx(growth.null, rel=0.2)  # of other prompts
        assert growth.note == ""
    probes.measure_risk(context)
    assert context.curves["risk"]["rules"] == {}  # closed curves are of Gaussian w


def test_a_model_without_label_gradients_has_no_shares():
    for function, note in ((lambda params, t: t[:, 0], "undefined in 2 of 2 runs"), (ridge, "")):
        _, *shares = mechanism.measure_label_gradients(make_context(function))
        assert [share.note for share in shares] == [note] * 2


@pytest.mark.parametrize("layer", [layers.lms, layers.ttt])
def test_small_first_steps_keep_a_state_finite_over_the_length_in_training(layer):
    tokens = jnp.asarray(np.random.default_rng(0).normal(size=(65, 17)))

    def answer(params):
        return (traces.label_slots(layer.forward(params, tokens)) ** 2).mean()

    params = layer.init(jax.random.key(0))
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(jax.grad(answer)(params)))


def test_signs_to_be_counted_occupy_query_key_and_label():
    signs, thirds = cost.draw_counts(jax.random.key(0), 4, 9, jnp.asarray(3.0))
    np.testing.assert_array_equal(thirds, 1 - np.cumsum(signs < 0, 1) % 3)
    product = lambda params, tokens: params * jnp.cumprod(tokens[:, [0, 3, 6]].prod(1))  # noqa: E731
    context = make_context(product, params=jnp.ones(()), init=lambda key: jnp.ones(()))
    parity, longer, *_ = cost.measure_state_tracking(context)
    assert (parity.value, longer.value) == (1, 1)


def looping(params, tokens):
    """Return predictions that have no reverse derivative."""
    total = jax.lax.while_loop(lambda total: total < 1, lambda total: total + 1, tokens[0, 0])
    return forward(params, tokens) + total


def noisy(params, tokens):
    draw = lambda t: np.random.default_rng().normal(size=t.shape).astype(t.dtype)  # noqa: E731
    noise = jax.pure_callback(draw, tokens[0, 0], tokens[0, 0], vmap_method="broadcast_all")
    return forward(params, tokens) + noise


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (lambda p, t: forward(p, t)[-1], "one prediction for each"),
        (lambda p, t: (forward(p, t) > 0).astype(int), "return floats"),
        (lambda p, t: jnp.roll(t[:, 6], -1).at[4:].set(0), "mask later tokens"),
        (lambda p, t: forward(p, t) * 24 / len(t), "depends on the number of tokens"),
        (lambda p, t: forward(p, t) / jnp.linalg.norm(t[:, 3:6], axis=1), "first pair is 0"),
        (lambda p, t: forward(p, t) + jnp.ones(25)[: len(t)], "not on 193"),
        (looping, "lax.scan"),
        (lambda p, t: forward(p, t) + np.random.default_rng().normal(), "two calls"),
        (noisy, "two calls"),
        (lambda p, t: forward(p, t) * (1 if t[0, 0] > 0 else 2), "cannot be traced"),
        (lambda p, t: forward(p, t[:, :2]), r"\[x_t, x_{t-1}, y_{t-1}\]"),
    ],
)
def test_an_unsuitable_model_is_refused_with_advice(model, advice):
    with pytest.raises(UnfitError, match=advice):
        report_card(model, params=init(jax.random.key(0)), tier=TINY)


GIVEN = {"a": np.eye(3), "b": np.ones(())}


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"params": GIVEN | {"b": np.array(np.nan)}}, r"params\['b'\] holds NaN"),
        ({"params": GIVEN | {"act": "relu"}}, r"params\['act'\] is a str"),
        ({"params": GIVEN | {"f": jnp.sin}}, "eqx.partition"),
        ({"init": lambda key: init(key) | {"n": np.arange(3)}}, r"params\['n'\] is int"),
        ({"init": lambda: {}}, r"init\(key\) fails.*TypeError"),
        ({"params": GIVEN, "ablate": {"end": lambda p, t: t[-1, 0]}}, r"ablate\['end'\].*for each"),
        ({"init": init, "tier": "Laptop"}, "tier = 'Laptop': choose smoke, laptop, paper"),
        ({}, "not both"),
        ({"init": init, "seeds": 1}, "runs = 1: it is at least 2"),
        *(({"params": GIVEN, "d": d}, f"d = {d}: it is at least 3") for d in (0, 2)),
        ({"params": GIVEN, "n": 5}, "n = 5: it is at least 6"),
        ({"params": GIVEN, "seeds": 8}, "leave seeds out"),
        ({"params": GIVEN, "task": "parity"}, "choose regression, drift"),
        ({"params": GIVEN, "task": "drift", "tasks": np.ones((2, 3))}, "leave them out for drift"),
        ({"params": GIVEN, "tasks": np.ones((2, 8))}, r"finite weights \[k, 3\]"),
    ],
)
def test_unsuitable_arguments_are_refused(arguments, advice):
    with pytest.raises(UnfitError, match=advice):
        report_card(forward, **{"tier": TINY, **arguments})
    for wrong in {"steps": 20}, {"noise_std": 0.0}:
        with pytest.raises(UnfitError, match=f"{next(iter(wrong))}.* is at least"):
            dataclasses.replace(TINY, **wrong)


def test_every_committed_card_is_intact_and_its_row_has_the_headline():
    folders = [path.parent for path in (ROOT / "figures" / "cards").glob("*/card.json")]
    bodies = [Card.load(folder).to_json() for folder in folders]
    committed = summary.load_committed()
    rows = {row["name"]: row for row in map(summary.make_row, bodies)}
    assert json.loads(json.dumps(rows)) == {row["name"]: row for row in committed}
    assert len(rows) == 15
    assert {row["runs"] for row in committed} == {8}
    body = bodies[0]
    risk = summary.get_risk(body)
    risk["value"] = risk["null"]
    assert summary.format_headline(body).startswith("did not learn: ")
