"""One owner at a time: who is first, who comes second, and what a kill leaves."""

import os
import signal
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import optax
import pytest

from lsa_lab import training
from lsa_lab.store.safe_files import OwnedError, owned
from lsa_lab.training import Files, Training

HOLD = """
import sys, time
from lsa_lab.store.safe_files import owned
with owned(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that owns a file."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run.ckpt")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_second_process_is_told_who_the_first_is(tmp_path, holder):
    said = rf"run.ckpt is written by process {holder.pid} on "
    with pytest.raises(OwnedError, match=said), owned(tmp_path / "run.ckpt"):
        pass


def test_one_that_waits_stands_in_line_until_the_first_is_gone(tmp_path, holder):
    threading.Timer(0.5, holder.kill).start()
    with owned(tmp_path / "run.ckpt", wait=True):
        assert holder.wait() == -signal.SIGKILL
    assert os.listdir(tmp_path) == []


COUNT = """
import sys
from pathlib import Path
from lsa_lab.store.safe_files import owned
place = Path(sys.argv[1])
for _ in range(100):
    with owned(place, wait=True):
        place.write_text(str(int(place.read_text()) + 1))
"""


def test_however_many_wait_one_at_a_time_is_inside(tmp_path):
    (tmp_path / "count").write_text("0")
    command = [sys.executable, "-c", COUNT, str(tmp_path / "count")]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert (tmp_path / "count").read_text() == "400"
    assert os.listdir(tmp_path) == ["count"]


def test_a_fit_of_the_same_checkpoint_is_refused(tmp_path, holder):
    task = Training(lambda w, _: (w**2).sum(), lambda key: jnp.ones(()), optax.sgd(0.1), 2)
    with pytest.raises(OwnedError, match="wait for it, or end it"):
        training.fit(task, jnp.ones(1), jax.random.key(0), files=Files(tmp_path / "run.ckpt"))
    assert not (tmp_path / "run.ckpt").exists()


def test_other_paths_have_other_owners_and_one_can_be_owned_again(tmp_path):
    with owned(tmp_path / "a"), owned(tmp_path / "b"):
        pass
    with pytest.raises(RuntimeError, match="broken"), owned(tmp_path / "a"):
        raise RuntimeError("broken")
    with owned(tmp_path / "a"):
        assert os.listdir(tmp_path) == [".a.lock"]
