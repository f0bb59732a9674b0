"""A sweep is cells that are runs, and one Dataset of what is judged; two results are compared."""

import importlib
import json

import numpy as np
import pytest

from lsa_lab.harness.draw import pictures
from lsa_lab.judging.statements import Statement
from lsa_lab.store import provenance, results

WORDS = ("run", "toy", "--sweep", "config.n=5,10", "--sweep", "scale=0.5,1,2", "--config.d", "4")


def test_a_sweep_is_one_dataset_with_the_swept_axes_and_its_cells_are_kept(
    toy, program, capsys, monkeypatch
):
    assert program(*WORDS) == 0
    told = capsys.readouterr().out
    assert told.startswith("toy (laptop), a sweep of 6 cells: Does the mean")
    assert "n = 10, scale = 2.0: 0." in told
    (folder,) = (toy / "figures" / "toy" / "d=4").iterdir()
    assert folder.name == "sweep,n=5_10,scale=0.5_1.0_2.0"
    assert (folder / "figure.png").exists()
    whole = results.load(folder / "result.nc")
    assert whole["value"].sizes == {"n": 2, "scale": 3, "claim": 3}
    assert whole["mean"].sizes == {"n": 2, "scale": 3, "run": 8, "x": 9}
    cell = results.load(folder / "n=10,scale=2.0" / "result.nc")
    place = whole.sel(n=10, scale=2.0)
    np.testing.assert_array_equal(place["mean"], cell["mean"])
    np.testing.assert_allclose(place["value"].sel(claim="mean"), cell["mean"][:, 1:].mean())
    assert place["verdict"].values.tolist() == ["holds", "fails", "undecided"]
    assert place["interval_low"].sel(claim="mean") < place["value"].sel(claim="mean")
    # Begun again it computes what is not there.
    (folder / "n=5,scale=0.5" / "result.nc").unlink()
    module, computed = importlib.import_module("toy_lab.theme.toy.compute"), []
    usual = module.compute

    def compute(config, *rest, **handed):
        computed.append(config.n)
        return usual(config, *rest, **handed)

    monkeypatch.setattr(module, "compute", compute)
    assert program(*WORDS) == 0
    assert computed == [5]
    assert capsys.readouterr().out.count(": kept; ") == 5
    again = results.load(folder / "result.nc")
    assert again.attrs["contents_sha256"] == whole.attrs["contents_sha256"]
    assert not list((toy / "cache" / "checkpoints").iterdir())


def test_a_sweeps_picture_has_the_bound_and_what_is_measured(toy, program, monkeypatch):
    door = importlib.import_module("toy_lab.theme.toy.claims")

    def statements(config):
        below = dict(measured="the mean", sample=lambda means: means, statistic="median")
        return (
            Statement("fixed", "ours", f"It is small at n = {config.n}, d = 5", at_most=9, **below),
            Statement("moves", "ours", "It is near", at_least=-config.n, **below),
            Statement("free", "ours", "It is told", unjudged="it is free", **below),
        )

    drawn, save = [], pictures.save
    monkeypatch.setattr(door, "statements", statements)
    monkeypatch.setattr(pictures, "save", lambda *given: [drawn.append(given[0]), save(*given)])
    assert program("run", "toy", "--sweep", "n=5,10") == 0
    fixed, moves, free = drawn[-1].axes
    assert [ax.get_title().replace("\n", " ") for ax in (fixed, moves, free)] == [
        "Judged: It is small, d = 5",
        "Judged: It is near",
        "Judged: It is told",
    ]
    for ax in (fixed, moves, free):
        assert ax.get_ylabel() == "median over runs of the mean\n95 % interval"
    dashed = [[x.get_ydata()[0] for x in ax.lines if x.get_ls() == "--"] for ax in drawn[-1].axes]
    assert dashed == [[9], [], []]  # a bound that moves with the swept key is no line


