"""A card is made of a model, kept whole, and refused where a model or a file is not fit."""

import json
from html import escape

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.card import UnfitError, report_card, shelf
from lsa_lab.card.recipe import Tier

TINY = Tier(steps=200, pilot_steps=100, batch=8, prompts=32, d=3, runs=2, lengths=(16, 32))


def init(key):
    return {"a": jnp.eye(3) + 0.01 * jax.random.normal(key, (3, 3)), "b": jnp.ones(())}


def forward(params, tokens):
    """Linear attention with a normaliser n + e^b, of bound tokens."""
    queries, keys, labels = tokens[:, :3], tokens[:, 3:6], tokens[:, 6]
    sums = jnp.cumsum(keys * labels[:, None], 0)
    counts = jnp.arange(len(tokens), dtype=tokens.dtype) + jnp.exp(params["b"])
    return (queries @ params["a"] * sums).sum(1) / counts


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    return report_card(forward, init, tier=TINY, folder=tmp_path_factory.mktemp("work"))


def test_a_trained_layer_of_linear_attention_is_a_step_of_descent(card):
    assert card.probes["nearest rule"].value.startswith("gradient descent")
    assert card.probes["squared change under a permutation"].verdict == "holds"
    assert card.probes["risk over ridge, covariates twice as large"].verdict == "fails"
    assert card.probes["share of the new label"].value == pytest.approx(0.5, abs=0.1)
    last = card.probes["risk over Bayes, n = 24"]
    assert 1 < last.value < last.null
    assert card.facts["trained"]
    assert card.facts["runs"] == 2


def test_a_saved_card_is_right_until_it_is_changed(card, tmp_path):
    folder = card.save(tmp_path / "linear")
    assert shelf.faults(folder) == []
    page = (folder / "index.html").read_text("utf-8")
    assert all(escape(probe.name) in page for probe in card.probes.values())
    assert "linear" in shelf.write_index(tmp_path).read_text("utf-8")
    body = json.loads((folder / "card.json").read_text("utf-8"))
    body["probes"][0]["value"] = 1.0
    (folder / "card.json").write_text(json.dumps(body), "utf-8")
    (fault,) = shelf.faults(folder)
    assert "changed after it was written" in fault


def test_given_weights_are_asked_and_not_trained():
    said = []
    card = report_card(forward, params=init(jax.random.key(0)), tier=TINY, say=said.append)
    assert not card.facts["trained"]
    assert card.facts["runs"] == 8
    assert "steps to twice the Bayes risk" not in card.probes
    assert len(said) > 10


def refused(model, causal=True, params=None):
    with pytest.raises(UnfitError) as raised:
        report_card(model, params=params or init(jax.random.key(0)), tier=TINY, causal=causal)
    return str(raised.value)


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (lambda p, t: forward(p, t)[-1], "one prediction for each"),
        (lambda p, t: (forward(p, t) > 0).astype(int), "return floats"),
        (lambda p, t: forward(p, t) + t[-1, -1], "mask later tokens"),
        (lambda p, t: forward(p, t) / 0.0, "not finite"),
        (lambda p, t: forward(p, t) * (1 if t[0, 0] > 0 else 2), "cannot be traced"),
        (lambda p, t: forward(p, t[:, :2]), "[x_t, x_{t-1}, y_{t-1}]"),
    ],
)
def test_a_model_that_is_not_fit_is_refused_with_what_to_do(model, advice):
    assert advice in refused(model)


def test_a_model_that_is_random_is_refused():
    source = np.random.default_rng(0)

    def noisy(params, tokens):
        shape = jax.ShapeDtypeStruct((), tokens.dtype)
        draw = lambda t: np.asarray(source.normal(size=np.shape(t)), t.dtype)  # noqa: E731
        noise = jax.pure_callback(draw, shape, tokens[0, 0], vmap_method="broadcast_all")
        return forward(params, tokens) + noise

    assert "two calls" in refused(noisy)


def test_params_or_init_are_given_and_not_both():
    with pytest.raises(UnfitError, match="not both"):
        report_card(forward)
