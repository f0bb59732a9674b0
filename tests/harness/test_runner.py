"""A run leaves whole files, in the folder of its own configuration, and says what moved."""

import errno
import importlib
import json
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import xarray as xr

from lsa_lab.harness.draw import pictures, style
from lsa_lab.harness.run import folders
from lsa_lab.harness.run.laboratory import experiments_of
from lsa_lab.store import checkpoints, results
from lsa_lab.training import Files, Training, fit
from lsa_lab.training.status import refuse_divergence

FILES = ["caption.txt", "config.json", "figure.pdf", "figure.png", "result.nc"]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_run_leaves_four_files_and_no_checkpoints(toy, program, capsys):
    assert program("run", "toy") == 0
    assert sorted(contents(toy / "figures" / "toy")) == FILES
    assert [path.name for path in (toy / "figures").iterdir()] == ["toy"]
    assert not list((toy / "cache" / "checkpoints").iterdir())
    facts = json.loads((toy / "figures" / "toy" / "config.json").read_text())
    assert facts["config"]["n"] == 40
    assert facts["verdicts"] == {"toy.mean": "holds", "toy.wrong": "fails", "toy.few": "undecided"}
    assert "1 hold, 1 fail, 1 undecided" in capsys.readouterr().out


def test_tiers_and_changed_configurations_go_to_folders_of_their_own(toy, program):
    assert program("run", "toy", "--tier", "smoke") == 0
    assert program("run", "toy", "--tier", "paper") == 0
    assert program("run", "all", "--tier", "smoke", "--out", "out") == 0
    assert program("run", "toy", "--config.n", "9", "--config.lengths", "1", "2") == 0
    assert program("run", "toy", "--tier", "paper", "--config.n=9") == 0
    places = {path.parent.relative_to(toy).as_posix() for path in toy.rglob("result.nc")}
    assert places == {
        "cache/smoke/toy",
        "figures/toy/paper",
        "out/toy",
        "figures/toy/n=9,lengths=1_2",
        "figures/toy/paper/n=9",
    }


def test_a_folder_for_many_changes_has_a_name_that_a_file_system_takes(toy):
    (experiment,) = experiments_of("toy_lab").values()
    kind = type(experiment.tiers["laptop"])
    names = {
        folders.folder_of(experiment, "laptop", config=kind(lengths=tuple(range(1, end)))).name
        for end in (200, 201)
    }
    assert len(names) == 2
    assert max(map(len, names)) <= 120
    assert all(name.startswith("lengths-") for name in names)


def test_a_second_run_leaves_the_same_files_alone_and_says_so(ran, toy, program, capsys):
    ran()
    folder = toy / "figures" / "toy"
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    capsys.readouterr()
    assert program("run", "toy") == 0
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    assert before == after
    told = capsys.readouterr().out
    assert "1 of 1 results are the same to the bit" in told
    assert "Verdicts that moved: none" in told


def test_a_run_names_the_results_and_verdicts_that_moved(ran, toy, program, capsys, monkeypatch):
    ran()
    capsys.readouterr()
    compute = importlib.import_module("toy_lab.theme.toy.compute")
    once = compute.compute
    monkeypatch.setattr(compute, "compute", lambda *a, **b: once(*a, **b) + 20)
    assert program("run", "toy") == 0
    told = capsys.readouterr().out
    assert "0 of 1 results are the same to the bit" in told
    assert "Other bits: toy." in told
    assert "toy.mean: holds, now fails; toy.wrong: fails, now holds" in told


@pytest.mark.parametrize("door", ["claims", "figure"])
def test_a_result_that_cannot_be_judged_leaves_the_old_one_whole(
    ran, toy, program, capsys, monkeypatch, door
):
    ran()
    folder = toy / "figures" / "toy"
    before = contents(folder)
    module = importlib.import_module(f"toy_lab.theme.toy.{door}")
    what = "numbers" if door == "claims" else "plot"
    monkeypatch.setattr(module, what, lambda dataset: {"mean": np.array([np.nan, 1.0])}[door])
    compute = importlib.import_module("toy_lab.theme.toy.compute")
    once = compute.compute
    monkeypatch.setattr(compute, "compute", lambda *a, **b: once(*a, **b) + 20)
    assert program("run", "toy") == 1
    assert contents(folder) == before
    told = capsys.readouterr().out
    assert "toy was computed but not judged" in told
    (kept,) = (toy / "figures").glob(".toy-*.new/result.nc")
    assert str(kept.relative_to(toy)) in told
    assert float(results.load(kept)["mean"].max()) > 10


