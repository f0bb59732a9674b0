"""Experiments on a language model: prompts of one width, gradients, closed heads and edits."""

import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from experiments.language import edits, lm_clipping, lm_flow, lm_heads, models, texts
from lsa_lab import lm
from lsa_lab.lm import decoder

MODEL = models.load_model(models.RANDOM)
POOL = texts.read_pool(texts.INVENTED, MODEL.tokenizer, 8, 0)
SHOWN, ASKED = np.arange(3), np.arange(3, 5)


@jax.jit
def run_whole(embedded, params, mask):  # [T, D] -> [L+1, 2] logits of the label words
    rows = decoder.forward(params, embedded, MODEL.config, mask).stream[:, -1]
    return decoder.logits(params, rows, MODEL.config, jnp.asarray(POOL.words))


def read_whole(prefix, row, params=MODEL.params, mask=None):
    """Return the margin of a question after a prefix, by one pass through the whole prompt."""
    ids = jnp.concatenate([jnp.asarray(prefix), jnp.asarray(POOL.questions[row])])
    shape = MODEL.config.num_layers, MODEL.config.num_heads
    mask = jnp.ones(shape, jnp.float32) if mask is None else mask
    scores = run_whole(decoder.embed(params, ids, MODEL.config), params, mask)[-1]
    return float(scores[1] - scores[0])


def test_prompts_say_what_was_cut_to_one_width():
    said = MODEL.tokenizer.decode(POOL.write([4, 7])).split()
    expected = [
        f"Review: {POOL.texts[row]} Sentiment: {('negative', 'positive')[POOL.labels[row]]}"
        for row in (4, 7)
    ]
    assert said[1:] == " ".join(expected).split()  # after the separator
    (first, stop), _ = POOL.find_spans(2)
    assert MODEL.tokenizer.decode(POOL.write([4, 7])[first:stop]) == expected[0]
    assert POOL.questions.shape[1] == POOL.content_free.shape[1] == 8


def test_parts_share_no_text_and_have_both_classes_equally_often():
    labels = np.random.default_rng(1).permutation(np.repeat([0, 1], 20))
    parts = texts.draw_rows(np.random.default_rng(2), labels, 4, 6, 3)
    assert [np.bincount(labels[rows]).tolist() for rows in parts[:2]] == [[2, 2], [3, 3]]
    assert len(set(np.concatenate(parts))) == 13
    with pytest.raises(ValueError, match="need more than"):
        texts.draw_rows(np.random.default_rng(2), labels, 42)


def test_bm25_counts_rare_words_most():
    shared = ["the dog", "the cat", "the cat sleeps", "a bird"]
    scores = texts.score_bm25(shared, ["The bird", "cat", "nothing"])
    assert scores[3, 0] > scores[0, 0] > 0  # bird is in one text, "the" in three
    assert scores[1, 1] > scores[2, 1] > 0  # the shorter text
    assert not scores[:, 2].any()


def test_readings_of_a_prompt_are_those_of_the_whole_pass():
    prefix, layers = POOL.write(SHOWN), (2, 4)
    reading = models.read_prompts(
        MODEL.params, prefix[None], POOL.questions[ASKED][None], POOL.words,
        config=MODEL.config, layers=layers,
    )  # fmt: skip
    for b, row in enumerate(ASKED):
        np.testing.assert_allclose(reading.margin[0, b], read_whole(prefix, row), atol=1e-4)
    ids = jnp.concatenate([jnp.asarray(prefix), jnp.asarray(POOL.questions[ASKED[0]])])
    embedded = decoder.embed(MODEL.params, ids, MODEL.config)
    mask = jnp.ones((4, 4), jnp.float32)

    @jax.jit
    def slopes(embedded):  # [L+1, T, D]
        return jax.jacrev(
            lambda rows: run_whole(rows, MODEL.params, mask) @ jnp.array([-1.0, 1], rows.dtype)
        )(embedded)

    squares = (np.asarray(slopes(embedded), float) ** 2).sum(-1)[:, : len(prefix)]
    np.testing.assert_allclose(reading.squares[0, 0], squares[list(layers)], rtol=1e-3)
    assert np.abs(squares[2] / squares[4] - 1).min() > 1e-3  # layers differ


