"""A user's own files: pairs of sentences, and answers to choose from, one fixture a data set."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.lm import decoder, readings, text, tokens, weights
from lsa_lab.lm.choices import choice_scores
from lsa_lab.lm.config import Config
from lsa_lab.lm.records import read_choices, read_sentences

FIXTURES = Path(__file__).parent / "fixtures"
SHAPE = dict(num_layers=2, num_heads=2, num_groups=1, key_width=4, width=8, mlp_width=12)
RTE = "{premise} Does this mean that {hypothesis} is true? select Yes or No?"  # of A2, appendix C


def read_copa():
    form = "{premise} What was the {question} of this?"
    return read_choices(FIXTURES / "copa.jsonl", form, ("{choice1}", "{choice2}"), "label")


def make_decoder(texts):
    words = sorted({word for each in texts for word in each.split()})
    tokenizer = tokens.make_word_tokenizer(words)
    config = Config(**SHAPE, vocabulary=len(words) + 1, context=128, rotary_width=4, tied=True)
    return weights.init(jax.random.key(0), config, "float64"), config, tokenizer


def test_pairs_of_rte_are_asked_like_texts():
    pairs = read_sentences(FIXTURES / "rte.jsonl", RTE, "label", ("not_entailment", "entailment"))
    np.testing.assert_array_equal(pairs.labels, [1, 0, 1, 0])
    expected = "The dog sleeps in the garden. Does this mean that The cat sleeps. is true?"
    assert pairs.texts[1].startswith(expected)
    params, config, tokenizer = make_decoder([*pairs.texts, "No Yes"])
    template = text.Template(("No", "Yes"), "{text} {label}\n")
    shown, asked = pairs.take([0, 1]), pairs.take([2, 3])
    questions = text.ask(template, shown, asked, tokenizer, config.context)
    scores = text.scores(params, config, questions)
    whole = f"{pairs.texts[0]} Yes {pairs.texts[1]} No {pairs.texts[2]}"
    ids = jnp.asarray(tokenizer.encode(whole))
    row = decoder.forward(params, decoder.embed(params, ids, config), config).stream[-1, -1]
    expected = decoder.logits(params, row, config)[questions.label_ids]
    np.testing.assert_allclose(scores[0], expected, rtol=1e-9)


def test_three_classes_of_cb_and_their_f1():
    classes = ("contradiction", "entailment", "neutral")
    pairs = read_sentences(FIXTURES / "cb.jsonl", "{premise} {hypothesis}?", "label", classes)
    np.testing.assert_array_equal(pairs.labels, [1, 0, 2])
    scores = np.eye(3)[[1, 1, 2]]  # entailment, entailment, neutral
    assert readings.accuracy(scores, pairs.labels) == pytest.approx(2 / 3)
    # Precision and recall: contradiction 0 and 0, entailment 1/2 and 1, neutral 1 and 1.
    assert readings.f1(scores, pairs.labels) == pytest.approx((0 + 2 / 3 + 1) / 3)
    assert readings.f1(scores, pairs.labels, 1) == pytest.approx(2 / 3)


def test_columns_of_mrpc_have_blanks_in_their_names_and_quotes_in_their_texts():
    form = "sentence1: {#1 String} sentence2: {#2 String}"
    pairs = read_sentences(FIXTURES / "mrpc.tsv", form, "Quality", ("0", "1"))
    assert pairs.texts[1] == 'sentence1: The " quiet " dog sleeps . sentence2: A cat reads .'
    np.testing.assert_array_equal(pairs.labels, [1, 0])


@pytest.mark.parametrize("shown", [0, 2])
def test_scores_of_copa_are_log_probabilities_of_whole_answers(shown):
    copa = read_copa()
    assert copa.texts[0] == "The glass fell. What was the effect of this?"
    every = [*copa.texts, *(answer for answers in copa.answers for answer in answers)]
    params, config, tokenizer = make_decoder(every)
    demonstrations, queries = copa.take(range(shown)), copa.take([2])
    scores = choice_scores(params, config, demonstrations, queries, tokenizer)
    before = [f"{copa.texts[i]} {copa.answers[i][copa.labels[i]]}" for i in range(shown)]
    for choice, answer in enumerate(queries.answers[0]):
        ids = tokenizer.encode(" ".join([*before, queries.texts[0], answer]))
        rows = decoder.forward(
            params, decoder.embed(params, jnp.asarray(ids), config), config
        ).stream[-1]
        logs = np.asarray(jax.nn.log_softmax(decoder.logits(params, rows, config)))
        count = len(answer.split())
        total = sum(logs[t - 1, ids[t]] for t in range(len(ids) - count, len(ids)))
        np.testing.assert_allclose(scores[0, choice], total, rtol=1e-9)
    means = choice_scores(params, config, demonstrations, queries, tokenizer, per_token=True)
    np.testing.assert_allclose(means, scores / [[4, 3]])
    assert readings.accuracy(scores, queries.labels) in (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{premise} {answer}", "label", ("no", "yes")), "has no field 'answer'"),
        (("{premise}", "label", ("no", "yes")), "is none of no, yes"),
    ],
)
def test_a_form_or_a_class_that_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        read_sentences(FIXTURES / "rte.jsonl", *arguments)