def test_a_full_disk_leaves_the_old_files_and_the_message_says_where_the_new_result_lies(
    ran, toy, program, capsys, monkeypatch
):
    ran()
    folder = toy / "figures" / "toy"
    before = contents(folder)
    compute = importlib.import_module("toy_lab.theme.toy.compute")
    once, sync, synced = compute.compute, os.fsync, []
    monkeypatch.setattr(compute, "compute", lambda *a, **b: once(*a, **b) + 20)

    def full(handle):
        place = Path(os.readlink(f"/proc/self/fd/{handle}"))
        synced.extend([place] * (place.parent == folder))
        if len(synced) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        assert program("run", "toy") == 1
    assert contents(folder) == before
    said = " ".join(capsys.readouterr().out.split())
    assert "No space left on device" in said
    (kept,) = (toy / "figures").glob(".toy-*.new/result.nc")
    assert f"the new result is {kept.relative_to(toy)}" in said
    # Another configuration leaves it there; the same one takes its place.
    program("run", "toy", "--config.n", "9")
    assert kept.exists()
    assert program("run", "toy") == 0
    assert not kept.exists()


def test_drawing_again_gives_the_same_bytes_whatever_the_users_settings(ran, toy, program):
    import matplotlib

    ran()
    folder = toy / "figures" / "toy"
    before = contents(folder)
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9, "savefig.dpi": 30}):
        assert program("draw", "toy") == 0
    assert contents(folder) == before
    # Control: other data give another figure, so the comparison sees something.
    program("run", "toy", "--config.n", "5")
    other = contents(folder / "n=5")
    assert other["figure.png"] != before["figure.png"]


@pytest.mark.parametrize(
    ("words", "titles"),
    [
        ("", ["They fall", "Few rise"]),
        ("--tier paper", ["They fall", "Few rise"]),
        ("--tier smoke", ["", ""]),
        ("--config.n 5", ["", ""]),
    ],
    ids=["laptop", "paper", "smoke", "changed"],
)
def test_panels_state_a_result_only_at_the_sizes_of_a_tier(
    words, titles, toy, program, monkeypatch
):
    door = importlib.import_module("toy_lab.theme.toy.figure")

    def plot(dataset):
        picture, axes = style.figure(5, 2, (1, 2))
        axes[0].set(title="They fall")
        axes[1].set_title("Few rise")
        return picture

    drawn, save = [], pictures.save
    monkeypatch.setattr(door, "plot", plot)
    monkeypatch.setattr(pictures, "save", lambda *given: [drawn.append(given[0]), save(*given)])
    program("run", "toy", *words.split())
    (picture,) = drawn
    assert [ax.get_title() for ax in picture.axes] == titles
    assert [ax.get_title(loc="left") for ax in picture.axes] == ["a", "b"]


def test_plots_draw_from_the_file_alone(ran, toy, program, monkeypatch):
    ran()
    module = importlib.import_module("toy_lab.theme.toy.compute")
    monkeypatch.setattr(module, "compute", None)
    (toy / "figures" / "toy" / "figure.pdf").unlink()
    assert program("draw") == 0
    assert (toy / "figures" / "toy" / "figure.pdf").exists()
    assert isinstance(results.load(toy / "figures" / "toy" / "result.nc"), xr.Dataset)


def test_a_result_of_another_configuration_is_not_drawn_under_the_tiers_name(
    ran, toy, program, monkeypatch, capsys
):
    ran()
    config = importlib.import_module("toy_lab.theme.toy.config")
    monkeypatch.setitem(config.TIERS, "laptop", config.Config(scale=0.5))
    assert program("draw", "toy") == 2
    error = capsys.readouterr().err
    assert "toy" in error
    assert "scale = 1.0 in the file, scale = 0.5 here" in error


def test_a_training_that_diverges_ends_with_status_3_and_keeps_its_checkpoint(
    toy, program, monkeypatch, capsys
):
    def compute(config, models, *, progress=None, checkpoints=None):
        rate = optax.sgd(config.scale)
        training = Training(lambda w, x: ((w - x) ** 2).sum(), jax.random.normal, rate, 2000)
        run = fit(training, jnp.zeros(()), jax.random.key(0), files=Files(checkpoints / "fit"))
        refuse_divergence(run.status, "the toy", checkpoints / "fit")
        return xr.Dataset({"mean": (("run", "x"), np.full((8, 9), run.params))})

    monkeypatch.setattr(importlib.import_module("toy_lab.theme.toy.compute"), "compute", compute)
    assert program("run", "toy", "--config.scale", "2") == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "error: toy: the toy has no run left: its run diverged at step " in said
    assert all(f"({number}) " in said for number in (1, 2, 3))
    assert "a tenth of the learning rate" in said
    (kept,) = (toy / "cache" / "checkpoints").glob("*/fit")
    assert str(kept) in said
    params = checkpoints.unpacked(kept.read_bytes(), kept)[1][".state.params"]
    assert np.isfinite(params).all()
    assert not list(toy.rglob("result.nc"))
    # Control: with steps that are not too long nothing diverges, and the toy is judged.
    assert program("run", "toy", "--config.scale", "0.1") == 0
