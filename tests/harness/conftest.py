"""A small package in place of the real one, and folders of its own for everything."""

import shutil
import sys
from pathlib import Path

import pytest

from lsa_lab.harness.cli.command_line import main
from lsa_lab.harness.run import process

HERE = Path(__file__).parent


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """An empty working folder, in which the package toy_lab can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(process, "configure", lambda: None)  # the tests' own settings hold
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "toy_lab"]:
        del sys.modules[name]


@pytest.fixture
def program(toy):
    """The program on that package: words -> exit status."""
    return lambda *words: main(words, package="toy_lab")


@pytest.fixture(scope="session")
def kept_runs(tmp_path_factory):
    """Where the files lie that runs of the toy have left."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def ran(toy, program, kept_runs):
    """Run the toy at a tier: tier -> the folder of its laptop tier. The first test that asks for it
    runs it, and the others are given the files that it left."""

    def run(tier="laptop"):
        kept = kept_runs / tier
        if kept.exists():
            shutil.copytree(kept, toy / "figures", dirs_exist_ok=True)
        else:
            assert program("run", "toy", "--tier", tier) == 0
            shutil.copytree(toy / "figures", kept)
        return toy / "figures" / "toy"

    return run


@pytest.fixture
def copies(toy, monkeypatch):
    """A package two_lab in the working folder, with copies of the toy by the names that it is
    called with: the program on it."""

    def write(*names):
        package = toy / "two_lab"
        for name in names:
            shutil.copytree(HERE / "toy_lab" / "theme" / "toy", package.joinpath(*name.split(".")))
            (package / name.split(".")[0] / "__init__.py").touch()
        shutil.copytree(HERE / "toy_lab" / "models", package / "models")
        (package / "__init__.py").write_text(f"EXPERIMENTS = {names!r}\n", encoding="utf-8")
        return lambda *words: main(words, package="two_lab")

    monkeypatch.syspath_prepend(str(toy))
    yield write
    for name in [name for name in sys.modules if name.split(".")[0] == "two_lab"]:
        del sys.modules[name]
