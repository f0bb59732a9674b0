"""Prompts of one width and what a demonstration is worth, in `lm_flow`; texts of one width and
classes that take turns, in `lm_gradient_matching`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.stats import rankdata, spearmanr

from experiments.language import decoders, sentences
from experiments.language.language_config import TASKS
from experiments.language.lm_flow import compute, readings
from experiments.language.lm_flow.config import FACTORS, TIERS
from experiments.language.lm_gradient_matching import choices
from experiments.language.sentences import Writer
from lsa_lab.lm import decoder, tokens

TINY = TIERS["smoke"]  # two runs, two demonstrations, two queries, two layers
MODEL = decoders.decoder(TINY)


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


WORDS = ("Review:", "Sentiment:", "negative", "positive", *sentences.INVENTED_WORDS)


def test_texts_are_cut_to_questions_of_one_width():
    task = TASKS["invented"]
    template, tokenizer = sentences.template(task), tokens.make_word_tokenizer(WORDS)
    every = sentences.read(task)
    cut = sentences.cut_to(every, tokenizer, template, 7)
    ids, last = Writer(tokenizer, template, 7).questions(cut)
    assert set(last.tolist()) == {6}
    assert ids.all()  # no padding
    lengths = np.array([len(text.split()) for text in every.texts])
    assert len(cut) == (lengths >= 5).sum()
    np.testing.assert_array_equal(cut.labels, every.labels[lengths >= 5])
    assert all(
        whole.startswith(text)
        for whole, text in zip(np.array(every.texts)[lengths >= 5].tolist(), cut.texts, strict=True)
    )


def test_classes_take_turns_and_the_same_is_last_in_all_prompts_of_a_run():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 12)
    late = np.array([0.7, 0.2])
    for members in (np.r_[0:4, 12:16], np.r_[4:8, 20:24]):
        order = choices.take_turns(rng, members, labels, late)
        assert sorted(order) == sorted(members)
        np.testing.assert_array_equal(labels[order], [1, 0] * 4)
    order = choices.take_turns(rng, np.r_[0:6, 12:15], labels, late)
    np.testing.assert_array_equal(labels[order], [1, 0, 0, 1, 0, 0, 1, 0, 0])
    alone = choices.take_turns(rng, np.arange(5), labels, late)
    assert sorted(alone) == list(range(5))
    assert list(alone) != list(range(5))


def test_factors_with_equal_numbers_have_average_ranks():
    """Novelty is one number for all fresh sentences; which of them came first must not matter."""
    rng = np.random.default_rng(0)
    axes = ("run", "single", "fresh")
    relevance, worth = rng.integers(0, 5, size=(2, 1, 40, 6)).astype(float)
    novelty = rng.integers(0, 3, size=(1, 40)).astype(float)
    dataset = xr.Dataset(
        {
            "worth": (axes, worth),
            "same_label": (axes, worth > 2),
            "relevance": (axes, relevance),
            "novelty": (axes[:2], novelty),
        }
    )
    wide = np.broadcast_to(novelty[..., None], relevance.shape)
    both = rankdata(relevance.ravel()) + rankdata(wide.ravel())
    expected = spearmanr(both, worth.ravel()).statistic
    ours = readings.Flows(dataset).correlation(FACTORS[-1])
    np.testing.assert_allclose(ours, [expected], rtol=1e-12)
