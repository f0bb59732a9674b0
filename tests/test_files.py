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
SHARE = """
import sys
from pathlib import Path
from lsa_lab.files import lock_file, write_file
count, path, letter = Path(sys.argv[1]), *sys.argv[2:]
for _ in range(50):
    write_file(path, letter.encode() * 10_000)
    with lock_file(count, wait=True):
        count.write_text(str(int(count.read_text()) + 1))
"""


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


def test_one_process_at_a_time_holds_a_lock_and_a_file_is_written_whole(tmp_path):
    count, path = tmp_path / "count", tmp_path / "shared"
    count.write_text("0")
    commands = [[sys.executable, "-c", SHARE, count, path, letter] for letter in "ab"]
    assert [process.wait() for process in map(subprocess.Popen, commands)] == [0, 0]
    assert count.read_text() == "100"
    assert set(path.read_text()) in ({"a"}, {"b"})
    assert sorted(os.listdir(tmp_path)) == ["count", "shared"]


def test_locks_of_different_paths_do_not_meet(tmp_path):
    with lock_file(tmp_path / "a"), lock_file(tmp_path / "b"):
        pass
    with pytest.raises(RuntimeError, match="broken"), lock_file(tmp_path / "a"):
        raise RuntimeError("broken")
    with lock_file(tmp_path / "a"):
        assert os.listdir(tmp_path) == [".a.lock"]


def test_a_missing_package_is_answered_with_its_extra():
    with pytest.raises(ImportError, match=r"pip install 'lsa-lab\[lm\]'"):
        import_extra("a_package_that_nobody_has", "lm")
