"""What a command line is refused for, and how a person is told to go on."""

import dataclasses
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import lsa_lab
from experiments import EXPERIMENTS
from lsa_lab.harness.cli.command_line import main, program_name
from lsa_lab.store import results

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent

REFUSED = {
    "run": ("run needs a NAME, toy, ... or all", "list has them"),
    "runn toy": ("'runn'", "nearest 'run'"),
    "run toi": ("'toi'", "package toy_lab", "nearest toy or all;", "list has all 1"),
    "run toy --tier laptob": ("'laptob'", "nearest 'laptop'"),
    "run toy --teir smoke": ("--teir", "nearest --tier"),
    "run toy --nn 3": ("--nn", "nearest --config.n"),
    "run toy --config.nn 3": ("--config.nn 3", "nearest --config.n;", "sparsity"),
    "run toy --config.n": ("--config.n", "nearest 40"),
    "run toy --config.n x": ("--config.n x", "whole number", "nearest 40"),
    "run toy --config.n 2.6": ("--config.n 2.6", "whole number", "nearest 3"),
    "run toy --config.n 0": ("--config.n = 0", "at least 1", "nearest 1"),
    "run toy --config.n nan": ("--config.n nan", "nearest 40"),
    "run toy --config.sparsity 9": ("--config.sparsity = 9", "nearest 5"),
    "run toy --config.heads 3": ("--config.heads = 3", "divisor of n = 40", "nearest 2"),
    "run toy --config.d 1": ("with --config.d 1, sparsity = 2: choose", "or set --config.sparsity"),
    "run toy --sweep n": ("--sweep n: write KEY=VALUE,VALUE",),
    "run toy --sweep n=5,": ("--sweep n=5,: write KEY=VALUE,VALUE",),
    "run toy --sweep n=5,x": ("--config.n x: choose a whole number",),
    "run toy --sweep nn=5": ("unknown key --config.nn 5: nearest --config.n",),
    "run toy --sweep n=5 --sweep n=6": ("say all values of n at once",),
    "run toy --sweep heads=3": ("--config.heads = 3", "divisor of n = 40"),
    "draw toy --sweep n=3": ("--sweep is for run",),
    "compare toy tay toy": ("compare needs two results",),
    "compare toy tay": ("no result.nc in toy or figures/toy",),
    "run toy --config.scale nan": ("--config.scale nan", "finite number", "nearest 1.0"),
    "run toy --config.scale 7": ("--config.scale = 7.0", "nearest 2"),
    "run toy --config.lengths 3 0": ("--config.lengths[1] = 0", "nearest 1"),
    "run toy --config.lengths 3 b": ("--config.lengths b", "whole number"),
    "run toy --config.lengths 3,4": ("a space before the next; nearest 4 8",),
    "run toy --config.kind nomal": ("--config.kind = 'nomal'", "nearest normal"),
    "run toy --config.seed -1": ("--config.seed = -1", "nearest 0"),
    f"run toy --config.seed {2**63}": (f"nearest {2**63 - 1}",),
    "run toy --config.models 3": ("--config.models is more than", "toy_lab.theme.toy.config"),
    "run toy --config.models.small.width 3": ("--config.models.small.width is more than",),
    "run toy --seeds 3": ("--seeds: toy has no key runs or seeds", "sparsity"),
    "run toy --model here.gguf": ("--model: toy reads no language model",),
    "list --model here.gguf": ("--model is for run",),
    "run toy --out a\0b": ("a name holds no null character",),
    "run toy --tier gpu": ("unknown tier 'gpu'", "smoke, laptop, paper"),
    "run toy --seeds x": ("--seeds N: N is a whole number",),
    "run toy --tier": ("--tier TIER: TIER is a word",),
    "draw --seeds 3": ("--seeds is for run",),
    "run toy --panel a": ("--panel is for draw",),
    "draw --panel a": ("--panel is of one experiment",),
    "draw toy --panel a --with-caption": ("--with-caption is of the whole figure",),
    "run toy --with-caption": ("--with-caption is for draw",),
    "submit --engine local": ("submit needs a NAME", "toy"),
    "submit toy --engine slrm": ("unknown engine 'slrm'", "nearest 'slurm'; there are slurm, lo"),
    "submit toi --engine local": ("'toi'", "nearest toy"),
    "submit toy --engine local --config.n 0": ("--config.n = 0", "nearest 1"),
    "submit toy --engine local --shares 0": ("--shares 0", "at least 1"),
    "submit toy --engine local --slurm mem=4G": ("--slurm is SLURM's",),
    "submit toy --slurm =4G": ("--slurm =4G", "write KEY=VALUE"),
    "submit toy --status --tier smoke": ("--tier is of a new submission", "leave it out of --st"),
    "submit --status --again": ("--again is of a new submission",),
    "submit toi --status": ("'toi'", "nearest toy"),
    "run toy --engine local": ("--engine is for submit",),
    "run toy --config.n 3 all": ("--config.n all", "whole number"),
    "run --config.n=3": ("run needs a NAME",),
    "draw --config.n 3": ("--config.n is for run",),
    "draw toy": ("no result of toy",),
    "draw": ("no result under figures", "run NAME first"),
    "report": ("no result of the laptop tier or above", "run all first"),
    "report toy": ("leave out toy",),
    "fetch smolm2": ("unknown source 'smolm2'", "nearest 'smollm2'; there are smollm2, movie-"),
    "fetch --lst": ("unknown option --lst: nearest --list",),
    "run toy --list": ("--list is for fetch",),
    "list toi": ("'toi'", "nearest toy"),
    "list --tier smoke": ("--tier is for run", "leave it out of list"),
    f"run toy --out {'x' * 300}": ("the name is too long", "name another folder"),
    f"report --out a/{'x' * 300}/b": ("the name is too long", "name another folder"),
    "run toy --package toy_lob": ("no package 'toy_lob'", "--package"),
    "run toy --package json": ("no EXPERIMENTS", "json/__init__.py"),
}


