"""What experiments on a language model share: sentences, and the decoder, ours or the reader's."""

import dataclasses

import numpy as np
import pytest

from experiments.language import data_sets, decoders, sentences
from experiments.language.language_config import SMOKE, LanguageConfig
from lsa_lab.judging.statements import grid

CONFIG = LanguageConfig(**SMOKE)
TASK = CONFIG.tasks[0][1]


@pytest.mark.parametrize("balanced", [True, False])
def test_a_run_takes_no_sentence_twice_and_the_same_ones_every_time(balanced):
    pool, task = sentences.read(TASK), dataclasses.replace(TASK, balanced=balanced)
    first, again = (sentences.sets(pool, task, CONFIG, 3, 0, others=6) for _ in range(2))
    another = sentences.sets(pool, task, CONFIG, 4, 0, others=6)
    assert [part.texts for part in first] == [part.texts for part in again]
    assert first.fresh.texts != another.fresh.texts
    every = [text for part in first for text in part.texts]
    assert len(set(every)) == len(every) == CONFIG.shots + CONFIG.fresh + 6
    assert np.bincount(first.fresh.labels).tolist() == [CONFIG.fresh // 2] * 2


def test_a_model_with_another_sum_is_refused(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    other = dataclasses.replace(CONFIG, model=str(tmp_path / "model.gguf"), sha256="0" * 64)
    with pytest.raises(ValueError, match="is not the model whose sha256"):
        decoders.decoder(other)


def test_runs_measured_by_other_code_are_not_taken_up(tmp_path, monkeypatch):
    def measured():
        def measure(task, run):
            return {"score": np.array([10.0 * task + run])}

        return decoders.table(CONFIG, measure, {"score": ("one",)}, None, tmp_path)["score"]

    before = measured()
    assert before.shape == (len(CONFIG.tasks), CONFIG.runs, 1)
    np.testing.assert_array_equal(measured(), before)
    monkeypatch.setattr(decoders, "_code", lambda: "another")
    with pytest.raises(ValueError, match="has other facts than this call"):
        measured()


@pytest.mark.parametrize(("runs", "judged"), [(data_sets.FEWEST - 1, False), (30, True)])
def test_with_few_sets_of_demonstrations_rows_are_a_pilot_without_a_verdict(runs, judged):
    config = dataclasses.replace(CONFIG, runs=runs)
    family = data_sets.families(config, over="sets of demonstrations")
    row = family(
        "gain",
        "derived here",
        "it is there",
        "the gain",
        at_least=0.1,
        cells=grid("rotten_tomatoes_gain"),
    )
    (cell,) = row.judged()
    assert (cell.id, cell.case) == ("invented_gain", {"data": "invented"})
    assert cell.says == "a tiny random decoder on invented sentences: it is there"
    assert row.whole.says == "a tiny random decoder: it is there"
    assert bool(cell.unjudged) != judged
    assert ("a pilot of 29 sets, and a verdict takes 30" in cell.criterion) != judged
    assert cell.bounds[0] == (0.1 if judged else -np.inf)
