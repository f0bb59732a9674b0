"""Trainings and writers that are killed: nothing is lost, and a resumed training has the bits."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from lsa_lab.training import checkpoints

ROOT = Path(__file__).resolve().parents[2]
TRAIN = """
import sys, time
import jax, jax.numpy as jnp, optax
from lsa_lab.training import Files, Training, checkpoints, fit, loop

class Progress:
    def add_task(self, *_, **__):
        return 0

    def update(self, *_, completed, **__):
        print(completed, flush=True)
        time.sleep(0.02)

loop._SAVE_EVERY = 0.0
training = Training(
    lambda w, batch: jnp.sum((w - 0.1 * batch) ** 2) + jnp.sum(w**4) / 4,
    lambda key: jax.random.normal(key, (3,)), optax.adam(0.02), steps=400,
)
run = fit(training, jnp.ones(3), jax.random.key(0), files=Files(sys.argv[1]), chunk=10,
          progress=Progress())
print("hash", checkpoints.hash_arrays((run.params, run.history)))
"""
WRITE = """
import itertools, sys
import numpy as np
from lsa_lab.training import checkpoints

for i in itertools.count():
    checkpoints.save(sys.argv[1], {"x": np.full(1 << 20, i)}, {"fact": 1})
    print(i, flush=True)
"""


def start(program, path):
    words = [sys.executable, "-c", program, str(path)]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def finish(path):
    """Run a training to its end, and return the hash of its result."""
    with start(TRAIN, path) as process:
        return process.stdout.read().split()[-1]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return finish(tmp_path_factory.mktemp("undisturbed") / "fit.ckpt")


def stop(path, number):
    """Send a signal to a training after five chunks; return the steps that it had reported."""
    with start(TRAIN, path) as process:
        for _ in range(5):
            line = process.stdout.readline()
        process.send_signal(number)
        output = process.stdout.read()
    assert process.returncode != 0
    assert "hash" not in output
    return int(line)


def test_a_training_that_is_killed_and_resumed_gives_the_same_bits(tmp_path, undisturbed):
    path = tmp_path / "fit.ckpt"
    first, second = stop(path, signal.SIGKILL), stop(path, signal.SIGKILL)
    assert second > first, "the second process resumes where the first was killed"
    assert finish(path) == undisturbed


def test_ctrl_c_saves(tmp_path, undisturbed):
    path = tmp_path / "fit.ckpt"
    step = stop(path, signal.SIGINT)
    _, leaves = checkpoints.read(path)
    assert leaves[".step"] >= step
    assert finish(path) == undisturbed


def test_a_writer_that_is_killed_leaves_the_old_checkpoint_or_the_new_one(tmp_path):
    path = tmp_path / "x.ckpt"
    like = {"x": jax.ShapeDtypeStruct((1 << 20,), np.int64)}
    for delay in (0.0, 0.003, 0.007, 0.011):
        with start(WRITE, path) as process:
            written = [int(process.stdout.readline()) for _ in range(3)]
            time.sleep(delay)
            process.kill()
            last = [*written, *map(int, process.stdout.read().split())][-1]
        values = np.unique(checkpoints.load(path, like, {"fact": 1})["x"])
        assert values.tolist() in ([last], [last + 1])