def test_a_wrong_command_is_refused_before_jax_is_imported_and_leaves_nothing(tmp_path, python):
    program = f"""if True:
        import contextlib, io, json, sys
        from lsa_lab.harness.cli.command_line import main
        answers = []
        for line in {list(REFUSED)!r}:
            with contextlib.redirect_stderr(io.StringIO()) as errors:
                code = main(line.split(), package="toy_lab")
            answers.append([line, code, errors.getvalue()])
        print(json.dumps([answers, "jax" in sys.modules]))
    """
    done = python(program, cwd=tmp_path, path=[HERE], LSA_LAB_CACHE="cache")
    assert done.returncode == 0, done.stderr
    answers, jax_is_imported = json.loads(done.stdout)
    for line, code, errors in answers:
        assert code == 2, (line, errors)
        for part in REFUSED[line]:
            assert part in errors, line
    assert not jax_is_imported
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_to_is_refused(toy, program, capsys, monkeypatch):
    (toy / "locked").mkdir()

    def full(dir):
        assert dir == toy / "locked"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)  # root may write everywhere
    assert program("run", "toy", "--out", "locked/here") == 2
    assert "cannot be written to" in capsys.readouterr().err


def test_an_override_changes_one_value_of_the_tier(toy, program):
    words = ["--config.n", "6", "--config.lengths", "2", "3", "--config.scale=-0.5"]
    assert program("run", "toy", *words, "--config.bold", "True", "--out", "out") == 0
    (path,) = (toy / "out").rglob("result.nc")
    config = vars(results.config_of(results.load(path)))
    assert dict(config.pop("models"))["small"].width == 3
    assert config == {
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


def test_seeds_are_the_key_that_holds_the_number_of_runs(toy, program, capsys, monkeypatch):
    config = importlib.import_module("toy_lab.theme.toy.config")
    fields = [("runs", int, 5), ("n", int, 4)]
    kind = dataclasses.make_dataclass("Config", fields, bases=(config.Config,), frozen=True)
    monkeypatch.setattr(config, "TIERS", {"laptop": kind()})
    assert program("run", "toy", "--seeds", "3") == 0
    assert (toy / "figures" / "toy" / "runs=3" / "result.nc").exists()
    both = dataclasses.make_dataclass("Config", [("seeds", int, 5)], bases=(kind,), frozen=True)
    monkeypatch.setattr(config, "TIERS", {"laptop": both()})
    assert program("run", "toy", "--seeds", "3") == 2
    words = "toy has runs and seeds: say --config.runs 3 or --config.seeds 3"
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(("how", "status"), [("Ctrl-C", 130), ("SIGTERM", 143)])
def test_an_end_that_is_asked_for_says_how_to_go_on_and_keeps_the_checkpoints(
    toy, program, capsys, monkeypatch, how, status
):
    words = ["run", "toy", "--config.n", "13", "--out", "out"]
    monkeypatch.setenv("TOY_INTERRUPT", how)
    assert program(*words) == status
    advice = capsys.readouterr().err
    assert "lsa-lab run toy --tier laptop --out out --package toy_lab --config.n 13" in advice
    assert [path.name for path in (toy / "cache" / "checkpoints").rglob("half")] == ["half"]
    monkeypatch.delenv("TOY_INTERRUPT")
    assert program(*words) == 0
    facts = json.loads((toy / "out" / "toy" / "n=13" / "config.json").read_text())
    assert facts["wall_time"] > 0, "of both parts"
    assert facts["start"] is None
    assert not list((toy / "cache" / "checkpoints").iterdir())


def test_the_list_is_a_line_an_experiment_by_theme_and_all_of_one(program, ran, capsys):
    assert program() == 0
    assert "not run" in capsys.readouterr().out
    ran()
    program("run", "toy", "--config.n", "7")
    capsys.readouterr()
    assert program() == 0
    text = capsys.readouterr().out
    assert program("list") == 0
    assert capsys.readouterr().out == text
    head, theme, line, total = text.splitlines()[:4]
    assert head.split() == ["EXPERIMENT", "TIER", "TIME", "MEMORY", "H/F/U", "QUESTION"]
    assert theme == "theme"
    assert re.match(
        r"  toy \+1 +laptop  0:\d\d  \d\.\d GB  1/1/1  Does the mean of n numbers", line
    )
    assert total == "1 experiment; H/F/U: of their statements 1 hold, 1 fail, 1 undecided"
    assert program("list", "toy") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("toy: Does the mean of n numbers")
    rows = {line.split("  ")[0]: line.split() for line in lines[2:7]}
    assert rows["smoke"][-3:] == rows["paper"][-3:] == ["not", "run", "yet"]
    assert rows["laptop"][-2:] == ["1/1/1", "figures/toy"]
    assert rows["laptop, n=7"][-1] == "figures/toy/n=7"
    assert lines[-4:] == ["laptop:", "  holds      mean", "  fails      wrong", "  undecided  few"]


def test_the_list_of_another_folder_tells_what_ran_there(toy, program, capsys):
    program("run", "toy", "--tier", "smoke", "--out", "out")
    capsys.readouterr()
    assert program("list", "--out", "out") == 0
    assert "  smoke  0:0" in capsys.readouterr().out
    assert program("list", "toy", "--out", "out") == 0
    smoke, laptop, paper = capsys.readouterr().out.splitlines()[3:6]
    assert smoke.endswith("out/toy")
    assert "not run yet" in laptop
    assert "not run yet" in paper


def test_the_list_has_a_line_for_every_experiment_and_theme_and_few_more(capsys):
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    themes = {name.split(".")[0] for name in EXPERIMENTS}
    assert len(lines) <= len(EXPERIMENTS) + len(themes) + 6
    assert not [line for line in lines if "…" in line], "a pipe has room for every question"


def test_the_version_and_help_are_words_of_their_own(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"lsa_lab {lsa_lab.__version__}\n"
    assert main(["help", "compare"]) == 0
    assert capsys.readouterr().out.startswith("lsa-lab compare A [B]")


@pytest.mark.parametrize("delay", [0.0, 0.6])
def test_ctrl_c_before_anything_is_computed_ends_with_130(tmp_path, delay):
    """While jax is imported, where an exception is lost in a callback or breaks the process."""
    program = """if True:
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background
        from lsa_lab.harness.cli.command_line import main
        raise SystemExit(main())
    """
    words = [sys.executable, "-c", program, "run", "toy", "--package", "toy_lab"]
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
    how["env"] = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE)])}
    with subprocess.Popen(words, **how) as ran:
        first = ran.stdout.readline()
        time.sleep(delay)
        ran.send_signal(signal.SIGINT)
        _, said = ran.communicate(timeout=60)
    assert first.startswith("toy (laptop), into figures/toy: Does the mean of n numbers")
    assert (ran.returncode, said.splitlines()[-1].split(";")[0]) == (130, "interrupted")


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path, python):
    program = """
        import os
        from lsa_lab.harness.cli.command_line import main
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)
        raise SystemExit(main(["list"], package="toy_lab"))
    """
    done = python(program, cwd=tmp_path, path=[HERE])
    assert (done.returncode, done.stderr) == (0, "")


