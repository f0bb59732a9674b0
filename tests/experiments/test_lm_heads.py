"""Closed heads, slopes and common maps of `lm_heads`, beside the whole walk of a tiny decoder."""

import dataclasses
import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from experiments.language.lm_heads import answers, closings, compute, figure
from experiments.language.lm_heads.config import TIERS
from lsa_lab import lm
from lsa_lab.analyses import heads
from lsa_lab.lm import decoder, weights
from lsa_lab.lm.config import Config
from lsa_lab.store import results

SHAPE = Config(
    num_layers=3,
    num_heads=4,
    num_groups=2,
    key_width=4,
    width=16,
    mlp_width=24,
    vocabulary=40,
    context=128,
    rotary_width=4,
    tied=True,
)
LAYER, HEAD = 1, 2


@functools.cache
def tiny():
    return lm.Decoder(SHAPE, weights.init(jax.random.key(0), SHAPE, "float64"), None)


def draw(tokens=6, questions=5):
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 40, (questions, 4))
    return rng.integers(0, 40, tokens), ids, np.full(questions, 3), rng.integers(0, 2, questions)


def whole_walk(model, mask=None, fill=None):
    """Scores of the labels by one forward pass of each whole prompt."""
    prefix, questions, _, _ = draw()

    def one(ids):
        stream = decoder.embed(model.params, jnp.concatenate([prefix, ids]), model.config)
        walk = decoder.forward(model.params, stream, model.config, mask, fill)
        return decoder.logits(model.params, walk.stream[-1, -1], model.config, jnp.array([3, 7]))

    return np.array([one(ids) for ids in questions])


def closing(layers=(0, LAYER)):
    model = closings.add_write_biases(tiny())
    prefix, questions, last, _ = draw()
    return closings.Closings(model, prefix, questions, last, np.array([3, 7]), layers)


def test_a_bias_of_nothing_changes_no_bit():
    model = closings.add_write_biases(tiny())
    np.testing.assert_array_equal(whole_walk(model), whole_walk(tiny()))
    assert closings.add_write_biases(model) is model


def test_heads_closed_at_a_halt_are_closed_in_the_whole_walk():
    mask = closings.close_heads(SHAPE, (LAYER, HEAD), (LAYER, 0))
    assert mask.sum() == 10
    np.testing.assert_allclose(closing().scores(LAYER, mask), whole_walk(tiny(), mask), rtol=1e-10)
    np.testing.assert_allclose(closing().scores(0), whole_walk(tiny()), rtol=1e-10)


def test_a_mean_write_stands_in_the_place_of_a_closed_head():
    prefix, questions, _, _ = draw()
    means = closings.mean_writes(tiny().params, prefix, config=SHAPE)
    mask = closings.close_heads(SHAPE, (LAYER, HEAD))
    tokens = len(prefix) + questions.shape[1]
    fill = jnp.zeros((3, 4, tokens, 16)).at[LAYER, HEAD].set(means[LAYER, HEAD][None])
    filled = closing().scores(LAYER, mask, means[LAYER, HEAD])
    np.testing.assert_allclose(filled, whole_walk(tiny(), mask, fill), rtol=1e-10)
    assert not np.allclose(filled, closing().scores(LAYER, mask))


def test_slopes_are_those_of_the_library():
    prefix, questions, last, labels = draw()
    words = jnp.array([3, 7])
    arrays = prefix, questions, last, labels, words
    slopes = closings.slopes(tiny().params, *arrays, config=SHAPE)

    def loss(mask):
        stream = decoder.embed(tiny().params, jnp.concatenate([prefix, questions[0]]), SHAPE)
        row = decoder.forward(tiny().params, stream, SHAPE, mask).stream[-1, -1]
        return -jax.nn.log_softmax(decoder.logits(tiny().params, row, SHAPE, words))[labels[0]]

    np.testing.assert_allclose(-slopes[0], heads.first_order(loss, 3, 4), rtol=1e-8)


def test_effective_heads_and_changes_are_those_of_the_library_without_jax():
    rows = np.array([[1.0, 1, 1, 1], [2, 0, 0, -1], [-1, -1, 0, -2]])
    np.testing.assert_allclose(
        answers.effective_heads(rows), heads.effective_heads(jnp.asarray(rows))
    )
    whole, other = np.random.default_rng(0).normal(size=(2, 5, 2))
    np.testing.assert_allclose(answers.changes(whole, other), divergence(whole, other))
    assert answers.changes(whole, whole) == 0
    assert answers.changes(whole, other) > 0


