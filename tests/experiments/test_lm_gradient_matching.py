"""Texts of one width and classes that take turns, in `lm_gradient_matching`."""

import numpy as np

from experiments.language import sentences
from experiments.language.language_config import TASKS
from experiments.language.lm_gradient_matching import choices
from experiments.language.sentences import Writer
from lsa_lab.lm import tokens

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
