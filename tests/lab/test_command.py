"""The command: wrong calls get one sentence, and the calls of a first hour work."""

import os
import re
import subprocess
import sys

import jax
import pytest

from lsa_lab.lab import command
from lsa_lab.lab.catalogue import UsageError
from lsa_lab.lab.listing import describe_difference
from lsa_lab.training.status import DivergedError

WRONG = [
    ("list --package nowhere", "no folder nowhere here or above"),
    ("runn", "unknown command 'runn': did you mean run?"),
    ("heads", "unknown command 'heads': there are list, run"),
    ("question --tier full", "unknown command 'question': did you mean lsa-lab run question"),
    ("list question", "lsa-lab list does not take 'question'"),
    ("run", "no experiment is named"),
    ("run zzz", "unknown experiment 'zzz': there are question, all"),
    ("run question --tier", "--tier has no value"),
    ("run questoin", "unknown experiment 'questoin': did you mean question?"),
    ("run question --teir full", "unknown option --teir: did you mean --tier?"),
    ("run question --tier ful", "unknown tier 'ful': did you mean full?"),
    ("run question --jobs two", "--jobs: invalid literal .* expected INT; the usual value is 1"),
    ("run question --jobs 0", "--jobs 0: choose 1 or more"),
    ("run question --config.scale 4", "option --config.scale: did you mean --config.scales"),
    ("run question --config.n few", "--config.n: invalid literal.*; the usual value is 20"),
    ("run question --config.scales 1 x", "--config.scales: .* the usual value is 1.0 2.0"),
    ("run question --publish", "--publish takes --tier full without changes"),
    ("run question --sweep n=4", "write a field and values, as n=8,16,32"),
    ("run question --sweep m=4,5", "unknown option --config.m"),
    ("run question --sweep n=4,5 --claim zeros", "unknown claim 'zeros': did you mean zero?"),
    ("draw question --out=~/nowhere", "no result at /.*/nowhere/question/result.nc: run the"),
    ("run question --tier full --out figures", "holds committed results: --publish writes these"),
    ("run question --tier full --sweep n=40,8 --out figures", "--publish writes these"),
    ("draw question", "no result at figures/question/result.nc: run the experiment first"),
    ("compare question", "no .*claims.json: run the experiment first"),
    ("compare a b c", "compare takes two results"),
    ("report --config.n 4", "--config.n changes a configuration: it is for lsa-lab run"),
    ("new question", "write PACKAGE/NAME, as my_lab/question"),
    *((f"new {name}", "write PACKAGE/NAME") for name in ("my-lab/question", "my_lab/a.b", "/")),
    ("card mine:forward --name mine", "card takes two addresses"),
    ("card mine:forward mine:init", "--name is missing"),
    ("card m:f m:g --name mine --ablate mine", "--ablate takes LABEL=MODULE:FORWARD"),
    ("card nowhere:f nowhere:g --name a/b", "a name is that of one folder"),
    ("fetch smolm2", "unknown source 'smolm2': did you mean smollm2?"),
    ("submit question --cluster pbs", "--cluster pbs: choose slurm or local"),
]
PACKAGED = ("question", "run", "draw", "compare", "report", "submit")


def test_wrong_calls_are_answered_in_one_sentence(package):
    for call, message in WRONG:
        words = call.split()
        words[1:1] = ["--package", package.name] if words[0] in PACKAGED else []
        with pytest.raises(UsageError, match=message) as refused:
            command.run_command(words)
        assert "\n" not in str(refused.value)