def test_a_model_is_read_from_its_path(tmp_path):
    fixture = Path(__file__).parents[1] / "lm/fixtures/llama_tied"
    folder = shutil.copytree(fixture, tmp_path / "mine")
    MODEL.tokenizer.rules.save(str(folder / "tokenizer.json"))
    model = models.load_model(str(folder))
    assert models.describe_model(str(folder)) == "mine"
    assert model.config == lm.load(fixture).config
    assert model.tokenizer.encode("warm film") == MODEL.tokenizer.encode("warm film")


def test_each_demonstration_keeps_its_name_in_every_rotation(monkeypatch):
    """The gradient of demonstration i at place p is e^(10 i + p): without i no ratio is right."""

    def read(model, prefixes, questions, pool, layers):
        squares = np.zeros((3, 2, 1, len(prefixes[0])))
        for prompt, prefix in zip(squares, prefixes, strict=True):
            for place, (first, stop) in enumerate(pool.find_spans(3)):
                (i,) = [i for i in SHOWN if (prefix[first : stop - 1] == pool.questions[i]).all()]
                prompt[..., first] = np.exp(2 * (10 * i + place))
                prompt[..., first + 1 : stop] = 0
        return models.Reading(np.zeros((3, 2)), squares)

    monkeypatch.setattr(lm_flow, "read", read)
    as_read, averaged = lm_flow.compare_rotations(MODEL, POOL, SHOWN, ASKED, (4,))
    np.testing.assert_allclose(averaged, 40 / 3)  # |10|, |10| and |20|: places average out
    ratios = [
        abs(10 * (i - j) + (i + r) % 3 - (j + r) % 3)
        for r in range(3)
        for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    np.testing.assert_allclose(as_read, np.mean(ratios))


def test_correlations_are_scipys_and_a_constant_score_has_none():
    rng = np.random.default_rng(3)
    score, worth = rng.integers(0, 4, (2, 9, 3)).astype(float)
    expected = [stats.spearmanr(x, y).statistic for x, y in zip(score.T, worth.T, strict=True)]
    np.testing.assert_allclose(lm_flow.correlate(score, worth), np.mean(expected))
    assert lm_flow.correlate(np.ones((9, 3)), worth) == 0


def test_selected_demonstrations_stand_best_last(monkeypatch):
    def read(model, prefixes, questions, pool):
        np.testing.assert_array_equal(prefixes, [pool.write([2, 0]), pool.write([1, 2])])
        np.testing.assert_array_equal(questions[:, 0], pool.questions[ASKED])
        return models.Reading(np.array([[1.0], [-2.0]]), None)

    monkeypatch.setattr(lm_flow, "read", read)
    scores = np.array([[[3.0, 0], [1, 1], [2, 2]]])  # of one rule, three texts, two queries
    config = lm_flow.Config(shots=2)
    logs = lm_flow.ask_selected(MODEL, POOL, SHOWN, ASKED, scores, config)
    odds = np.array([1.0, -2.0]) * (2 * POOL.labels[ASKED] - 1)
    np.testing.assert_allclose(logs, [np.log(1 / (1 + np.exp(-odds)))])


def test_closed_heads_are_closed_in_the_whole_prompt():
    prefix, mask = POOL.write(SHOWN), np.ones((4, 4), np.float32)
    mask[2, 1] = mask[3, 0] = 0
    cached = models.cache_streams(MODEL, prefix, POOL.questions[ASKED], (2,))
    margins = lm_heads.answer(MODEL, cached, 2, np.stack([np.ones_like(mask), mask]), POOL.words)
    for i, each in enumerate((None, jnp.asarray(mask))):
        whole = [read_whole(prefix, row, mask=each) for row in ASKED]
        np.testing.assert_allclose(margins[i], whole, atol=1e-4)
    assert np.abs(margins[0] - margins[1]).min() > 1e-3


def test_changes_and_effective_heads_of_known_numbers():
    p, q = np.array([0.8, 0.2]), np.array([0.5, 0.5])
    change = lm_heads.find_change(np.log(p[0] / p[1]), np.log(q[0] / q[1]))
    np.testing.assert_allclose(change, (p * np.log(p / q)).sum())
    shares = np.array([[0.25] * 4, [1, 0, 0, 0], [0.5, 0.5, 0, 0]])
    np.testing.assert_allclose(lm_heads.count_heads(shares), [4, 1, 2])
    mask = lm_heads.keep_heads([1], [2], (3, 2))
    np.testing.assert_array_equal(mask, [[1, 1], [0, 1], [1, 1]])


def test_the_importance_of_a_head_is_the_change_of_whole_prompts():
    importance = lm_heads.measure_importance(MODEL, POOL, SHOWN, ASKED, (1, 3))
    mask = np.ones((4, 4), np.float32)
    mask[2, 1] = 0
    changes = []
    for row in ASKED:
        z, closed = (read_whole(POOL.write(SHOWN), row, mask=m) for m in (None, jnp.asarray(mask)))
        p, q = (np.array([1, np.exp(each)]) / (1 + np.exp(each)) for each in (z, closed))
        changes.append((p * np.log(p / q)).sum())
    np.testing.assert_allclose(importance[1, 1], np.mean(changes), rtol=0.02)


def test_kept_heads_are_chosen_on_the_other_collections():
    importance = np.ones((3, 2, 2))
    importance[0, 1], importance[1:, 1] = (9, 1), (1, 2)
    assert lm_heads.choose_heads(importance, 0) == [1]
    assert lm_heads.choose_heads(importance, 1) == [0]  # .9 and 1/3 of the first head


def test_an_edit_is_read_as_the_whole_pass_of_the_changed_model():
    prefix = POOL.write(SHOWN)
    editor = edits.Editor(MODEL.params)
    answers = edits.Answers(MODEL, POOL, SHOWN, POOL.questions[ASKED], {2})
    dropped = MODEL.params.replace(mlp_out=MODEL.params.mlp_out.at[2].set(0))
    margins = answers.read(2, editor.clip(2, "mlp", "drop"))
    whole = [read_whole(prefix, row, dropped) for row in ASKED]
    np.testing.assert_allclose(margins, whole, atol=1e-4)
    assert np.abs(margins - answers.read(2)).max() > 1e-3


def test_random_edits_are_as_large_as_clipping_and_leave_other_leaves():
    editor = edits.Editor(MODEL.params)
    gate = np.asarray(MODEL.params.mlp_gate[2], float)
    clipped, random = editor.clip(2, "mlp", 0.75), editor.disturb(2, "mlp", 0.75, 1)
    assert np.linalg.matrix_rank(np.asarray(clipped.mlp_gate)) == 4  # of 16
    sizes = [np.linalg.norm(np.asarray(each.mlp_gate, float) - gate) for each in (clipped, random)]
    np.testing.assert_allclose(*sizes, rtol=1e-5)
    np.testing.assert_array_equal(random.w_q, MODEL.params.w_q[2])


def test_the_search_takes_the_first_best_edit_of_validation():
    class Fake:
        def __init__(self, margins):
            self.margins = margins

        def read(self, layer, edit=None):
            return np.array(self.margins[edit])

    class FakeEditor:
        def edit(self, kind, layer, part, rate, seed):
            return rate

    labels = np.array([0, 1, 1])
    validation = Fake({None: [1.0, 1, -1], 0.1: [-1.0, 1, 1], 0.5: [-1.0, 1.5, 2]})
    tested = Fake({None: [-1.0, 1, 1], 0.1: [-1.0, -1, 1], 0.5: [1.0, 1, 1]})
    config = lm_clipping.Config(searched_rates=(0.1, 0.5))
    arguments = FakeEditor(), validation, tested, (labels, labels), (2, "mlp"), "clipped", 0
    gain, _ = lm_clipping.search(config, *arguments)
    np.testing.assert_allclose(gain, -1 / 3)
    worse = Fake({None: [-1.0, 1, 1], 0.1: [1.0, 1, 1], 0.5: [-1.0, -1, 1]})
    assert lm_clipping.search(config, FakeEditor(), worse, *arguments[2:])[0] == 0