def test_a_package_that_is_not_whole_is_refused(toy, capsys):
    folder = toy / "half_lab" / "toy"
    folder.mkdir(parents=True)
    (folder / "config.py").touch()
    names = toy / "half_lab" / "__init__.py"
    for text, words in (
        ('EXPERIMENTS = ("toy")', "write ('toy',), with a comma"),
        ('EXPERIMENTS = ("toy",)', "toy lacks __init__.py, compute.py, claims.py, figure.py"),
    ):
        names.write_text(text, encoding="utf-8")
        sys.modules.pop("half_lab", None)
        importlib.invalidate_caches()
        assert main(["list"], package="half_lab") == 2
        assert words in capsys.readouterr().err
    del sys.modules["half_lab"]


def test_a_statement_or_a_tier_that_cannot_be_is_refused_before_the_run(
    toy, program, capsys, monkeypatch
):
    config, claims = (
        importlib.import_module(f"toy_lab.theme.toy.{door}") for door in ("config", "claims")
    )
    monkeypatch.delitem(config.TIERS, "paper")
    assert program("run", "toy", "--tier", "paper") == 2
    assert "toy has no tier 'paper': it has smoke, laptop" in capsys.readouterr().err
    statement = claims.Statement
    monkeypatch.setattr(claims, "statements", lambda _: (statement("mean", "here", "It is", "it"),))
    assert program("run", "toy") == 2
    assert "toy: statement mean: give at_least" in capsys.readouterr().err
    assert not list(toy.iterdir())


def test_what_is_told_can_be_typed(tmp_path, monkeypatch):
    program = tmp_path / ".venv" / "bin" / "lsa-lab"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert program_name(".venv/bin/lsa-lab") == ".venv/bin/lsa-lab"
    assert program_name("with space/lsa-lab") == "'with space/lsa-lab'"
    monkeypatch.setenv("PATH", str(program.parent))  # as `source .venv/bin/activate` leaves it
    assert program_name(str(program)) == program_name(".venv/bin/lsa-lab") == "lsa-lab"
    assert program_name("pytest") == "lsa-lab"


def test_a_list_of_experiments_and_of_their_keys_imports_nothing_heavy(python):
    program = """
        import sys
        from lsa_lab.harness.cli.command_line import main
        main(["list"])
        heavy = [sorted({"jax", "xarray", "scipy", "matplotlib"} & {*sys.modules})]
        main(["run", "all", "-h"])
        print(heavy, "jax" in sys.modules)
    """
    assert python(program).stdout.splitlines()[-1] == "[[]] False"
