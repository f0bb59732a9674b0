"""Files are written whole, and one process at a time holds the lock of a path."""

import os
import signal
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import optax
import pytest

from lsa_lab.files import FileLockedError, import_extra, lock_file
from lsa_lab.training import Files, Training, fit

HOLD = """
import sys, time
from lsa_lab.files import lock_file
with lock_file(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""
COUNT = """
import sys
from pathlib import Path
from lsa_lab.files import lock_file
path = Path(sys.argv[1])
for _ in range(50):
    with lock_file(path, wait=True):
        path.write_text(str(int(path.read_text()) + 1))
"""
WRITE = """
import sys
from lsa_lab.files import write_file
for _ in range(50):
    write_file(sys.argv[1], sys.argv[2].encode() * 10_000)
"""


def run_together(program, *arguments):
    """Run a program once for each list of arguments, all at the same time."""
    started = [subprocess.Popen([sys.executable, "-c", program, *words]) for words in arguments]
    assert [process.wait() for process in started] == [0] * len(started)


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of ``run.ckpt``."""
    words = [sys.executable, "-c", HOLD, str(tmp_path / "run.ckpt")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_locked_path_is_refused_with_the_process_that_holds_it(tmp_path, holder):
    message = rf"run.ckpt is written by process {holder.pid} on "
    with pytest.raises(FileLockedError, match=message), lock_file(tmp_path / "run.ckpt"):
        pass
    training = Training(lambda w, _: (w**2).sum(), lambda key: jnp.ones(()), optax.sgd(0.1), 2)
    with pytest.raises(FileLockedError, match=message):
        fit(training, jnp.ones(1), jax.random.key(0), files=Files(tmp_path / "run.ckpt"))
    assert not (tmp_path / "run.ckpt").exists()


def test_a_lock_ends_with_its_process(tmp_path, holder):
    threading.Timer(0.5, holder.kill).start()
    with lock_file(tmp_path / "run.ckpt", wait=True):
        assert holder.wait() == -signal.SIGKILL
    assert os.listdir(tmp_path) == []


def test_one_process_at_a_time_holds_a_lock(tmp_path):
    (tmp_path / "count").write_text("0")
    run_together(COUNT, *[[str(tmp_path / "count")]] * 3)
    assert (tmp_path / "count").read_text() == "150"
    assert os.listdir(tmp_path) == ["count"]


def test_locks_of_different_paths_do_not_meet(tmp_path):
    with lock_file(tmp_path / "a"), lock_file(tmp_path / "b"):
        pass
    with pytest.raises(RuntimeError, match="broken"), lock_file(tmp_path / "a"):
        raise RuntimeError("broken")
    with lock_file(tmp_path / "a"):
        assert os.listdir(tmp_path) == [".a.lock"]


def test_two_processes_that_write_one_file_leave_it_whole(tmp_path):
    path = str(tmp_path / "shared")
    run_together(WRITE, [path, "a"], [path, "b"])
    assert set((tmp_path / "shared").read_text()) in ({"a"}, {"b"})
    assert os.listdir(tmp_path) == ["shared"]


def test_a_missing_package_is_answered_with_its_extra():
    with pytest.raises(ImportError, match=r"pip install 'lsa-lab\[lm\]'"):
        import_extra("a_package_that_nobody_has", "lm")
