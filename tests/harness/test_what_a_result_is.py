"""A result says what it is: another one in its place is refused by all that show or draw it."""

import dataclasses
import importlib
import json
import os
import re
import shutil
import subprocess

import pytest

from lsa_lab.harness.draw import pictures
from lsa_lab.harness.run import records, runner
from lsa_lab.store import provenance, results, safe_files

SHOWING = (("list",), ("draw", "all"), ("report",))


def refused(program, capsys, words):
    """Whether each command that shows or draws results says so."""
    capsys.readouterr()
    for command in SHOWING:
        assert program(*command) in (1, 2), command
        assert words in capsys.readouterr().err, command


def saved_again(file, change=lambda dataset: dataset, **attributes):
    """A result with other numbers or attributes, by the library's own hand."""
    dataset = results.load(file)
    facts = json.loads(dataset.attrs["config"])
    origin = {name: dataset.attrs[name] for name in ("experiment", "tier", "package")}
    new = change(dataset.drop_attrs(deep=False))
    results.save(new, file, config=facts, origin=origin | attributes)


def test_a_twins_result_is_refused_in_another_experiments_folder(toy, copies, capsys):
    program, figures = copies("theme.one", "theme.two"), toy / "figures"
    program("run", "all")
    shutil.copy(figures / "one" / "result.nc", figures / "two" / "result.nc")
    refused(program, capsys, "two/result.nc is not the file that config.json beside it was")
    shutil.copy(figures / "one" / "config.json", figures / "two" / "config.json")
    refused(program, capsys, "figures/two holds the experiment one: run two")
    (figures / "two" / "config.json").unlink()
    capsys.readouterr()
    assert program("report") == 1
    assert program("draw", "all") == 1
    assert capsys.readouterr().err.count("figures/two holds the experiment one: run two") == 2


def test_other_numbers_under_an_old_verdict_are_refused(ran, toy, program, capsys):
    ran()
    saved_again(toy / "figures" / "toy" / "result.nc", lambda dataset: dataset + 100)
    refused(program, capsys, "is not the file that config.json beside it was written for")
    assert program("run", "toy") == 0
    assert program("list") == 0


def test_a_record_that_was_edited_is_refused(ran, toy, program, capsys):
    ran()
    file = toy / "figures" / "toy" / "config.json"
    text = file.read_text("utf-8")
    file.write_text(text.replace('toy.wrong": "fails"', 'toy.wrong": "holds"'), "utf-8")
    refused(program, capsys, "it is not as it was written")


def test_verdicts_of_another_claims_door_are_not_shown(toy, copies, capsys):
    program = copies("theme.one")
    program("run", "one")
    door = toy / "two_lab" / "theme" / "one" / "claims.py"
    text = door.read_text("utf-8")
    door.write_text(text.replace("means: means,", "means: means + 100,"), "utf-8")
    capsys.readouterr()
    program("list")
    assert "?: one: criteria have changed" in capsys.readouterr().out


def test_a_record_names_the_methods_and_the_file_that_they_judge(ran, toy):
    ran()
    folder = toy / "figures" / "toy"
    record = records.last_run(folder)
    assert record["methods"] == {
        "mean": "Student's interval of the mean",
        "median": "order statistics",
    }
    assert record["confidence"] == 0.95
    assert record["result"] == results.digest(folder / "result.nc")


def test_another_package_names_its_own_commit(toy, copies):
    program, package = copies("theme.one"), toy / "two_lab"

    def git(*words):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        subprocess.run(command, cwd=package, check=True, capture_output=True)

    for words in (("init",), ("add", "."), ("commit", "-m", "one")):
        git(*words)
    (package / "weights.npz").write_bytes(b"of one's own")
    program("run", "one")
    facts = results.load(toy / "figures" / "one" / "result.nc").attrs
    assert (facts["package"], facts["experiment"], facts["tier"]) == ("two_lab", "one", "laptop")
    assert facts["package_dirty"] == 1, "weights count"
    assert facts["package_commit"] not in ("", facts.get("git_commit"))
    program("report")
    page = (toy / "figures" / "one" / "README.md").read_text("utf-8")
    commit = facts["package_commit"]
    assert f"- package: two_lab, commit {commit}, with uncommitted changes\n" in page