def test_what_no_function_of_the_word_explains():
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(400), 2)
    same = rng.normal(size=(400, 16))[ids]
    noise = rng.normal(size=(2, 800, 16))
    stream = np.stack([same, same + 3 * noise[0], same + same[:, ::-1]])
    missed = compute._word_means(stream, np.stack([same, 3 * noise[0], 3 * noise[1]]), ids)
    np.testing.assert_allclose(missed, [0, 1, 0], atol=0.02)  # unbiased: of two rows half is left
    once = np.concatenate([ids, [1000, 1001]])
    longer = np.concatenate([stream, 1e3 * rng.normal(size=(3, 2, 16))], axis=1)
    np.testing.assert_allclose(
        compute._word_means(longer, longer, once), compute._word_means(stream, stream, ids)
    )


def test_common_maps_of_a_tiny_decoder():
    ids = np.concatenate([np.arange(40), np.random.default_rng(0).integers(0, 40, 20)])
    missed = compute.misses(tiny(), ids)
    assert missed["unexplained"].shape == (2, 4)  # all tokens and all but the first, layers 0 to 3
    assert (missed["unexplained"][1, 1:] < 1).all()
    assert missed["by_word"][0] < 1e-10
    assert (missed["by_word"][1:] > 0).all()


def test_pseudo_values_are_unbiased_where_runs_differ_by_chance():
    rng = np.random.default_rng(0)
    exact = answers.pseudo_values(np.tile([4.0, 3, 2, 1], (9, 1)))
    np.testing.assert_allclose(exact, answers.effective_heads(np.array([4.0, 3, 2, 1])))
    runs = rng.exponential(size=(400, 9, 4))
    plain = np.array([answers.effective_heads(each).mean() for each in runs])
    pseudo = np.array([answers.pseudo_values(each).mean() for each in runs])
    assert abs(pseudo.mean() - 4) < 0.05 < 4 - plain.mean()


SIZES = TIERS["smoke"]  # four sentences to choose heads on, four fresh, layers 0 and 3


class Additive:
    """Log odds of the second label that are a sum over open heads, and what is written besides."""

    def __init__(self, weights):  # [B, L, H]
        self.weights = weights

    def scores(self, at=0, mask=None, fill=0.0):
        mask = np.ones(self.weights.shape[1:]) if mask is None else np.asarray(mask)
        margins = (mask * self.weights).sum((1, 2)) + fill
        return np.stack([np.zeros(len(margins)), margins], axis=1)


def run_of(weights, slopes=None):
    model = SimpleNamespace(config=SimpleNamespace(num_layers=4, num_heads=2), params="trained")
    return SimpleNamespace(
        config=SIZES,
        model=model,
        prefix=None,
        ids=None,
        last=None,
        masked=None,
        labels=np.arange(8) % 2,
        key=jax.random.key(0),
        closings=lambda layers, questions: Additive(weights),
        slopes=lambda params: slopes[params],
    )


def test_closed_layers_lack_their_heads_and_the_top_one_is_that_of_the_searched(monkeypatch):
    weights = np.random.default_rng(1).uniform(0.1, 0.2, (8, 4, 2))
    weights[:4, 0, 1], weights[4:, 0, 0] = 3, 3  # the second head where heads are chosen
    means = np.random.default_rng(2).normal(size=(4, 2))
    monkeypatch.setattr(closings, "mean_writes", lambda *_, config: means)
    ours = compute.close_layers(run_of(weights))
    whole = weights.sum((1, 2))
    np.testing.assert_allclose(ours["whole"][:, 1], whole)
    for place, layer in enumerate((0, 3)):
        for head in range(2):
            zero = whole - weights[:, layer, head]
            np.testing.assert_allclose(ours["zero"][place, head, :, 1], zero)
            mean = ours["mean"][place, head, :, 1]
            np.testing.assert_allclose(mean, zero + means[layer, head])
        none = whole - weights[:, layer].sum(1)
        np.testing.assert_allclose(ours["none"][place, :, 1], none)
        top = weights[:, layer, weights[:4, layer].mean(0).argmax()]
        np.testing.assert_allclose(ours["top_kept"][place, :, 1], none + top)


