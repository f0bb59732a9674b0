"""`run --model PATH` asks a decoder of one's own what the language experiments ask of SmolLM2."""

import json
import shutil
from pathlib import Path

import pytest

from experiments.language import decoders
from lsa_lab.harness.cli import command_line, overrides
from lsa_lab.harness.run.laboratory import experiments_of
from lsa_lab.lm import tokens
from lsa_lab.store import results

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
