"""A mutant is met where its module is imported, and nothing is written."""

import importlib
import sys

import trials


def test_a_mutant_is_imported_in_place_of_its_file_which_stays_as_it_is(tmp_path, monkeypatch):
    path, source = tmp_path / "toy_to_mutate" / "doubles.py", "def double(x):\n    return 2 * x\n"
    path.parent.mkdir()
    for name in ("__init__.py", "halves.py", "doubles.py"):
        path.with_name(name).write_text(source)
    mutant = trials.Mutant(path, source.replace("2", "3"), tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [mutant, *sys.meta_path])
    modules = [importlib.import_module(f"toy_to_mutate.{name}") for name in ("doubles", "halves")]
    assert [module.double(1) for module in modules] == [3, 2]
    assert path.read_text() == source


def test_a_text_says_a_public_name_as_a_word():
    assert trials.says("ols", "risk.ols(5, 3, 1.0)")
    assert not trials.says("ols", "tools")
    assert not trials.says("_ols", "risk._ols(5)")
    assert not trials.says(None, "None")