def test_a_part_of_all_heads_is_that_of_the_largest_slopes_of_each_layer(monkeypatch):
    few = dataclasses.replace(SIZES, kept=1)
    rng = np.random.default_rng(3)
    slopes = {"trained": rng.normal(size=(4, 4, 2)), "random": rng.normal(size=(4, 4, 2))}
    monkeypatch.setattr(compute.weights, "init", lambda *_: "random")
    weights = 4.0 ** np.arange(8).reshape(1, 4, 2) * np.ones((5, 1, 1))  # a digit for each head
    run = run_of(weights, slopes)
    run.config = few
    ours = compute.keep_a_part(run)
    absolute = np.abs(slopes["trained"]).mean(0)
    np.testing.assert_allclose(ours["absolute_slope"], absolute)
    np.testing.assert_allclose(ours["random_slope"], np.abs(slopes["random"]).mean(0))
    np.testing.assert_allclose(ours["open"][:, 1], weights.sum((1, 2)))
    top = sum(4.0 ** (2 * layer + absolute[layer].argmax()) for layer in range(4))
    np.testing.assert_allclose(ours["masked"][2, :, 1], top)
    for draw in ours["drawn"][:, 0, 1]:
        digits = [int(draw) // 4**place % 4 for place in range(8)]
        np.testing.assert_array_equal(np.reshape(digits, (4, 2)).sum(1), np.ones(4))


@pytest.fixture(scope="module")
def dataset():
    rng = np.random.default_rng(4)
    shapes = {
        "whole": (("run", "sentence", "label"), (3, 8, 2)),
        "zero": (("run", "layer", "head", "sentence", "label"), (3, 2, 4, 8, 2)),
        "mean": (("run", "layer", "head", "sentence", "label"), (3, 2, 4, 8, 2)),
        "none": (("run", "layer", "sentence", "label"), (3, 2, 8, 2)),
        "top_kept": (("run", "layer", "sentence", "label"), (3, 2, 8, 2)),
        "absolute_slope": (("run", "depth", "head"), (3, 4, 4)),
        "random_slope": (("run", "depth", "head"), (3, 4, 4)),
        "open": (("run", "masked_sentence", "label"), (3, 6, 2)),
        "masked": (("run", "mask", "masked_sentence", "label"), (3, 3, 6, 2)),
        "drawn": (("run", "draw", "masked_sentence", "label"), (3, 2, 6, 2)),
        "unexplained": (("run", "tokens", "after"), (3, 2, 5)),
        "by_word": (("run", "after"), (3, 5)),
    }
    rows = {name: (axes, rng.uniform(0.1, 1, shape)) for name, (axes, shape) in shapes.items()}
    rows["right"] = (("run", "sentence"), rng.integers(0, 2, (3, 8)))
    coordinates = {"layer": [0, 3], "tokens": ["all tokens", "without the first"]}
    return xr.Dataset(rows, coordinates, {"config": results.json.dumps(results.plain(SIZES))})


def divergence(left, right):  # [B, 2] twice
    p, q = (np.exp(rows) / np.exp(rows).sum(1, keepdims=True) for rows in (left, right))
    return np.mean([sum(a * np.log(a / b)) for a, b in zip(p, q, strict=True)])


def test_effective_heads_are_the_jackknifes_of_the_slopes(dataset):
    ax = Figure().subplots()
    figure.plot_effective_heads(ax, answers.Heads(dataset))

    def number(rows):
        p = rows / rows.sum()
        return np.exp(-sum(p * np.log(p)))

    for line, name in zip(ax.lines[:2], ("random_slope", "absolute_slope"), strict=True):
        slopes = dataset[name].values
        expected = []
        for depth in range(4):
            rows = slopes[:, depth]
            without = [number((rows.sum(0) - rows[r]) / 2) for r in range(3)]
            expected.append(3 * number(rows.mean(0)) - 2 * np.mean(without))
        np.testing.assert_allclose(line.get_ydata(), expected)


def test_the_order_kept_is_the_mean_rank_correlation_of_margins(dataset):
    ax = Figure().subplots()
    figure.plot_order_kept(ax, answers.Heads(dataset))

    def ranks(scores):
        margins = scores[:, 1] - scores[:, 0]
        return [int((margins < each).sum()) for each in margins]

    def agreement(left, right):
        apart = sum((a - b) ** 2 for a, b in zip(ranks(left), ranks(right), strict=True))
        return 1 - 6 * apart / (6 * 35)

    whole, masked, draws = (dataset[name].values for name in ("open", "masked", "drawn"))
    expected = [np.mean([agreement(whole[r], masked[r, i]) for r in range(3)]) for i in range(3)]
    expected.append(np.mean([agreement(whole[r], draws[r, i]) for r in range(3) for i in range(2)]))
    np.testing.assert_allclose(ax.containers[0].lines[0].get_xdata(), expected)
