"""Nothing that was promised is lost: a small part of ``make chaos``, and its controls."""

import os
import random
import subprocess
import sys

import pytest

from experiments.models import train
from lsa_lab.store import provenance, safe_files
from tools.chaos import damage, disk, divergence, interruption, soak, whole_run, writers
from tools.chaos.calls import watched
from tools.chaos.lost import ROOT, Lost

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
    log, end = interruption.recorded(program, tmp_path)
    points = [place for _, place in interruption.failpoints(log)]
    assert len(points) >= 2 * len(log.calls)
    for place in points[len(points) % every :: every]:
        interruption.killed(program, tmp_path, end, place)


@few
def test_a_disk_that_is_full_from_any_call_on_leaves_what_was_promised(tmp_path, name):
    program = BY_NAME[name]
    log, end = interruption.recorded(program, tmp_path)
    for place in range(0, len(log.calls), EVERY[name]):
        interruption.failed(program, tmp_path, end, place)


@few
def test_no_state_after_a_power_cut_lacks_what_was_promised(tmp_path, name):
    program = BY_NAME[name]
    log, end = interruption.recorded(program, tmp_path)
    assert interruption.power_cuts(program, tmp_path, log, end, 16, EVERY[name]) >= 5


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("in place", "killed"),
        ("in place", "failed"),
        ("no fsync of the file", "power_cuts"),
        ("no fsync of the folder", "power_cuts"),
    ],
)
def test_a_writer_that_is_wrong_is_caught(tmp_path, name, ends):
    """The control of all of the above."""
    program = BY_NAME[name]
    log, end = interruption.recorded(program, tmp_path)
    if ends == "power_cuts":
        with pytest.raises(Lost, match="were promised, and"):
            interruption.power_cuts(program, tmp_path, log, end, 16)
        return
    caught = 0
    for _, place in interruption.failpoints(log):
        try:
            getattr(interruption, ends)(program, tmp_path, end, place)
        except Lost:
            caught += 1
    assert caught >= 3


def test_what_is_removed_and_what_is_made_is_synced(tmp_path):
    (tmp_path / "file").touch()
    log = disk.Log(tmp_path, disk.tree(tmp_path))
    with watched(tmp_path, log.see):
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
    with watched(tmp_path, log.see):
        train.cached(writers.SPEC)
    names = [f"{call.kind} {os.path.relpath(call.path, tmp_path)}" for call in log.calls]
    assert names[-2:] == ["fsync folder .", "fsync folder cache"]


@pytest.mark.parametrize("kind", damage.KINDS, ids=lambda kind: kind.name)
def test_a_damaged_file_is_refused_or_gives_what_was_saved(tmp_path, kind):
    for way, counts in damage.outcomes(kind, tmp_path, flips=150, every=61).items():
        assert counts["refused"] >= 2, way
        assert set(counts) <= {"refused", "the same"}, (way, counts)


def test_what_is_not_finite_is_named_with_step_and_leaf_and_nothing_else_is(tmp_path):
    assert divergence.diverging(2, tmp_path / "bad") == 36
    assert divergence.healthy(20) == 20


def test_a_divergence_that_is_named_wrongly_is_caught(tmp_path, monkeypatch):
    """The control: as if only the loss were looked at, and as if large numbers were not finite."""
    with monkeypatch.context() as patch:
        patch.setattr(divergence, "LEAVES", ("loss",) * 6)
        with pytest.raises(Lost, match="gradient of a at step"):
            divergence.diverging(1, tmp_path / "bad")
    monkeypatch.setattr(divergence, "NEVER", divergence.STEPS - 1)
    with pytest.raises(Lost, match="a healthy training: diverged at step 59"):
        divergence.healthy(20)


class Small(subprocess.Popen):
    """A process that does this after a second, whatever it was asked for."""

    act = ""

    def __init__(self, words, **how):
        super().__init__([sys.executable, "-c", f"import time; time.sleep(1); {self.act}"], **how)


class Late(Small):
    """The same, and a kill meets it when it is over."""

    def kill(self):
        self.wait()
        super().kill()


def kills_of_a_soak(folder, monkeypatch):
    waits = iter((0.5, 1e9))
    monkeypatch.setattr(soak, "_soon", lambda *_: next(waits))
    pair = soak.Pair(folder / "calm", folder / "killed", beats=6, minutes=1)
    pair.run(random.Random(0))
    return pair.kills.total()


def kills_of_a_whole_run(folder, monkeypatch):
    return whole_run._run(folder / "run", 0.5)


@pytest.mark.parametrize("kills_of", [kills_of_a_soak, kills_of_a_whole_run])
def test_only_a_process_that_was_killed_is_counted_as_killed(tmp_path, monkeypatch, kills_of):
    monkeypatch.setattr(subprocess, "Popen", Small)
    assert kills_of(tmp_path, monkeypatch) == 1
    monkeypatch.setattr(subprocess, "Popen", Late)
    assert kills_of(tmp_path, monkeypatch) == 0
    monkeypatch.setattr(Small, "act", "raise SystemExit('a fault of its own')")
    with pytest.raises(Lost, match="ends with 1: a fault of its own"):
        kills_of(tmp_path, monkeypatch)


@pytest.mark.slow
def test_a_sweep_that_is_killed_goes_on_to_the_same_bits():
    """In processes of their own; forks of this one could wait for each other for ever."""
    words = [sys.executable, "-m", "tools.chaos", "killed", "--kills", "3"]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "sweeps that ended with the same bits" in ended.stdout
