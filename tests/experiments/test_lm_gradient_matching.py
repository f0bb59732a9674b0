"""Texts of one width, shares of labels, and the best of several draws in `lm_gradient_matching`."""

import numpy as np
import xarray as xr

from experiments.language import sentences
from experiments.language.language_config import TASKS
from experiments.language.lm_gradient_matching import choices, claims, compute
from experiments.language.lm_gradient_matching.config import DRAWN, RULES
from experiments.language.sentences import Writer
from lsa_lab.lm import readings, tokens

WORDS = ("Review:", "Sentiment:", "negative", "positive", *sentences.INVENTED_WORDS)


def test_texts_are_cut_to_questions_of_one_width():
    task = TASKS["invented"]
    template, tokenizer = sentences.template(task), tokens.of_words(WORDS)
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


def test_equal_shares_diverge_by_nothing_and_single_classes_most():
    counts = np.array([[4, 4], [6, 2], [8, 0]])
    apart = compute.divergence(counts, np.array([24, 24]))
    np.testing.assert_allclose(apart, [0, np.log(2) - 0.5623351446188083, np.log(2)])


def test_the_best_of_the_draws_is_that_of_the_validation_and_judged_on_other_sentences():
    rules = [*RULES, *np.repeat(DRAWN, (3, 2))]
    rng = np.random.default_rng(0)
    right = rng.integers(0, 2, (2, 6))
    validation = np.zeros((2, 3, 6, 2))
    for run, best in enumerate((2, 0)):
        validation[run, best, np.arange(6), right[run]] = 3.0
    dataset = xr.Dataset(
        {
            "score": (("run", "subset", "sentence", "label"), rng.normal(size=(2, 9, 6, 2))),
            "right": (("run", "sentence"), right),
            "validation_score": (("run", "draw", "validation", "label"), validation),
            "validation_right": (("run", "validation"), right),
        },
        {"rule": ("subset", rules)},
    )
    first = rules.index("random")
    np.testing.assert_array_equal(claims.best_draw(dataset), [first + 2, first])
    of_rules = claims.rule_readings(dataset)
    expected = readings.cross_entropy(dataset.score.values[0, first + 2], right[0])
    np.testing.assert_allclose(of_rules[claims.BEST][0], expected)
    draws = [readings.cross_entropy(dataset.score.values[1, first + i], right[1]) for i in range(3)]
    np.testing.assert_allclose(of_rules["random"][1], np.exp(np.mean(np.log(draws))))


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
