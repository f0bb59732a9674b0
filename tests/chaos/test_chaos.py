"""Nothing that was promised is lost: a small part of ``make chaos``, and its controls."""

import os
import subprocess
import sys

import pytest

from experiments.models import train
from lsa_lab.store import provenance, safe_files
from tools.chaos import disk, writers
from tools.chaos.disk import ROOT, Killed, Lost, watch

BY_NAME = {program.name: program for program in writers.PROGRAMS + writers.CONTROLS}
# A few of the writers, and how many failpoints are left out between two: `make chaos` tries all.
EVERY = {"checkpoint": 1, "result": 7, "grid": 3}
few = pytest.mark.parametrize("name", EVERY)


@pytest.fixture(autouse=True)
def one_commit(monkeypatch):
    """git is not asked for each of the files."""
    monkeypatch.setattr(provenance, "commit", lambda: {})


@few
def test_a_writer_that_is_killed_anywhere_leaves_what_it_promised(tmp_path, name):
    program, every = BY_NAME[name], EVERY[name]
    log, end = writers.record(program, tmp_path)
    points = writers.failpoints(log)
    assert len(points) >= 2 * len(log.calls)
    for place in points[len(points) % every :: every]:
        writers.disturb(program, tmp_path, end, place, Killed())


@few
def test_a_disk_that_is_full_from_any_call_on_leaves_what_was_promised(tmp_path, name):
    program = BY_NAME[name]
    log, end = writers.record(program, tmp_path)
    for place in range(0, 3 * len(log.calls), 3 * EVERY[name]):
        writers.disturb(program, tmp_path, end, place, writers.FULL)


@few
def test_no_state_after_a_power_cut_lacks_what_was_promised(tmp_path, name):
    program = BY_NAME[name]
    log, end = writers.record(program, tmp_path)
    assert writers.cut_power(program, tmp_path, log, end, 16, EVERY[name]) >= 5


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("in place", Killed()),
        ("in place", writers.FULL),
        ("no fsync of the file", None),
        ("no fsync of the folder", None),
    ],
)
def test_a_writer_that_is_wrong_is_caught(tmp_path, name, error):
    """The control of all of the above."""
    program = BY_NAME[name]
    log, end = writers.record(program, tmp_path)
    if error is None:
        with pytest.raises(Lost, match="were promised, and"):
            writers.cut_power(program, tmp_path, log, end, 16)
        return
    caught = 0
    for place in writers.failpoints(log):
        try:
            writers.disturb(program, tmp_path, end, place, error)
        except Lost:
            caught += 1
    assert caught >= 3


def test_what_is_removed_and_what_is_made_is_synced(tmp_path):
    (tmp_path / "file").touch()
    log = disk.Log(tmp_path, disk.tree(tmp_path))
    with watch(tmp_path, log.see):
        safe_files.remove(tmp_path / "file")
        safe_files.remove(tmp_path / "file")
        safe_files.make(tmp_path / "a" / "b")
        safe_files.make(tmp_path / "a" / "b")
    names = [f"{call.kind} {os.path.relpath(call.path, tmp_path)}" for call in log.calls]
    made = ["mkdir a", "mkdir a/b", "fsync folder .", "fsync folder a"]
    assert names == ["unlink file", "fsync folder .", *made]


def test_the_folder_of_trained_models_outlasts_a_power_cut(tmp_path, monkeypatch):
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path / "cache"))
    log = disk.Log(tmp_path, disk.tree(tmp_path))
    with watch(tmp_path, log.see):
        train.cached(writers.SPEC)
    names = [f"{call.kind} {os.path.relpath(call.path, tmp_path)}" for call in log.calls]
    assert names[-2:] == ["fsync folder .", "fsync folder cache"]


@pytest.mark.parametrize("kind", writers.KINDS.values(), ids=writers.KINDS)
def test_a_damaged_file_is_refused_or_gives_what_was_saved(tmp_path, kind):
    for way, counts in writers.outcomes(kind, tmp_path, flips=150, every=61).items():
        assert counts["refused"] >= 2, way
        assert set(counts) <= {"refused", "the same"}, (way, counts)


@pytest.mark.slow
def test_a_sweep_that_is_killed_goes_on_to_the_same_bits():
    """In processes of their own; forks of this one could wait for each other for ever."""
    words = [sys.executable, "-m", "tools.chaos", "killed", "--kills", "3"]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "ended with the same bits" in ended.stdout
