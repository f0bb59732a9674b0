"""An experiment that reads a model or texts is run where they have been fetched, and only there."""

import dataclasses
import hashlib
import importlib
import sys
from pathlib import Path

import pytest

from lsa_lab.lm import sources
from lsa_lab.store import results

CONTENT = b"a model"
SOURCE = sources.Source(
    about="seven letters",
    package="letters",
    version="1.0",
    wheel="letters-1.0-py3-none-any.whl",
    wheel_sha256="",
    size=7_000_000,
    licence="MIT",
    files={"letters/letters.gguf": hashlib.sha256(CONTENT).hexdigest()},
)
WORDS = "lsa-lab fetch letters numbers (14 MB)"


@pytest.fixture
def two(copies, monkeypatch):
    """A package of two experiments, of which ``read`` needs two sources: words -> exit status."""
    program = copies("theme.toy", "wing.read")
    numbers = dataclasses.replace(SOURCE, wheel="numbers-1.0-py3-none-any.whl")
    monkeypatch.setattr(sources, "SOURCES", {"letters": SOURCE, "numbers": numbers})
    config = importlib.import_module("two_lab.wing.read.config")
    digest = next(iter(SOURCE.files.values()))
    fields = [("model", str, "letters"), ("model_name", str, "seven"), ("sha256", str, digest)]
    kind = dataclasses.make_dataclass("Config", fields, bases=(config.Config,), frozen=True)
    monkeypatch.setattr(config, "NEEDS", ("letters", "numbers"), raising=False)
    monkeypatch.setattr(config, "TIERS", {"smoke": kind(n=4), "laptop": kind(), "paper": kind()})
    return program


def put(*names):
    """The files of sources in the cache."""
    for name in names:
        (place,) = sources.SOURCES[name].places
        place.parent.mkdir(parents=True)
        place.write_bytes(CONTENT)


def test_a_run_without_its_sources_is_refused_in_a_sentence_that_says_what_fetches_them(
    two, toy, capsys
):
    assert two("run", "read") == 2
    error = capsys.readouterr().err
    assert error == (
        f"error: read reads letters and numbers, not yet in {toy / 'cache'}: run {WORDS}\n"
    )
    assert two("submit", "read", "--engine", "local") == 2
    assert capsys.readouterr().err == error
    put("letters")
    assert two("run", "toy", "read") == 2
    assert "lsa-lab fetch numbers (7 MB)" in capsys.readouterr().err
    assert not (toy / "figures").exists()
    put("numbers")
    assert two("run", "read") == 0


def test_a_damaged_source_is_refused_before_the_run(two, capsys):
    put("letters", "numbers")
    next(iter(SOURCE.places)).write_bytes(b"a noise")
    assert two("run", "read") == 2
    assert "read: " in (error := capsys.readouterr().err)
    assert "letters.gguf is damaged: run" in error


def test_all_are_run_but_those_that_lack_a_source(two, toy, capsys):
    assert two("run", "all") == 0
    text = capsys.readouterr().out
    assert f"left out until {WORDS} has been run: read\n" in text
    assert [path.name for path in (toy / "figures").iterdir()] == ["toy"]
    put("letters", "numbers")
    assert two("run", "all") == 0
    assert "left out" not in capsys.readouterr().out
    assert (toy / "figures" / "read" / "result.nc").exists()


def test_all_of_nothing_is_refused(two, toy, capsys):
    (toy / "two_lab" / "__init__.py").write_text('EXPERIMENTS = ("wing.read",)\n')
    importlib.reload(sys.modules["two_lab"])
    assert two("run", "all") == 2
    assert WORDS in capsys.readouterr().err


def test_all_at_a_tier_are_those_that_have_it(two, toy, capsys, monkeypatch):
    put("letters", "numbers")
    config = importlib.import_module("two_lab.theme.toy.config")
    monkeypatch.delitem(config.TIERS, "paper")
    assert two("run", "all", "--tier", "paper") == 0
    assert (toy / "figures" / "read" / "paper" / "result.nc").exists()
    assert not (toy / "figures" / "toy").exists()
    assert two("run", "toy", "--tier", "paper") == 2
    assert two("draw", "read", "--tier", "paper") == 0


def test_the_smoke_tier_needs_no_texts_and_a_random_model(two, monkeypatch):
    config = importlib.import_module("two_lab.wing.read.config")
    smoke = dataclasses.replace(config.TIERS["smoke"], model="random")
    monkeypatch.setitem(config.TIERS, "smoke", smoke)
    assert two("run", "all", "--tier", "smoke") == 0


def test_a_model_of_the_users_own_takes_the_place_of_the_source(two, toy, capsys):
    put("numbers")
    assert two("run", "read", "--model", "here.gguf") == 2
    words = "no model here.gguf: name a GGUF file, or a folder with config.json and safetensors"
    assert words in capsys.readouterr().err
    Path("here.gguf").write_bytes(b"mine")
    assert two("run", "read", "--model", "here.gguf", "--config.model_name", "my own") == 0
    (place,) = (toy / "figures" / "read").iterdir()
    config = results.config_of(results.load(place / "result.nc"))
    assert (config.model, config.model_name) == ("here.gguf", "my own")
    assert config.sha256 == hashlib.sha256(b"mine").hexdigest()
    Path("folder").mkdir()
    assert two("run", "read", "--model", "folder", "--out", "out") == 0
    (place,) = (toy / "out" / "read").iterdir()
    config = results.config_of(results.load(place / "result.nc"))
    assert config.sha256 == sources.sha256("folder") != ""
    assert place.name == f"model=folder-{config.sha256[:12]}"
    assert two("run", "read") == 2, "the tier itself reads the source"


def test_another_source_in_the_place_of_the_tiers_has_to_be_there_and_a_tiers_word_has_not(
    two, capsys, monkeypatch
):
    config = importlib.import_module("two_lab.wing.read.config")
    smoke = dataclasses.replace(config.TIERS["smoke"], model="random")
    monkeypatch.setitem(config.TIERS, "smoke", smoke)
    assert two("run", "read", "--tier", "smoke", "--config.model", "letters") == 2
    assert "lsa-lab fetch letters" in capsys.readouterr().err
    put("numbers")
    assert two("run", "read", "--config.model", "random") == 0


def test_ctrl_c_remembers_the_model(two, toy, capsys, monkeypatch):
    put("numbers")
    Path("here.gguf").write_bytes(b"mine")
    monkeypatch.setenv("TOY_INTERRUPT", "Ctrl-C")
    assert two("run", "read", "--model", "here.gguf") == 130
    words = "lsa-lab run read --tier laptop --model here.gguf --package two_lab"
    assert words in capsys.readouterr().err


def test_the_list_says_what_is_to_be_fetched_first(two, capsys):
    assert two("list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"wing first {WORDS}" in lines
    assert "theme" in lines
    assert two("list", "read") == 0
    text = capsys.readouterr().out
    assert "reads what is fetched once:\n  letters  seven letters: lsa-lab fetch letters" in text
    put("letters", "numbers")
    assert two("list") == 0
    assert "wing" in capsys.readouterr().out.splitlines()
    assert two("list", "read") == 0
    assert "letters  seven letters, which is there" in capsys.readouterr().out
    assert two("list", "toy") == 0
    assert "fetched" not in capsys.readouterr().out


def test_a_source_that_is_none_is_named(two, capsys, monkeypatch):
    config = importlib.import_module("two_lab.wing.read.config")
    monkeypatch.setattr(config, "NEEDS", ("leters",))
    assert two("run", "read") == 2
    assert "NEEDS of read: no source 'leters': letters, numbers" in capsys.readouterr().err
