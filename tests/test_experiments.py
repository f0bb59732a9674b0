"""The experiments run, and what they leave behind can be read, drawn and judged again."""

import importlib
import io
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import experiments
from experiments import EXPERIMENTS
from lsa_lab import results
from lsa_lab.harness import checks, process, progress, report, runner, style
from lsa_lab.harness.command_line import main

ROOT = Path(__file__).resolve().parents[1]
TOY = Path(__file__).parent / "toy_experiment"
QUESTION = "Does the mean of n numbers approach zero | like 1 / √n?"


@pytest.fixture(scope="session")
def trained_models(tmp_path_factory):
    """A cache of this session: several experiments look into the same models."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_smoke_tier_runs(name, tmp_path, trained_models, monkeypatch):
    monkeypatch.setenv("LSA_LAB_CACHE", str(trained_models))
    experiment = importlib.import_module(f"experiments.{name}")
    job = runner.Job(name, "smoke", experiment.TIERS["smoke"], tmp_path / name)
    facts = runner.run_one(job)
    assert facts["verdicts"], "an experiment claims something"
    assert all(claim.startswith(f"{name}.") for claim in facts["verdicts"])
    drawn = (tmp_path / name / "figure.pdf").read_bytes()
    runner.draw(name, tmp_path / name)
    assert (tmp_path / name / "figure.pdf").read_bytes() == drawn


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_three_tiers_and_a_question(name):
    tiers = importlib.import_module(f"experiments.configs.{name}").TIERS
    assert list(tiers) == ["smoke", "laptop", "paper"]
    assert EXPERIMENTS[name].endswith("?")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_committed_results_are_small_and_of_the_declared_configuration(name):
    tiers = importlib.import_module(f"experiments.configs.{name}").TIERS
    for tier in ("laptop", "paper"):
        folder = runner.folder_of(name, tier)
        if (folder / "result.nc").exists():
            results.load(folder / "result.nc", config=tiers[tier])
            assert max(f.stat().st_size for f in folder.iterdir() if f.is_file()) < 1 << 20


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A small experiment in place of the real ones, and folders of its own for everything."""
    for name in list(EXPERIMENTS):
        monkeypatch.delitem(EXPERIMENTS, name)
    monkeypatch.setitem(EXPERIMENTS, "toy", QUESTION)
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(TOY)])
    configs = importlib.import_module("experiments.configs")
    monkeypatch.setattr(configs, "__path__", [*configs.__path__, str(TOY / "configs")])
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(runner, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(process, "ROOT", tmp_path)
    monkeypatch.setattr(process, "configure", lambda: None)  # the tests' own settings hold
    yield tmp_path
    for name in ("toy", "configs.toy"):
        sys.modules.pop(f"experiments.{name}", None)


def test_run_leaves_four_files_and_no_checkpoints(toy, capsys):
    assert main(["run", "toy"]) == 0
    files = sorted(path.name for path in (toy / "figures" / "toy").iterdir())
    assert files == ["config.json", "figure.pdf", "figure.png", "result.nc"]
    assert not list((toy / "cache" / "checkpoints").iterdir())
    facts = json.loads((toy / "figures" / "toy" / "config.json").read_text())
    assert facts["config"]["n"] == 40
    assert facts["verdicts"] == {"toy.mean": "holds", "toy.wrong": "fails", "toy.few": "undecided"}
    assert "1 hold, 1 fail, 1 undecided" in capsys.readouterr().out


def test_tiers_go_to_their_own_folders(toy):
    assert main(["run", "toy", "--tier", "smoke"]) == 0
    assert main(["run", "toy", "--tier", "paper"]) == 0
    assert main(["run", "all", "--tier", "smoke", "--out", str(toy / "out")]) == 0
    found = {path.relative_to(toy).as_posix() for path in toy.rglob("result.nc")}
    assert found == {
        "cache/smoke/toy/result.nc",
        "figures/toy/paper/result.nc",
        "out/toy/result.nc",
    }


def test_an_override_changes_one_value_of_the_tier(toy):
    words = ["--config.n", "6", "--config.lengths", "2", "3", "--config.scale=-0.5"]
    assert main(["run", "toy", *words, "--config.bold", "True", "--out", str(toy / "out")]) == 0
    settings = results.config_of(results.load(toy / "out" / "toy" / "result.nc"))
    assert vars(settings) == {
        "n": 6,
        "d": 5,
        "sparsity": 2,
        "heads": 1,
        "lengths": [2, 3],
        "scale": -0.5,
        "kind": "normal",
        "bold": True,
        "seed": 0,
    }


REFUSED = {
    "run": ("run needs a NAME", "toy"),
    "runn toy": ("'runn'", "nearest 'run'"),
    "run toi": ("'toi'", "nearest 'toy'"),
    "run toy --tier laptob": ("'laptob'", "nearest 'laptop'"),
    "run toy --teir smoke": ("--teir smoke", "nearest --tier"),
    "run toy --nn 3": ("--nn 3", "nearest --config.n"),
    "run toy --config.nn 3": ("--config.nn 3", "nearest --config.n;", "sparsity"),
    "run toy --config.n": ("--config.n", "nearest 40"),
    "run toy --config.n x": ("--config.n x", "whole number", "nearest 40"),
    "run toy --config.n 2.6": ("--config.n 2.6", "whole number", "nearest 3"),
    "run toy --config.n 0": ("--config.n = 0", "at least 1", "nearest 1"),
    "run toy --config.n nan": ("--config.n nan", "nearest 40"),
    "run toy --config.sparsity 9": ("--config.sparsity = 9", "nearest 5"),
    "run toy --config.heads 3": ("--config.heads = 3", "divisor of n = 40", "nearest 2"),
    "run toy --config.scale nan": ("--config.scale nan", "finite number", "nearest 1.0"),
    "run toy --config.scale 7": ("--config.scale = 7.0", "nearest 2"),
    "run toy --config.lengths 3 0": ("--config.lengths[1] = 0", "nearest 1"),
    "run toy --config.lengths 3 b": ("--config.lengths b", "whole number"),
    "run toy --config.kind nomal": ("--config.kind = 'nomal'", "nearest normal"),
    "run toy --config.seed -1": ("--config.seed = -1", "nearest 0"),
    f"run toy --config.seed {2**63}": (f"nearest {2**63 - 1}",),
    "run toy --config.n 3 all": ("--config.n all", "whole number"),
    "run --config.n=3": ("run needs a NAME",),
    "draw --config.n 3": ("--config.n is for run",),
    "draw toy": ("no result of toy",),
    "report toy": ("leave out toy",),
}


def test_a_wrong_command_is_refused_before_jax_is_imported_and_leaves_nothing(tmp_path):
    program = f"""if True:
        import contextlib, io, json, sys, time
        import experiments, experiments.configs
        from experiments import __main__, runner
        from pathlib import Path
        experiments.EXPERIMENTS.clear()
        experiments.EXPERIMENTS["toy"] = "?"
        experiments.__path__.append({str(TOY)!r})
        experiments.configs.__path__.append({str(TOY / "configs")!r})
        runner.FIGURES = Path("figures")
        said = []
        for line in {list(REFUSED)!r}:
            start = time.perf_counter()
            with contextlib.redirect_stderr(io.StringIO()) as errors:
                try:
                    code = __main__.main(line.split())
                except SystemExit as end:
                    code = end.code
            said.append([line, code, errors.getvalue()])
        print(json.dumps([said, "jax" in sys.modules]))
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LSA_LAB_CACHE": "cache"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    said, jax_is_there = json.loads(done.stdout)
    for line, code, errors in said:
        assert code == 2, (line, errors)
        for part in REFUSED[line]:
            assert part in errors, line
    assert not jax_is_there
    assert not list(tmp_path.iterdir())


def test_ctrl_c_says_how_to_go_on_and_keeps_the_checkpoints(toy, capsys, monkeypatch):
    words = ["run", "toy", "--config.n", "13", "--out", str(toy / "out")]
    monkeypatch.setenv("TOY_INTERRUPT", "1")
    assert main(words) == 130
    told = capsys.readouterr().err
    assert f"run toy --tier laptop --out {toy / 'out'} --config.n 13" in told
    assert [path.name for path in (toy / "cache" / "checkpoints").rglob("half")] == ["half"]
    monkeypatch.delenv("TOY_INTERRUPT")
    assert main(words) == 0
    facts = json.loads((toy / "out" / "toy" / "config.json").read_text())
    assert facts["wall_time"] is None, "the time of the first part is not known"
    assert not list((toy / "cache" / "checkpoints").iterdir())


def test_drawing_again_gives_the_same_bytes_whatever_the_users_settings(toy):
    import matplotlib

    main(["run", "toy"])
    folder = toy / "figures" / "toy"
    before = [(folder / name).read_bytes() for name in ("figure.pdf", "figure.png")]
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9, "savefig.dpi": 30}):
        assert main(["draw", "toy"]) == 0
    assert before == [(folder / name).read_bytes() for name in ("figure.pdf", "figure.png")]
    # Control: other data give another figure, so the comparison sees something.
    main(["run", "toy", "--config.n", "5"])
    assert before != [(folder / name).read_bytes() for name in ("figure.pdf", "figure.png")]


def test_the_list_tells_the_last_verdicts(toy, capsys):
    main(["run", "toy"])
    capsys.readouterr()
    assert main([]) == 0
    told = capsys.readouterr().out
    assert QUESTION in told
    assert "1 hold, 1 fail, 1 undecided" in told
    assert told.count("not run yet") == 2


def test_the_report_is_complete_and_needs_no_network(toy, monkeypatch):
    main(["run", "toy", "--config.d", "7"])
    readme = toy / "README.md"
    readme.write_text(f"before\n{report.BEGIN}\nyesterday\n{report.END}\nafter\n", encoding="utf-8")
    assert main(["report"]) == 0
    page = (toy / "figures" / "index.html").read_text(encoding="utf-8")
    assert "http" not in page
    assert "<script" not in page
    for link in ("figure.png", "figure.pdf", "result.nc", "config.json"):
        assert f'"toy/{link}"' in page
        assert (toy / "figures" / "toy" / link).exists()
    assert "a &lt; b" in page
    assert "d = 7, declared 5" in page
    table = (toy / "figures" / "CLAIMS.md").read_text(encoding="utf-8")
    assert "d = 7, declared 5" in table
    for verdict in ("holds", "fails", "undecided"):
        assert f"**{verdict}** |" in table
        assert f'class="verdict {verdict}"' in page
    assert "a \\| b" in table
    text = readme.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "yesterday" not in text
    assert text.count("**holds**") == 1
    main(["report"])
    assert readme.read_text(encoding="utf-8") == text


def test_an_entry_point_leaves_the_users_settings_alone(monkeypatch):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    monkeypatch.setattr(process, "cores", lambda: 64)
    process.set_environment()
    flag = "--xla_force_host_platform_device_count"
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert os.environ["MKL_NUM_THREADS"] == "1"
    assert os.environ["XLA_FLAGS"].startswith(f"--xla_cpu_enable_fast_math=false {flag}=8 ")
    once = os.environ["XLA_FLAGS"]
    process.set_environment()
    assert os.environ["XLA_FLAGS"] == once
    monkeypatch.setenv("XLA_FLAGS", f"{flag}=3")
    process.set_environment()
    assert os.environ["XLA_FLAGS"].count(flag) == 1


def test_the_time_left_is_what_each_took_last_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    clock = progress.Clock([10.0, None, 30.0])
    clock.begin()
    now[0] = 4.0
    assert clock.left() == 6 + 20 + 30
    clock.begin()
    now[0] = 100.0
    assert clock.left() == 30
    assert progress.Clock([None, None]).left() is None


def test_without_a_terminal_progress_is_plain_lines(monkeypatch, capsys):
    from rich.console import Console

    monkeypatch.setattr(progress, "EVERY", 0.01)
    with progress.bars(Console(file=io.StringIO())) as bars:
        task = bars.add_task("toy [brackets]", total=4)
        bars.update(task, completed=1)
        progress.time.sleep(0.2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("toy [brackets]: 25 %, 0:00:00 elapsed")


def test_a_band_counts_what_it_does_not_draw():
    ax = style.figure(3, 2)[1][0]
    samples = np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.inf]])
    assert style.band(ax, [1, 2, 3], samples) == 3
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1, 2])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [2, 5])
    with pytest.raises(ValueError, match=r"expected \[R, 3\], runs first"):
        style.band(ax, [1, 2, 3], samples.T)
    assert len(style.figure(3, 2, (2, 2))[1]) == 4


def test_no_figure_is_made_with_pyplot():
    for path in (ROOT / "experiments").rglob("*.py"):
        assert "pyplot" not in path.read_text("utf-8").replace("without pyplot", ""), path


@pytest.mark.parametrize("value", [True, "3", None, math.nan, math.inf])
def test_a_value_of_the_wrong_kind_is_refused_in_python_too(toy, value):
    config = importlib.import_module("experiments.configs.toy").Config
    with pytest.raises(
        ValueError, match=r"n = .*: choose a whole number and at least 1; nearest 1"
    ):
        config(n=value)
    with pytest.raises(ValueError, match="choose a tuple of at least one number"):
        config(lengths=())


def test_the_nearest_choice_is_a_choice():
    assert checks.nearest(7, [1, 5, 20]) == 5
    assert checks.nearest("laptob", ["smoke", "laptop"]) == "laptop"
    assert checks.nearest("zzz", ["smoke", "laptop"]) in ("smoke", "laptop")


def test_two_claims_with_one_id_are_refused(toy, monkeypatch):
    main(["run", "toy"])
    module = importlib.import_module("experiments.toy")
    once = module.claims
    monkeypatch.setattr(module, "claims", lambda dataset: once(dataset) * 2)
    with pytest.raises(ValueError, match="two claims have the same id"):
        report.collect(toy / "figures")


def test_plots_draw_from_the_file_alone(toy, monkeypatch):
    main(["run", "toy"])
    module = importlib.import_module("experiments.toy")
    monkeypatch.setattr(module, "compute", None)
    shutil.rmtree(toy / "cache")
    (toy / "figures" / "toy" / "figure.pdf").unlink()
    assert main(["draw"]) == 0
    assert (toy / "figures" / "toy" / "figure.pdf").exists()
    assert isinstance(results.load(toy / "figures" / "toy" / "result.nc"), xr.Dataset)
