"""The program refuses what no card can be made of, and checks the cards that are committed."""

import shutil
from pathlib import Path

import pytest

from lsa_lab.card import shelf

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
