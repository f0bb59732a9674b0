"""What is submitted leaves the bits that run does, whoever is killed; a refusal submits nothing."""

import contextlib
import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from lsa_lab.harness.run import process
from lsa_lab.store import results, safe_files

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

# Processes of this machine are left to themselves.
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")


def jobs(toy):
    """{share: what the engine calls its process} of the only experiment."""
    (file,) = (toy / "cache" / "submitted").glob("toy-*/job.json")
    return json.loads(file.read_text())["jobs"]


def wait(*pids):
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(int(pid), 0)


def states(program, capsys):
    """{task: its state} as --status tells them."""
    capsys.readouterr()
    assert program("submit", "--status") == 0
    _, *rows = capsys.readouterr().out.splitlines()
    return {row.split("  ")[0]: row.split("  ")[2].strip() for row in rows}


def test_shares_of_a_run_and_one_that_is_killed_leave_the_bits_of_one_process(
    toy, program, ran, capsys, monkeypatch
):
    """Share 2 dies and is submitted again alone, while share 1 waits for it."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(HERE)]))
    monkeypatch.setenv("TOY_KILL", "share 1")
    words = ("submit", "toy", "--engine", "local", "--shares", "2", "--out", "out")
    assert program(*words) == 0
    first = jobs(toy)
    wait(first["1"])
    assert states(program, capsys)["toy 2/2"] == "dead"
    assert program(*words) == 2, "share 1 is at work"
    assert "toy 1/2 (laptop) is " in capsys.readouterr().err
    monkeypatch.delenv("TOY_KILL")
    assert program("submit", "--again") == 0
    told = capsys.readouterr().out
    assert "toy 2/2 (laptop): job " in told
    assert "toy 1/2" not in told
    second = jobs(toy)
    assert second["0"] == first["0"]
    wait(*second.values())
    assert states(program, capsys) == {"toy 1/2": "done", "toy 2/2": "done"}
    assert program("submit", "--again") == 0
    assert "no task has failed or died" in capsys.readouterr().out
    assert not list((toy / "cache" / "checkpoints").iterdir())
    assert not list(toy.glob("cache/submitted/*/exchange"))

    ran()
    digests = {
        results.load(toy / folder / "toy" / "result.nc").attrs["contents_sha256"]
        for folder in ("out", "figures")
    }
    assert len(digests) == 1


def test_shares_that_never_run_at_once_leave_the_bits_of_one_process(
    toy, program, ran, monkeypatch
):
    monkeypatch.setattr(process, "_LATE", 0.3)
    variables = {"LSA_LAB_EXCHANGE": str(toy / "exchange"), "JAX_NUM_PROCESSES": "2"}
    waiting, ends = ["0", "1"], []
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    while waiting:
        monkeypatch.setenv("JAX_PROCESS_ID", share := waiting.pop(0))
        ends.append(program("run", "toy", "--out", "out"))
        waiting += [share] if ends[-1] == process.PUT_OFF else []
    assert process.PUT_OFF in ends
    assert [end for end in ends if end != process.PUT_OFF] == [0, 0]
    for name in (*variables, "JAX_PROCESS_ID"):
        monkeypatch.delenv(name)
    ran()
    both = [results.load(toy / folder / "toy" / "result.nc") for folder in ("out", "figures")]
    assert both[0].attrs["contents_sha256"] == both[1].attrs["contents_sha256"]


@pytest.fixture
def slurm(toy, monkeypatch):
    """A folder of programs with the names of SLURM's: sbatch keeps its script, squeue is to be
    written by the test."""
    folder = toy / "bin"
    folder.mkdir()

    def write(name, text):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n", "utf-8")
        (folder / name).chmod(stat.S_IRWXU)

    write("srun", "exit 1")
    write("sbatch", f'echo "$2" > {toy}/array; cp "$3" {toy}/script; echo 12')
    write("squeue", "echo 12_0 PENDING")
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    return write


def test_slurm_is_told_what_the_words_say(toy, program, capsys, slurm):
    flags = [
        "partition=night",
        "time=1-2",
        "mem=4G",
        "cpus-per-task=3",
        "gpus_per_node=1",
        "exclusive",
    ]
    words = [word for flag in flags for word in ("--slurm", flag)]
    assert program("submit", "toy", "--tier", "smoke", *words) == 0
    lines = (toy / "script").read_text("utf-8").splitlines()
    for flag in flags:
        assert f"#SBATCH --{flag.replace('_', '-')}" in lines
    assert sum("--time=" in line for line in lines) == 1
    assert (toy / "array").read_text("utf-8") == "--array=0\n"

    assert states(program, capsys) == {"toy": "waiting"}
    assert program("submit", "toy", "--tier", "smoke") == 2
    assert "toy (smoke) is waiting as job 12_0 of slurm: wait for it" in capsys.readouterr().err
    slurm("squeue", "echo 12_0 RUNNING")
    assert states(program, capsys) == {"toy": "running"}
    slurm("squeue", "exit 1")
    assert states(program, capsys) == {"toy": "unknown"}
    slurm("squeue", "echo 13_0 RUNNING")
    assert states(program, capsys) == {"toy": "dead"}
    assert program("submit", "toy", "--again", "--slurm", "mem=9G") == 0
    lines = (toy / "script").read_text("utf-8").splitlines()
    assert {"#SBATCH --mem=9G", "#SBATCH --time=1-2"} <= set(lines)


@pytest.mark.parametrize(
    ("status", "other", "state"),
    [
        (0, "running", "done"),
        (75, "running", "running"),
        (75, "failed", "failed"),  # who waits for one that failed would go round for ever
        (130, "failed", "running"),
        (3, "running", "failed"),
    ],
)
def test_a_script_says_how_it_ended_and_goes_on_after_an_interruption(
    toy, program, slurm, status, other, state
):
    """As SLURM runs it, with an srun that ends so, for the second of two shares."""
    slurm("srun", f"echo $JAX_PROCESS_ID of $JAX_NUM_PROCESSES > {toy}/ran; exit {status}")
    slurm("scontrol", f'echo "$@" > {toy}/told')
    assert program("submit", "toy", "--shares", "2") == 0
    assert (toy / "array").read_text("utf-8") == "--array=0,1\n"
    assert set(jobs(toy).values()) == {"12_0", "12_1"}
    (folder,) = (toy / "cache" / "submitted").glob("toy-*")
    (folder / "0.state").write_text(f"{other}\n")
    variables = os.environ | {"SLURM_ARRAY_TASK_ID": "1", "SLURM_JOB_ID": "14"}
    assert subprocess.run(["sh", "script"], env=variables).returncode == status
    assert ((folder / "1.state").read_text(), (toy / "ran").read_text()) == (
        f"{state}\n",
        "1 of 2\n",
    )
    assert (toy / "told").exists() == (state == "running")


def test_what_slurm_refuses_is_told_and_nothing_is_submitted(toy, program, capsys, slurm):
    slurm("sbatch", "echo 'sbatch: error: invalid partition specified: nigt' >&2; exit 1")
    assert program("submit", "toy", "--slurm", "partition=nigt") == 2
    error = capsys.readouterr().err
    assert error == "error: slurm takes no task: invalid partition specified: nigt\n"
    assert program("submit", "--status") == 0
    assert "nothing has been submitted" in capsys.readouterr().out


def test_without_slurm_a_sentence_says_what_to_do(toy, program, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(toy))
    assert program("submit", "toy") == 2
    assert "no SLURM on this machine (no sbatch)" in capsys.readouterr().err
    assert not (toy / "cache").exists()


def test_a_folder_that_is_closed_is_refused(toy, program, capsys, monkeypatch):
    def closed(folder):
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(safe_files, "check_writable", closed)
    assert program("submit", "toy", "--engine", "local") == 2
    assert "figures cannot be written (Permission denied)" in capsys.readouterr().err
    assert not (toy / "cache").exists()


def test_more_tasks_than_cores_would_start_at_once(program, capsys, monkeypatch):
    monkeypatch.setattr(process, "cores", lambda: 3)
    words = ("--engine", "local", "--shares", "2", "--package", "experiments")
    assert program("submit", "depth", "order", *words) == 2
    assert "4 tasks would start at once on 3 cores: submit fewer" in capsys.readouterr().err
