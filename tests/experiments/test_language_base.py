"""What experiments on a language model share: sets of sentences, scores under edits, parts."""

import dataclasses

import numpy as np
import pytest

from experiments.language import decoders, label_scores, sentences
from experiments.language.edits import Edits
from experiments.language.language_config import SMOKE, LanguageConfig
from experiments.language.lm_label_bias import margins
from lsa_lab.lm import halts, text

CONFIG = LanguageConfig(**SMOKE)
TASK = CONFIG.tasks[0][1]


@pytest.fixture(scope="module")
def decoder():
    return decoders.decoder(CONFIG)


@pytest.mark.parametrize("balanced", [True, False])
def test_a_run_takes_no_sentence_twice_and_the_same_ones_every_time(balanced):
    pool, task = sentences.of_task(TASK), dataclasses.replace(TASK, balanced=balanced)
    first, again = (sentences.sets(pool, task, CONFIG, 3, 0, others=6) for _ in range(2))
    another = sentences.sets(pool, task, CONFIG, 4, 0, others=6)
    assert [part.texts for part in first] == [part.texts for part in again]
    assert first.fresh.texts != another.fresh.texts
    every = [text for part in first for text in part.texts]
    assert len(set(every)) == len(every) == CONFIG.shots + CONFIG.fresh + 6
    assert np.bincount(first.fresh.labels).tolist() == [CONFIG.fresh // 2] * 2


def test_the_first_pairs_of_alternating_demonstrations_have_both_classes():
    pool = sentences.of_task(TASK)
    every = sentences.sets(pool, TASK, CONFIG, 0, 0, shots=10).demonstrations
    ordered = sentences.alternating(every)
    assert sorted(ordered.texts) == sorted(every.texts)
    assert (ordered.labels.reshape(-1, 2).sum(1) == 1).all()


def test_scores_from_any_layer_are_those_of_the_whole_walk(decoder):
    own = sentences.sets(sentences.of_task(TASK), TASK, CONFIG, 0, 0)
    template = sentences.template(TASK)
    questions = label_scores.questions(decoder, template, own.demonstrations, own.fresh)
    kept = label_scores.keep(decoder, questions, (1, 3))
    whole = text.scores(decoder.params, decoder.config, questions)
    for layer in (1, 3):
        np.testing.assert_allclose(
            label_scores.label_scores(decoder, kept, layer), whole, rtol=0, atol=1e-5
        )
    same = halts.layer_of(decoder.params, 3)
    np.testing.assert_array_equal(
        label_scores.label_scores(decoder, kept, 3, same),
        label_scores.label_scores(decoder, kept, 3),
    )


def test_an_edit_cuts_its_module_and_leaves_the_others_their_bits(decoder, tmp_path, monkeypatch):
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path))
    own = halts.layer_of(decoder.params, 2)
    cut = Edits(decoder.params)(2, "mlp", 0.75)
    assert np.linalg.matrix_rank(np.asarray(cut.mlp_gate)) == 4  # of 16
    np.testing.assert_array_equal(cut.w_q, own.w_q)
    assert not np.asarray(Edits(decoder.params)(2, "mlp", "drop").mlp_out).any()


def test_a_model_with_another_sum_is_refused(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    other = dataclasses.replace(CONFIG, model=str(tmp_path / "model.gguf"), sha256="0" * 64)
    with pytest.raises(ValueError, match="is not the model whose sha256"):
        decoders.decoder(other)


def test_a_shift_of_margins_is_all_shift_and_a_shuffle_is_not():
    rng = np.random.default_rng(0)
    label = np.arange(200) % 2
    margin = 2 * label - 3 + rng.standard_normal(200)
    shifted = margins.accuracy(margin + 2, label, None, None)
    assert margins.moved(margin + 2, label, margin, None) == shifted > 0.8
    shuffled = rng.permutation(margin + 2)
    rest = margins.accuracy(shuffled, label, None, None) - margins.moved(
        shuffled, label, margin, None
    )
    assert rest < -0.2
