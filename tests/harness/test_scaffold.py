"""``lsa-lab new`` writes an experiment that works, refuses what cannot be, and leaves no half."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from lsa_lab.harness.cli import scaffold
from lsa_lab.harness.cli.command_line import main
from lsa_lab.harness.run.laboratory import TIERS, experiments_of
from lsa_lab.store import results

ROOT = Path(__file__).resolve().parents[2]

REFUSED = {
    "": "PACKAGE/THEME/NAME or PACKAGE/NAME",
    "asks/a asks/b": "PACKAGE/THEME/NAME or PACKAGE/NAME",
    "asks": "PACKAGE/THEME/NAME or PACKAGE/NAME",
    "asks/a/b/c": "PACKAGE/THEME/NAME or PACKAGE/NAME",
    "asks/a --theme b": "and nothing else",
    "asks/a --package lab": "leave it out of new",
    "asks/a --tier smoke": "leave it out of new",
    "asks//a": "''",
    "asks/2a": "'2a'",
    "asks/my-question": "'my-question'",
    "asks/class": "'class'",
    "asks/_a": "'_a'",
    "../asks/a": "'..'",
    "asks/all": "every experiment at once",
    "json/a": "another Python module",
    "lsa_lab/a": "another Python module",
    "module/a": "another Python module",
    "file/a": "a file, no package",
    "folder/a": "a folder without __init__.py",
    "empty/a": "EXPERIMENTS = ()",
    "computed/a": "EXPERIMENTS = ()",
    "word/a": "EXPERIMENTS = ()",
    "broken/a": "EXPERIMENTS = ()",
    "lab/theme/old": "'theme.old'",
    "lab/other/old": "'theme.old'",
    "lab/theme/beside": "lab/theme/beside exists",
    "lab/theme": "lab/theme exists",
    "lab/a": "lab/THEME/a, THEME a new one or theme",
    "lab/plain/a": "a folder without __init__.py",
    "flat/old/a": "flat/old is an experiment",
}
PACKAGES = {
    "empty": "",
    "computed": "EXPERIMENTS = tuple(['a'])\n",
    "word": "EXPERIMENTS = 'a'\n",
    "broken": "EXPERIMENTS = (\n",
    "lab": "EXPERIMENTS = ('theme.old',)\n",
    "lab/theme": "",
    "lab/theme/beside": "",
    "flat": "EXPERIMENTS = ('old',)\n",
    "flat/old": "",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.split(".")[0] == "asks":
            del sys.modules[name]


def files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return {path.as_posix(): path.read_bytes() if path.is_file() else b"" for path in paths}


@pytest.fixture
def neighbours(folder):
    for name, text in PACKAGES.items():
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(text, "utf-8")
    for name in ("folder", "lab/plain"):
        (folder / name).mkdir()
    for name in ("file", "module.py"):
        (folder / name).touch()
    importlib.invalidate_caches()
    return folder


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_is_refused_and_leaves_nothing(words, neighbours, capsys):
    before = files(neighbours)
    assert main(["new", *words.split()]) == 2
    error = capsys.readouterr().err
    assert REFUSED[words] in error
    assert error.count("\n") == 1
    assert files(neighbours) == before


@pytest.mark.parametrize("step", ["folder", "name"])
@pytest.mark.parametrize("place", ["asks/theme/again", "asks/other/again", "asks2/a"])
def test_a_disk_that_refuses_leaves_nothing(step, place, folder, monkeypatch, capsys):
    assert main(["new", "asks/theme/first"]) == 0
    before = files(folder)

    def refuse(*_):
        raise PermissionError("no room")

    if step == "folder":
        monkeypatch.setattr(Path, "rename", refuse)
    elif place.startswith("asks/"):
        monkeypatch.setattr(results, "write", refuse)
    else:
        monkeypatch.setattr(Path, "write_bytes", refuse)
    assert main(["new", place]) == 2
    assert f"{place} cannot be written: no room" in capsys.readouterr().err
    assert files(folder) == before


def test_an_unfinished_folder_of_a_killed_run_is_no_obstacle(folder):
    (folder / ".asks.new").mkdir()
    assert main(["new", "asks/first"]) == 0
    assert [path.name for path in folder.iterdir()] == ["asks"]


def test_an_experiment_joins_those_that_exist(folder, capsys):
    for place in ("asks/early/first", "asks/early/second", "asks/late/third"):
        assert main(["new", place]) == 0
    assert "lsa-lab run third --tier smoke --package asks\n" in capsys.readouterr().out
    experiments = experiments_of("asks")
    assert list(experiments) == ["first", "second", "third"]
    assert experiments["third"].question.endswith("?")
    assert tuple(experiments["third"].tiers) == TIERS[:3]
    written = {path.name: path.read_bytes() for path in (folder / "asks/late/third").glob("*.py")}
    assert written == {name: (scaffold.TEMPLATES / name).read_bytes() for name in scaffold.FILES}
    assert list(scaffold.purposes()) == list(scaffold.FILES)
    assert all(scaffold.purposes().values())


def test_results_go_elsewhere_beside_those_of_another_package(folder, capsys):
    (folder / "figures" / "old").mkdir(parents=True)
    ledger = folder / "figures" / "CLAIMS.md"
    ledger.write_text("# Claims\n\n| [old](old/README.md) | Is it? | It is. | 1 hold |\n", "utf-8")
    assert main(["new", "asks/first"]) == 0
    lines = capsys.readouterr().out.splitlines()[-3:]
    assert [line.split(None, 1)[1] for line in lines] == [
        "run first --tier smoke --package asks",
        "run first --out out --package asks",
        "report --out out --package asks",
    ]
    (folder / "figures" / "first").mkdir()
    (folder / "figures" / "first" / "result.nc").touch()
    assert main(["report", "--package", "asks"]) == 2, "it would forget what the ledger tells"
    assert "figures/CLAIMS.md tells of old, which asks has not" in capsys.readouterr().err


def test_what_is_written_is_in_the_style_of_the_house(folder):
    for place in ("asks/early/first", "asks/late/second"):
        assert main(["new", place]) == 0
    ruff = [sys.executable, "-m", "ruff"]
    for words in (["check"], ["format", "--check"]):  # mypy sees the templates with the library
        command = [*ruff, *words, "--no-cache", "--config", str(ROOT / "pyproject.toml"), "asks"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout


LISTED = {  # before: after
    "EXPERIMENTS = ()": 'EXPERIMENTS = ("new",)',
    "EXPERIMENTS = []  # none": 'EXPERIMENTS = ["new",]  # none',
    'EXPERIMENTS: tuple = ("a",)': 'EXPERIMENTS: tuple = ("a", "new")',
    'EXPERIMENTS = ("a", "b")': 'EXPERIMENTS = ("a", "b", "new")',
    "EXPERIMENTS = (\n    'a',\n)\n": "EXPERIMENTS = (\n    'a',\n    \"new\",\n)\n",
    "EXPERIMENTS = (\n  'a',\n  'b'\n)\n": "EXPERIMENTS = (\n  'a',\n  'b',\n  \"new\",\n)\n",
    "EXPERIMENTS = (\r\n  'a', # b, c\r\n)": "EXPERIMENTS = (\r\n  'a', # b, c\r\n  \"new\",\r\n)",
    "EXPERIMENTS = (\n  '',\n  'a'  # b, c\n  # end\n)": (
        "EXPERIMENTS = (\n  '',\n  'a',  # b, c\n  # end\n  \"new\",\n)"
    ),
    "EXPERIMENTS = ('a',\n    'b')": "EXPERIMENTS = ('a',\n    'b', \"new\")",
    "EXPERIMENTS = ('a', 'b',\n)": "EXPERIMENTS = ('a', 'b',\n    \"new\",\n)",
    "'é'\nEXPERIMENTS = ('é',) # é": "'é'\nEXPERIMENTS = ('é', \"new\") # é",
    "'é' ; EXPERIMENTS = ('é',)": None,
    "EXPERIMENTS = 'a', 'b'": None,
    "EXPERIMENTS = ('a'), ('b')": None,
    "EXPERIMENTS = ('a', *more)": None,
    "EXPERIMENTS = ('a')": None,
    "EXPERIMENTS = ('a',)\nEXPERIMENTS = ('b',)": None,
    "EXPERIMENTS = ('a', # x\n 'b' # y\n, )": "EXPERIMENTS = ('a', # x\n 'b' # y\n, \"new\")",
    "EXPERIMENTS = ('a', 'b' # x\n)": "EXPERIMENTS = ('a', 'b', # x\n    \"new\",\n)",
}


@pytest.mark.parametrize("source", LISTED)
def test_a_name_is_added_and_the_rest_stays(source):
    text = scaffold.with_name(source.encode(), "new")
    assert (text and text.decode()) == LISTED[source]
