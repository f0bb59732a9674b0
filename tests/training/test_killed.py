"""Trainings and writers that are killed: nothing is lost, and a resumed training has the bits."""

import signal
import subprocess
import sys
from pathlib import Path

from test_fit import descend, hash_run

from lsa_lab.training import Files, checkpoints

ROOT = Path(__file__).resolve().parents[2]
TRAIN = """
import sys, time
sys.path[:0] = ["tests", "tests/training"]
import conftest, test_fit
from lsa_lab.training import Files, loop

class Progress:
    def add_task(self, *_, **__):
        return 0

    def update(self, *_, completed, **__):
        print(completed, flush=True)
        time.sleep(0.02)

loop._SAVE_EVERY = 0.0
test_fit.descend(400, files=Files(sys.argv[1]), chunk=10, progress=Progress())
"""
WRITE = """
import itertools, os, signal, sys, time
import numpy as np
from lsa_lab.training import checkpoints

path, size = sys.argv[1], 1 << 20
for delay in (0.0, 0.003, 0.007, 0.011):
    read, write = os.pipe()
    writer = os.fork()
    if writer == 0:
        for i in itertools.count():
            checkpoints.save(path, {"x": np.full(size, i)}, {"fact": 1})
            os.write(write, bytes([i]))
    written = b"".join(os.read(read, 1) for _ in range(3))
    time.sleep(delay)
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    os.close(write)
    last = (written + os.read(read, 999))[-1]
    values = np.unique(checkpoints.load(path, {"x": np.zeros(size, int)}, {"fact": 1})["x"])
    assert values.tolist() in ([last], [last + 1])
"""


def stop(path, number):
    """Send a signal to a training after five chunks; return the steps that it had reported."""
    words = [sys.executable, "-c", TRAIN, str(path)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(5):
            line = process.stdout.readline()
        process.send_signal(number)
    assert process.returncode != 0
    return int(line)


def test_a_training_that_is_killed_or_interrupted_and_resumed_gives_the_same_bits(tmp_path):
    path = tmp_path / "fit.ckpt"
    first, second, third = (stop(path, getattr(signal, f"SIG{n}")) for n in ("KILL", "KILL", "INT"))
    assert first < second < third, "each process resumes where the last one was stopped"
    assert third <= checkpoints.read(path)[1][".step"] < 400, "Ctrl-C saves what is computed"
    assert hash_run(descend(400, files=Files(path), chunk=10)) == hash_run(descend(400, chunk=10))


def test_a_writer_that_is_killed_leaves_the_old_checkpoint_or_the_new_one(tmp_path, python):
    ended = python(WRITE, tmp_path / "x.ckpt")
    assert ended.returncode == 0, ended.stderr