def test_a_cell_that_diverged_or_cannot_be_judged_is_a_gap(toy, program, capsys, monkeypatch):
    module = importlib.import_module("toy_lab.theme.toy.compute")
    status = importlib.import_module("lsa_lab.training.status")
    usual = module.compute

    def compute(config, *rest, **handed):
        if config.n == 5:
            raise status.DivergedError("no run is left")
        dataset = usual(config, *rest, **handed) * (np.nan if config.n == 6 else 1)
        return dataset.assign(status=("run", ["done"] * 8), whole=("run", [True] * 8))

    monkeypatch.setattr(module, "compute", compute)
    assert program("run", "toy", "--sweep", "n=5,6,7") == 3
    told = capsys.readouterr().out
    assert "error: n = 5: no run is left" in told
    assert "error: n = 6 is not judged: " in told
    whole = results.load(next((toy / "figures" / "toy").glob("sweep*/result.nc")))
    assert np.isnan(whole["value"].sel(n=[5, 6])).all()
    assert whole["verdict"].sel(n=5, claim="mean").item() == ""
    assert whole["verdict"].sel(n=7, claim="mean").item() == "holds"
    assert whole["status"].values[:, 0].tolist() == ["", "", "done"]
    assert whole["whole"].sel(n=7).all()


def test_an_interrupted_sweep_says_the_words_that_go_on(toy, program, capsys, monkeypatch):
    monkeypatch.setenv("TOY_INTERRUPT", "Ctrl-C")
    assert program(*WORDS) == 130
    go_on = "run toy --tier laptop --sweep config.n=5,10 --sweep scale=0.5,1,2 --package toy_lab"
    assert f"{go_on} --config.d 4" in capsys.readouterr().err


def test_two_results_are_compared_by_keys_verdicts_and_arrays(ran, toy, program, capsys):
    ran()
    program("run", "toy", "--config.n", "3", "--config.scale", "0.5")
    capsys.readouterr()
    assert program("compare", "toy", "figures/toy") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[1].split(" of ")[0] for line in lines] == [" 0"] * 3
    assert program("compare", "toy", "toy/n=3,scale=0.5") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:3] == [["n", "40", "3"], ["scale", "1.0", "0.5"]]
    assert lines[-1][:4] == ["mean", "largest", "relative", "difference"]


def test_all_results_of_an_experiment_stand_side_by_side(ran, toy, program, capsys):
    ran()
    program("run", "toy", "--config.n", "3")
    capsys.readouterr()
    assert program("compare", "toy") == 0
    first, second, head, *rows = capsys.readouterr().out.splitlines()
    assert (first, second) == ("1: toy", "2: toy/n=3")
    assert head.split() == ["claim", "1", "2"]
    own = {row.split()[0]: row.split()[1:] for row in rows}
    assert [word for word in own["mean"] if word.isalpha()] == ["holds", "holds"]


@pytest.mark.parametrize("tier", ["smoke", "laptop"])
def test_a_run_says_what_it_found_what_failed_and_why(toy, program, capsys, tier):
    assert program("run", "toy", "--tier", tier) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "It does | nearly. fails: It is large. Its criterion: mean over runs of the mean" in told
    assert "of the mean >= 9; it is -" in told
    assert "undecided, for too few runs: few" in told
    assert ("too small to judge by" in told) == (tier == "smoke")
    assert ("report, then figures/toy/index.html" in told) == (tier == "laptop")


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1.0, "the same to the bit"),
        (1 + 1e-9, "the same within rounding, largest relative difference 1e-09"),
        (2.0, "differs, by 0.5 of its size in mean"),
    ],
)
def test_a_reproduction_is_compared_and_leaves_what_is_committed_alone(
    ran, toy, program, capsys, factor, words
):
    ran()
    file = toy / "figures" / "toy" / "result.nc"
    committed = results.load(file)
    config = json.loads(committed.attrs["config"])
    results.save(committed * factor, file, config=config, wall_time=1.0)
    before = {path: path.read_bytes() for path in file.parent.iterdir()}
    assert program("run", "toy", "--beside") == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"toy: {words}"
    assert {path: path.read_bytes() for path in file.parent.iterdir()} == before
    assert (toy / "cache" / "reproduced" / "toy" / "result.nc").exists()


def test_what_this_commit_has_reproduced_is_not_computed_again(toy, program, capsys, monkeypatch):
    commit = {"git_commit": "0" * 40, "git_dirty": 0}
    monkeypatch.setattr(provenance, "commit", lambda *_: commit)
    for count in (0, 1):
        assert program("run", "toy", "--beside") == 0
        assert capsys.readouterr().out.count("toy: not computed again") == count
    commit["git_dirty"] = 1
    program("run", "toy", "--beside")
    assert "not computed again" not in capsys.readouterr().out


def test_a_reproduction_of_another_configuration_is_refused(toy, program, capsys):
    assert program("run", "toy", "--beside", "--config.n", "3") == 2
    assert "leave out --out and other keys" in capsys.readouterr().err