def test_a_result_names_the_weights_that_it_rests_on(toy, program, monkeypatch):
    model = dataclasses.make_dataclass("Model", ["digest"])("ab" * 32)
    trained = importlib.import_module("toy_lab.models.trained")
    monkeypatch.setattr(trained, "resolve", lambda *_, **__: {"small": model})
    program("run", "toy")
    program("report")
    facts = results.load(toy / "figures" / "toy" / "result.nc").attrs
    assert json.loads(facts["weights"]) == {"small": "ab" * 32}
    assert "- weights: small abababababababab\n" in (
        toy / "figures" / "toy" / "README.md"
    ).read_text("utf-8")


def test_a_result_of_before_says_that_this_is_not_recorded(toy, program, monkeypatch):
    monkeypatch.setattr(runner, "_origin", lambda job: {})
    monkeypatch.setattr(provenance, "commit", dict)
    program("run", "toy")
    file = toy / "figures" / "toy" / "config.json"
    record = json.loads(file.read_text("utf-8"))
    new = ("result", "claims", "methods", "record", "package")
    old = {name: value for name, value in record.items() if name not in new}
    file.write_text(json.dumps(old), "utf-8")
    assert program("list") == 0
    assert program("report") == 0
    page = (toy / "figures" / "toy" / "README.md").read_text("utf-8")
    assert "- package: toy_lab, commit not recorded\n" in page
    assert "- weights: not recorded\n" in page
    assert set(new) - {"package"} <= json.loads(file.read_text("utf-8")).keys()


def test_a_picture_of_other_data_is_drawn_again(ran, toy, program):
    ran()
    folder = toy / "figures" / "toy"
    data = results.load(folder / "result.nc").attrs["contents_sha256"]
    assert pictures.data_of(folder / "figure.png") == data
    assert f"sha256 {data}".encode() in (folder / "figure.pdf").read_bytes()
    right = (folder / "figure.png").read_bytes()
    (folder / "figure.png").write_bytes(right.replace(data.encode(), b"0" * 64))
    assert program("report") == 0
    assert (folder / "figure.png").read_bytes() == right


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("result.nc", "link"),
        ("config.json", "link"),
        ("config.json", "pipe"),
        ("caption.txt", "pipe"),
        ("figure.png", "large"),
    ],
)
def test_what_is_no_plain_file_is_named_and_not_read(
    ran, toy, program, capsys, kind, name, monkeypatch
):
    ran()
    file, kept = toy / "figures" / "toy" / name, toy / "kept"
    monkeypatch.setattr(safe_files, "MOST", 10_000_000)
    shutil.move(file, kept)
    if kind == "link":
        file.symlink_to(kept)
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        with file.open("wb") as opened:
            opened.truncate(10_000_001)
    refused(program, capsys, f"{name} is a link, a pipe, a device or beyond")
    assert program("run", "toy") == 0
    assert file.is_file()
    assert not file.is_symlink()


def test_texts_of_a_file_are_no_markup_on_its_page(toy, program, monkeypatch):
    facts = provenance.facts
    own = {"device": "<b>x</b> [a](https://b) `c` *d* $e$\n# f"}
    monkeypatch.setattr(provenance, "facts", lambda: facts() | own)
    program("run", "toy")
    program("report")
    page = (toy / "figures" / "toy" / "README.md").read_text("utf-8")
    (line,) = re.findall("^- device: (.*)$", page, re.MULTILINE)
    assert line.endswith(r"\<b\>x\</b\> \[a\](https:\//b) \`c\` \*d\* \$e\$ # f")
