"""What experiments on a language model share: sentences, and the decoder, ours or the reader's."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from experiments.language import data_sets, decoders, sentences
from experiments.language.language_config import SMOKE, LanguageConfig
from lsa_lab.harness.cli import command_line, overrides
from lsa_lab.harness.run.laboratory import experiments_of
from lsa_lab.judging.statements import grid
from lsa_lab.lm import tokens
from lsa_lab.store import results

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
    with pytest.raises(ValueError, match=r"code = .*, and this call has another"):
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


LLAMA = Path(__file__).resolve().parents[1] / "lm" / "fixtures" / "llama"
LANGUAGE = [each for each in experiments_of("experiments").values() if each.theme == "language"]


@pytest.fixture
def own(tmp_path):
    """A Llama of two layers, with room for prompts and the words of the invented texts."""
    folder = tmp_path / "my_llama"
    shutil.copytree(LLAMA, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 256}))
    tokens.of_words(decoders._WORDS).rules.save(str(folder / "tokenizer.json"))
    return folder


def test_an_experiment_runs_on_a_decoder_on_disk(own, tmp_path, capsys):
    words = [
        "run",
        "lm_heads",
        "--tier",
        "smoke",
        "--model",
        str(own),
        "--out",
        str(tmp_path / "out"),
    ]
    assert command_line.main(words) == 0, capsys.readouterr()
    (file,) = (tmp_path / "out").rglob("result.nc")
    config = results.config_of(results.load(file))
    assert config.model_name == "my_llama"
    assert [*config.layers] == [0, 1]
    assert file.parent.name == f"model=my_llama-{config.sha256[:12]},layers=0_1"
    assert "my_llama" in capsys.readouterr().out


@pytest.mark.parametrize("experiment", LANGUAGE, ids=lambda each: each.name)
def test_layers_keep_their_share_of_any_depth(experiment):
    config = experiment.tiers["laptop"]
    for count in (4, 12, 32, 80):
        words = [
            word
            for key, values in config.at_depth(count).items()
            for word in (f"--config.{key}", *map(str, values))
        ]
        changed = overrides.apply(config, words)
        layers = [*getattr(changed, "layers", ()), getattr(changed, "middle", 0)]
        assert max(layers) <= count
        assert changed.at_depth(30) != {} or not words
    assert overrides.apply(config, []) == config


def test_what_is_no_decoder_is_refused_before_anything_is_computed(own, tmp_path, capsys):
    words = ["run", "lm_heads", "--out", str(tmp_path / "out"), "--model"]
    assert command_line.main([*words, str(tmp_path / "none")]) == 2
    (own / "config.json").write_text('{"model_type": "rwkv"}')
    assert command_line.main([*words, str(own)]) == 2
    assert "rwkv" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