def test_list_says_what_to_do_first_where_there_is_no_experiment(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command.run_command(["list"]) == 0
    said = capsys.readouterr().out
    assert "laboratory for the theory of in-context learning" in said
    assert "lsa-lab new my_lab/question" in " ".join(said.split())
    assert not list(tmp_path.iterdir())


def run_program(words, cwd, **options):
    return run_python(["-m", "lsa_lab.lab.command", *words.split()], cwd, **options)


def run_python(words, cwd, stdout=subprocess.PIPE, **environment):
    caches = {"LSA_LAB_CACHE": str(cwd / ".cache")}
    caches["JAX_COMPILATION_CACHE_DIR"] = jax.config.values["jax_compilation_cache_dir"]
    streams = {"stdout": stdout, "stderr": subprocess.PIPE, "text": True, "timeout": 120}
    environment = os.environ | caches | environment
    return subprocess.run([sys.executable, *words], cwd=cwd, env=environment, **streams)


RUN = pytest.param("run all --tier smoke --jobs 2", "ascii", marks=pytest.mark.slow)


@pytest.mark.parametrize(("words", "encoding"), [("list", "cp1252"), RUN])
def test_signs_that_the_output_does_not_have_are_replaced(package, words, encoding):
    package.change("Is the mean of normal numbers 0?", "Is μ ≤ 0?")
    package.change("Means of {config.n} numbers.", "Is μ ≤ 0?")
    package.script.with_name("another.py").write_text(package.script.read_text())
    words = f"{words} --package {package.name}"
    left = run_program(words, package.root, PYTHONIOENCODING=encoding)
    assert left.returncode == 0, left.stderr
    assert left.stdout.count("Is ? ? 0?") == 2
    if words.startswith("run"):
        assert "1 of 2 done" in left.stdout
        assert (package.root / ".cache/figures/smoke/index.html").exists()


def test_what_cannot_be_written_is_told_in_one_sentence(package):
    for words in ("run -h", f"list --package {package.name}"):
        with open("/dev/full", "w") as full:
            left = run_program(words, package.root, stdout=full)
        assert (left.returncode, left.stderr) == (1, "error: the output: No space left on device\n")
    (package.root / "file").touch()
    words = f"run question --tier smoke --package {package.name}"
    left = run_program(words, package.root, LSA_LAB_CACHE=str(package.root / "file/cache"))
    assert left.returncode == 1
    assert re.fullmatch("error: (/.*/)?file.*: .*; --out and LSA_LAB_CACHE .*\n", left.stderr)


def test_a_script_runs_by_itself_and_writes_below_the_home_folder(package):
    script, home = package.script.relative_to(package.root), package.root / "home"
    words = ["--tier", "smoke", "--config.n", "4", "--out=~/results"]
    left = run_python([script, *words], package.root, HOME=str(home), LSA_LAB_CACHE="~/cache")
    assert left.returncode == 0, left.stderr
    assert "question, smoke tier --config.n 4" in left.stdout
    assert (home / "results/question/n=4/figure.pdf").exists()
    assert (home / "cache/runs").exists()
    assert not (package.root / "~").exists()


def test_list_and_help_start_without_jax(package):
    program = (
        "import sys; from lsa_lab.lab import command\n"
        f"command.run_command(['list', '--package', {package.name!r}])\n"
        "command.run_command(['-h'])\n"
        "assert not {'jax', 'numpy', 'xarray', 'matplotlib'} & set(sys.modules)"
    )
    left = run_python(["-c", program], package.root)
    assert left.returncode == 0, left.stderr
    assert "Is the mean of normal numbers 0?" in left.stdout
    assert "no result yet" in left.stdout


def test_a_first_experiment_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command.run_command(["new", "my_lab/question"]) == 0
    left = run_program("run question --tier smoke --package my_lab", tmp_path)
    assert left.returncode == 0, left.stderr
    assert "times the risk of ridge regression" in left.stdout
    assert (tmp_path / ".cache/figures/smoke/question/figure.pdf").exists()


@pytest.fixture
def run_here(package, monkeypatch, capsys):
    """Run a command in this process, whose settings stay; return its status and output."""
    monkeypatch.setattr("lsa_lab.lab.settings.set_environment", lambda tier: None)
    monkeypatch.setattr("lsa_lab.lab.settings.configure", lambda tier: None)

    def run(words):
        status = command.run_command([*words.split(), "--package", package.name])
        said = capsys.readouterr()
        return status, said.out + said.err

    return run


def test_a_sweep_plots_a_claim(package, run_here):
    status, said = run_here("run question --tier smoke --sweep n=4,8")
    assert status == 0
    assert "n = 8, zero[2.0]:" in said
    assert (package.root / ".cache/figures/smoke/question/sweep,n/figure.png").exists()


def test_a_failed_run_says_so_in_its_status_and_one_that_lacks_a_file_does_not(package, run_here):
    text = package.script.read_text()
    refused = "from lsa_lab.lab.catalogue import UsageError; raise UsageError('no file'); f"
    package.script.with_name("another.py").write_text(text)
    package.script.with_name("refused.py").write_text(text.replace("return picture, f", refused))
    status, said = run_here("run another refused")
    assert status == 0
    assert "refused: not run: no file" in said
    assert "1 of 2 in" in said
    package.change("return picture, f", "raise RuntimeError('broken'); f")
    status, said = run_here("run another question")
    assert status == 1
    assert "question: failed: broken" in said
    assert "failed: question" in said


def test_a_card_of_a_training_that_diverges_has_the_status_of_a_failure(monkeypatch, capsys):
    def diverge(*_, **__):
        raise DivergedError("no run is left")

    monkeypatch.setattr("lsa_lab.card.report_card", diverge)
    monkeypatch.setattr("lsa_lab.lab.settings.configure", lambda tier: None)
    monkeypatch.setattr(jax.config, "update", lambda *_: None)
    delta = "lsa_lab.card.layers:delta"
    words = ["card", f"{delta}.forward", f"{delta}.init", "--name", "mine"]
    assert command.run_command(words) == 1
    assert capsys.readouterr().err == "error: mine: no run is left\n"


def test_a_run_is_compared_with_the_committed_result():
    rows = [{"id": name, "value": 2.0, "verdict": "holds"} for name in "ab"]
    others = [rows[0] | {"value": 2.0 * (1 + 1e-13)}, rows[1], rows[1] | {"id": "c"}]
    which = "from the committed ones "
    expected = "numbers differ from the committed ones by 1e-13; verdicts agree"
    assert describe_difference(rows, others, which) == expected
    others[0]["verdict"] = "fails"
    assert describe_difference(rows, others).endswith("1 of 2 verdicts agree")


def test_compare_prints_claims_side_by_side(package, run_here):
    package.run("quick")
    package.run("quick", n=8, scales=(2.0, 1.0))
    _, said = run_here("compare out/question out/question/n=8,scales=2.0_1.0")
    assert "zero[1.0]" in said
    assert "verdicts agree" in said


@pytest.mark.slow
def test_a_job_of_two_processes_on_this_machine(package):
    words = "submit question --tier smoke --cluster local --tasks-per-node 2"
    left = run_program(f"{words} --package {package.name}", package.root)
    assert left.returncode == 0, left.stderr
    assert "Means of 5 numbers." in left.stdout
    assert (package.root / ".cache/figures/smoke/question/claims.json").exists()
