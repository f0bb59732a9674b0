"""Experiments on a language model: prompts of one width, gradients, closed heads and edits."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.language import edits, lm_clipping, lm_flow, lm_heads, models, texts
from experiments.language import lm_gradient_matching as matching
from lsa_lab.lm import decoder

MODEL = models.load_model(models.RANDOM)
POOL = texts.read_pool(texts.INVENTED, MODEL.tokenizer, 8, 0)
SHOWN, ASKED = np.arange(3), np.arange(3, 5)
MASK = np.ones((4, 4), np.float32)


@jax.jit
def run_whole(embedded, params, mask):  # [T, D] -> [L+1, 2] logits of the label words
    rows = decoder.forward(params, embedded, MODEL.config, mask).stream[:, -1]
    return decoder.logits(params, rows, MODEL.config, jnp.asarray(POOL.words))


def embed_whole(row, params=MODEL.params):
    ids = jnp.concatenate([jnp.asarray(POOL.write(SHOWN)), jnp.asarray(POOL.questions[row])])
    return decoder.embed(params, ids, MODEL.config)


def read_whole(row, params=MODEL.params, mask=MASK):
    """Return the margin of a question after the prompt, by one pass through the whole of it."""
    scores = run_whole(embed_whole(row, params), params, mask)[-1]
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


def test_readings_of_a_prompt_are_those_of_the_whole_pass():
    prefix, layers = POOL.write(SHOWN), (2, 4)
    reading = models.read_prompts(
        MODEL.params, prefix[None], POOL.questions[ASKED][None], POOL.words,
        config=MODEL.config, layers=layers,
    )  # fmt: skip
    margins = [read_whole(row) for row in ASKED]
    np.testing.assert_allclose(reading.margin[0], margins, atol=1e-4)

    @jax.jit
    @jax.jacrev
    def find_slopes(embedded):  # [L+1, T, D]
        return run_whole(embedded, MODEL.params, MASK) @ jnp.array([-1.0, 1], embedded.dtype)

    squares = (np.asarray(find_slopes(embed_whole(ASKED[0])), float) ** 2).sum(-1)
    squares = squares[:, : len(prefix)]
    np.testing.assert_allclose(reading.squares[0, 0], squares[list(layers)], rtol=1e-3)
    assert np.abs(squares[2] / squares[4] - 1).min() > 1e-3  # layers differ


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


def test_the_importance_of_a_head_is_the_change_of_whole_prompts():
    importance = lm_heads.measure_importance(MODEL, POOL, SHOWN, ASKED, (1, 3))
    without, changes = MASK.copy(), []
    without[2, 1] = 0
    for row in ASKED:
        z, closed = read_whole(row), read_whole(row, mask=without)
        p, q = (np.array([1, np.exp(each)]) / (1 + np.exp(each)) for each in (z, closed))
        np.testing.assert_allclose(lm_heads.find_change(-z, -closed), (p * np.log(p / q)).sum())
        changes.append((p * np.log(p / q)).sum())
    np.testing.assert_allclose(importance[1, 1], np.mean(changes), rtol=0.02)


def test_kept_heads_are_chosen_on_the_other_collections():
    mask = lm_heads.keep_heads([1], [2], (3, 2))
    np.testing.assert_array_equal(mask, [[1, 1], [0, 1], [1, 1]])
    importance = np.ones((3, 2, 2))
    importance[0, 1], importance[1:, 1] = (9, 1), (1, 2)
    chosen = [lm_heads.choose_heads(importance, collection) for collection in (0, 1)]
    assert chosen == [[1], [0]]  # without 1 the first head has .9 and 1/3


def test_an_edit_is_read_as_the_whole_pass_of_the_changed_model():
    editor = edits.Editor(MODEL.params)
    answers = edits.Answers(MODEL, POOL, SHOWN, POOL.questions[ASKED], {2})
    dropped = MODEL.params.replace(mlp_out=MODEL.params.mlp_out.at[2].set(0))
    margins = answers.read(2, editor.clip(2, "mlp", "drop"))
    np.testing.assert_allclose(margins, [read_whole(row, dropped) for row in ASKED], atol=1e-4)
    assert np.abs(margins - answers.read(2)).max() > 1e-3


def test_random_edits_are_as_large_as_clipping_and_leave_other_leaves():
    editor = edits.Editor(MODEL.params)
    gate = np.asarray(MODEL.params.mlp_gate[2], float)
    clipped, random = editor.clip(2, "mlp", 0.75), editor.disturb(2, "mlp", 0.75, 1)
    assert np.linalg.matrix_rank(np.asarray(clipped.mlp_gate)) == 4  # of 16
    sizes = [np.linalg.norm(np.asarray(each.mlp_gate, float) - gate) for each in (clipped, random)]
    np.testing.assert_allclose(*sizes, rtol=1e-5)
    np.testing.assert_array_equal(random.w_q, MODEL.params.w_q[2])


class Margins(dict):
    """The margins of three questions after each edit; an edit is its rate."""

    def read(self, layer, edit=None):
        return np.array(self[edit])

    def edit(self, kind, layer, part, rate, seed):
        return rate


def test_the_search_takes_the_first_best_edit_of_validation():
    validation = Margins({None: [1.0, 1, -1], 0.1: [-1.0, 1, 1], 0.5: [-1.0, 1.5, 2]})
    tested = Margins({None: [-1.0, 1, 1], 0.1: [-1.0, -1, 1], 0.5: [1.0, 1, 1]})
    worse = Margins({None: [-1.0, 1, 1], 0.1: [1.0, 1, 1], 0.5: [-1.0, -1, 1]})
    config, labels = lm_clipping.Config(searched_rates=(0.1, 0.5)), [np.array([0, 1, 1])] * 2
    for margins, expected in ((validation, -1 / 3), (worse, 0)):
        arguments = margins, margins, tested, labels, (2, "mlp"), "clipped", 0
        np.testing.assert_allclose(lm_clipping.search(config, *arguments)[0], expected)


LABELS = np.repeat([0, 1], 12)


def test_classes_take_turns_and_the_same_is_last_in_all_prompts_of_a_pool():
    rng, last = np.random.default_rng(0), np.array([0.7, 0.2])
    for members, turns in (
        (np.r_[0:4, 12:16], [1, 0] * 4),
        (np.r_[0:6, 12:15], [1, 0, 0] * 3),
        (np.arange(5), [0] * 5),
    ):
        order = matching.take_turns(rng, members, LABELS, last)
        assert sorted(order) == sorted(members)
        np.testing.assert_array_equal(LABELS[order], turns)
        assert list(order) != list(members)


def test_matched_subsets_cancel_and_stratified_ones_have_the_shares_of_the_pool():
    config = matching.Config(m=24, shots=4, orders=2, draws=3)
    gradients = np.zeros((24, 1))
    matched = [3, 7, 11, 20]
    gradients[np.setdiff1d(np.arange(24), matched), 0] = [*np.arange(1, 20), -190]
    chosen = matching.choose(config, gradients, LABELS, jax.random.key(0))
    assert chosen.shape == (2 + 3 + 3, 4)
    assert [sorted(row) for row in chosen[:2]] == [matched] * 2
    np.testing.assert_array_equal(LABELS[chosen[5:]].sum(1), [2, 2, 2])
    assert all(len({*row}) == 4 for row in chosen.tolist())
    divergence = matching.find_divergence(np.array([[0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1]]))
    expected = [0, 0.25 * np.log(0.5) + 0.75 * np.log(1.5), np.log(2)]
    np.testing.assert_allclose(divergence, expected, atol=1e-12)


def test_the_loss_is_that_of_the_right_word_after_the_whole_prompt():
    found = matching.find_loss(MODEL, POOL, [SHOWN], ASKED)
    margins = [read_whole(row) * (2 * POOL.labels[row] - 1) for row in ASKED]
    np.testing.assert_allclose(found, [np.log1p(np.exp(-np.array(margins))).mean()], rtol=1e-4)
