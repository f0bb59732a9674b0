"""`lm_flow`: prompts of one width, what runs measure and keep, and readings that turn no pair."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.language import decoders, readouts, sentences
from experiments.language.lm_flow import compute, readings
from experiments.language.lm_flow.config import RULES, TIERS
from lsa_lab.lm import decoder
from lsa_lab.store import parts
from lsa_lab.store.results import in_short

TINY = TIERS["smoke"]  # two runs, two demonstrations, two queries, two layers
MODEL = decoders.decoder(TINY)
RNG = np.random.default_rng(0)
FLOWS = RNG.normal(size=(4, 1, 2, 3, 2))  # a demonstration each, three layers, margin and row
SINGLES = compute.Singles(*(RNG.normal(size=s) for s in ((4, 2), (4, 2), (4,), (4, 2))))


@functools.cache
def run_of(part="grads"):
    """A pool of 4, two queries, two shots."""
    own = getattr(TINY, part) if part else TINY
    return compute.run_maker(MODEL, TINY, own)(0, 0)


def test_prompts_of_one_width_say_the_same():
    writer, texts = run_of("").writer, run_of("").sets.fresh
    short, long = sorted(range(8), key=lambda i: len(texts.texts[i].split()))[::7]
    for row in (short, long):
        ids, ((begin, end),) = writer.demonstrations(texts.take([row]))
        assert len(ids) == end == 1 + writer.width + 1
        word = writer.template.labels[texts.labels[row]]
        said = MODEL.tokenizer.decode(ids[begin:end])
        assert said.split() == f"Review: {texts.texts[row]} Sentiment: {word}".split()
        assert set(ids[:begin].tolist()) == {writer.fill}


def test_the_worth_of_a_demonstration_is_that_of_the_whole_prompt():
    run = run_of()
    prefix, _ = run.writer.demonstrations(run.sets.others.take([1]))
    nothing, _ = run.writer.demonstrations(run.sets.others.take([]))
    ids, last = (part[1] for part in run.writer.questions(run.sets.fresh))

    def log_p(prefix):
        stream = decoder.embed(
            MODEL.params, jnp.concatenate([prefix, ids[: last + 1]]), MODEL.config
        )
        row = decoder.forward(MODEL.params, stream, MODEL.config).stream[-1, -1]
        words = jnp.asarray(run.writer.label_ids)
        return jax.nn.log_softmax(decoder.logits(MODEL.params, row, MODEL.config, words))

    of, added = compute.singles(run), log_p(prefix) - log_p(nothing)
    np.testing.assert_allclose(of.worth[1, 1], added[run.sets.fresh.labels[1]], atol=1e-4)
    np.testing.assert_allclose(of.moved[1, 1], added[1] - added[0], atol=1e-4)


def test_every_demonstration_stands_once_at_every_place(monkeypatch):
    run, texts = run_of(""), []

    def say_places(run, prompts, queries):
        texts.extend(prompt.texts for prompt in prompts)
        return np.array([[[place] for place in range(2)] for _ in prompts])

    monkeypatch.setattr(compute, "log_flows", say_places)
    at = compute.shared_flows(run)["shared"][..., 0]
    assert (np.sort(at, axis=0) == np.arange(2)[:, None]).all()
    for place, prompt in zip(at, texts, strict=True):
        assert [prompt[i] for i in place] == list(run.sets.demonstrations.texts)


def test_each_rule_scores_by_its_own_reading(monkeypatch):
    monkeypatch.setattr(compute, "log_flows", lambda *_: FLOWS)
    monkeypatch.setattr(compute, "singles", lambda _: SINGLES)
    ours = compute.score_pool(run_of())
    scores = dict(zip(RULES, ours["score"], strict=True))
    np.testing.assert_array_equal(scores["GradS"], FLOWS[:, 0, :, 2, 0])
    np.testing.assert_array_equal(scores["GradS, row"], FLOWS[:, 0, :, 2, 1])
    np.testing.assert_array_equal(scores["similarity"], SINGLES.relevance)
    np.testing.assert_array_equal(scores["contribution"], np.abs(SINGLES.moved))
    for worth in (scores["oracle"], ours["worth"]):
        np.testing.assert_array_equal(worth, SINGLES.worth)


def test_prompts_hold_the_best_demonstrations_the_best_last(monkeypatch):
    def weigh(model, prefixes, questions, last, label_ids):
        """Log odds that tell prefixes, their order and their questions apart."""
        size = prefixes @ np.arange(1, prefixes.shape[1] + 1) + 1e6 * questions.sum(1)
        return np.stack([np.full(len(size), 3.0), 3.0 + size], axis=1)

    monkeypatch.setattr(readouts, "paired_scores", weigh)
    scores = np.array([[[0.1, 4], [0.4, 3], [0.3, 2], [0.2, 1]], [[9, 5], [8, 6], [7, 7], [6, 8]]])
    run = run_of()
    ours = compute.selected_prompts(run, scores)
    expected = [[[2, 1], [1, 0]], [[1, 0], [2, 3]]]  # rule, query, the best last
    ids, _ = run.writer.questions(run.sets.fresh)
    for rule, query in np.ndindex(2, 2):
        prefix, _ = run.writer.demonstrations(run.sets.others.take(expected[rule][query]))
        size = sum((place + 1) * token for place, token in enumerate(prefix.tolist()))
        np.testing.assert_allclose(ours["prompt"][rule, query], size + 1e6 * ids[query].sum())
    assert ours["random_prompt"].shape == (TINY.grads.random_draws, 2)


def test_every_run_keeps_what_was_measured_in_it(monkeypatch):
    flows = np.random.default_rng(0).normal(size=(2, 2, 2, 2, 2, 2))  # run, rotation, ...
    worth = np.random.default_rng(1).normal(size=(2, 4, 8))
    fakes = {
        "alone_flows": lambda run: {"alone": flows[run.number, 0]},
        "shared_flows": lambda run: {"shared": flows[run.number]},
        "untrained_flows": lambda run: {"untrained": -flows[run.number]},
        "single_worths": lambda run: {
            "worth": worth[run.number],
            "same_label": run.sets.others.labels[:, None] == run.sets.fresh.labels,
            "relevance": -worth[run.number],
            "novelty": worth[run.number, :, 0],
        },
        "score_pool": lambda run: {
            "flow": np.zeros((4, 2, 2, 2)),
            "worth": np.full((4, 2), run.number),
            "label": np.zeros(2, int),
            "score": np.arange(len(RULES))[:, None, None] + 100 * run.number + np.zeros((4, 2)),
        },
        "selected_prompts": lambda run, scores: {
            "prompt": scores[:, 0],
            "random_prompt": np.zeros((1, 2)),
        },
    }
    for name, fake in fakes.items():
        fake.__name__ = name
        monkeypatch.setattr(compute, name, fake)
    dataset = compute.compute(TINY)
    np.testing.assert_array_equal(dataset.untrained[0], in_short(-flows))
    np.testing.assert_array_equal(dataset.alone[0], in_short(flows[:, 0]))
    np.testing.assert_array_equal(dataset.worth[0], in_short(worth))
    np.testing.assert_array_equal(dataset.relevance[0], in_short(-worth))
    grads = parts.part(dataset, "grads")
    oracle = grads.score.sel(rule="oracle").values[0]
    np.testing.assert_array_equal(oracle, np.full((2, 4, 2), [[[5]], [[105]]]))
    np.testing.assert_array_equal(grads.prompt.sel(rule="oracle")[0], [[5, 5], [105, 105]])
    np.testing.assert_array_equal(grads.worth[0, 1], np.ones((4, 2)))


def test_bm25_counts_rare_words_and_holds_long_texts_back():
    texts = ("A film", "a dull film", "a a a a dull dull film film warm warm")
    scores = sentences.bm25(texts, ("dull", "a", "warm slow"))
    assert scores[1, 0] > scores[0, 0] == 0
    assert scores[2, 2] > scores[:, 1].max() > 0  # every text holds "a", in small letters too
    length, mean = 3, 5
    damping = 1.5 * (1 - 0.75 + 0.75 * length / mean)
    expected = np.log1p(1.5 / 2.5) * 2.5 / (1 + damping)
    np.testing.assert_allclose(scores[1, 0], expected)


def test_disparities_and_turns_are_those_of_known_flows():
    shape, pairs = ("run", "single", "fresh"), np.zeros((5, 2, 4))
    first = np.random.default_rng(0).standard_normal((5, 3, 2))
    flows = np.stack([first, 3 * first], axis=-1)  # the log ratios three times as large
    turned = np.stack([first, -first], axis=-1)
    axes = ("run", "demonstration", "query", "layer")
    dataset = xr.Dataset(
        {
            "alone": (("read", *axes), flows[None]),
            "shared": (("read", "rotation", *axes), np.stack([turned - 1, turned + 1])[None]),
            "worth": (shape, pairs + np.arange(4)),
            "same_label": (shape, pairs + np.array([1, 0, 1, 0])),
            "relevance": (shape, pairs + np.arange(4)),
            "novelty": (shape[:2], pairs[..., 0] + np.arange(2)),
        },
        {"read": ["margin"]},
    )
    ours = readings.Flows(dataset)
    np.testing.assert_allclose(ours.disparities("alone", "margin"), [[1, 3]] * 5)
    np.testing.assert_array_equal(ours.turns(), 1)
    np.testing.assert_allclose(ours.label_effect(), -1)
    np.testing.assert_allclose(ours.correlation("relevance"), 1)
    np.testing.assert_allclose(ours.correlation("novelty"), 0, atol=1e-12)
