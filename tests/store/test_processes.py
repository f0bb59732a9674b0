"""Several processes share a computation, and each ends with the bits of one."""

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import pytest

import shares
from lsa_lab.store import checkpoints, processes, transports
from lsa_lab.training import Training, snapshots
from lsa_lab.training.plan import plan_of


def together(tmp_path, calls, **arguments):
    """Each call, of a transport, as a process of its own would make it."""
    count = len(calls)
    folders = [processes.Folder(tmp_path, index, count, **arguments) for index in range(count)]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda call, folder: call(folder), calls, folders))


def rows(first, end):
    """Rows whose bits tell where they stand, among them what a conversion would change."""
    numbers = np.arange(first, end)
    return {
        "double": np.nextafter(numbers, np.inf),
        "half": np.stack([numbers, -numbers], 1).astype(ml_dtypes.bfloat16),
        "flags": numbers % 3 == 0,
    }


def gathering(total, width=1):
    """A process that gathers its share of the rows."""

    def call(folder):
        share = processes._share(total, width, folder.index, folder.count)
        return processes._gathered(folder, rows(share.start, share.stop), total, width, "rows")

    return call


@pytest.mark.parametrize(("total", "width", "count"), [(8, 1, 2), (7, 3, 2), (2, 1, 3), (5, 5, 2)])
def test_every_process_has_all_rows_bit_for_bit(tmp_path, total, width, count):
    expected = rows(0, total)
    for gathered in together(tmp_path, [gathering(total, width)] * count):
        for name, array in expected.items():
            assert gathered[name].dtype == array.dtype
            assert gathered[name].tobytes() == array.tobytes()


def test_contents_keep_their_order_however_many_a_process_has(tmp_path):
    """Twelve and more: names that are sorted as texts would put the eleventh before the third."""
    expected = [str(number).encode() * (1 + number % 3) for number in range(25)]

    def gathering_contents(folder):
        share = processes._share(len(expected), 1, folder.index, folder.count)
        return processes._gathered_contents(folder, [expected[i] for i in share], "cells")

    for gathered in together(tmp_path, [gathering_contents] * 2):
        assert gathered == expected


def test_the_shares_are_whole_groups_and_cover_everything_once():
    for total, width, count in [(8, 1, 3), (7, 3, 2), (2, 1, 5), (32, 8, 3)]:
        shares = [processes._share(total, width, index, count) for index in range(count)]
        assert [row for share in shares for row in share] == list(range(total))
        assert all(share.start % width == 0 for share in shares if share)
        sizes = [-(-len(share) // width) for share in shares]
        assert max(sizes) - min(sizes) <= 1


def test_one_process_has_everything_as_it_is():
    assert processes.leads()
    assert processes.count() == 1
    assert processes.share(7) == range(7)
    assert processes.gather(rows(0, 7), 7)["double"].tobytes() == rows(0, 7)["double"].tobytes()


def sending(first, last, **changes):
    """A process that says that its share is another one."""

    def call(folder):
        facts = {"label": "rows", "total": 7, "first": first, "end": last} | changes
        return folder.exchange(checkpoints.packed(rows(first, last), facts), "rows")

    return call


@pytest.mark.parametrize(
    "other",
    [sending(2, 7), sending(4, 7), sending(3, 6, end=7), sending(3, 7, label="columns")],
    ids=["overlaps", "leaves a gap", "is cut short", "is of something else"],
)
def test_a_share_that_is_not_the_processs_own_is_refused(tmp_path, other):
    with pytest.raises(ValueError, match=r"process 1 of 2 gives rows .* 3 to 7 of 'rows' are its"):
        together(tmp_path, [gathering(7), other])
    together(tmp_path / "right", [gathering(7), sending(3, 7)])  # control


def test_a_process_that_is_started_again_reads_what_the_others_have_left(tmp_path):
    before = together(tmp_path, [gathering(8)] * 2)
    again = gathering(8)(processes.Folder(tmp_path, 1, 2))
    assert again["double"].tobytes() == before[0]["double"].tobytes()


def test_a_process_that_gives_no_sign_of_life_is_named(tmp_path):
    dead = processes.Folder(tmp_path, 1, 2)
    with dead.alive():
        sign = (tmp_path / "1.alive").read_bytes()
    assert not (tmp_path / "1.alive").exists()
    with pytest.raises(processes.NotBegunError, match="process 1 of 2 has not begun for 0 s"):
        gathering(8)(processes.Folder(tmp_path, 0, 2, patience=0.1))
    (tmp_path / "1.alive").write_bytes(sign)  # as a kill leaves it
    with pytest.raises(
        processes.LostProcessError, match="process 1 of 2 has given no sign of life"
    ):
        gathering(8)(processes.Folder(tmp_path, 0, 2, heartbeat=0.1))
    slow = processes.Folder(tmp_path, 1, 2, heartbeat=0.6)
    with slow.alive(), ThreadPoolExecutor(1) as pool:  # control: late, but alive
        waiting = pool.submit(gathering(8), processes.Folder(tmp_path, 0, 2, heartbeat=0.6))
        assert not wait([waiting], timeout=1.0).done
        gathering(8)(slow)
        assert waiting.result()["double"].tobytes() == rows(0, 8)["double"].tobytes()


PROCESS = """
import os, signal, sys
sys.path[:0] = {paths!r}
from lsa_lab.store import processes
from lsa_lab.training import loop, snapshots
from lsa_lab.harness.run import process
import shares

folder, index, dies = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if dies == index:
    loop._SAVE_EVERY, save = 0.0, snapshots.Store.save

    def saved(store, snapshot):
        save(store, snapshot)
        os.kill(os.getpid(), signal.SIGKILL)

    snapshots.Store.save = saved
transport = processes.Folder(folder, index, 2, heartbeat=4.0)
try:
    with process.join_launched() if {distributed} else processes.use(transport):
        print("all", *shares.computed(f"{{folder}}/{{index}}"), flush=True)
except processes.LostProcessError as lost:
    print(f"error: {{lost}}", flush=True)
"""


def started(folder, distributed, dies=-1):
    """Two processes that compute together, of which one may kill itself after a checkpoint."""
    here = Path(__file__).resolve().parent
    code = PROCESS.format(paths=[str(here), *map(str, here.parents[:2])], distributed=distributed)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    names = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": "2"} if distributed else {}
    return [
        subprocess.Popen(
            [sys.executable, "-c", code, str(folder), str(index), str(dies)],
            env=os.environ | names | {"JAX_PROCESS_ID": str(index), "JAX_ENABLE_X64": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]


def ends(processes):
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    lines = [[line for line in text.splitlines() if line[:3] in ("all", "err")] for text in outputs]
    return lines, [process.returncode for process in processes]


@pytest.mark.parametrize(
    "distributed",
    [
        pytest.param(True, id="jax.distributed", marks=pytest.mark.slow),
        pytest.param(False, id="a folder"),
    ],
)
def test_two_processes_end_with_the_bits_of_one(tmp_path, distributed):
    alone = " ".join(["all", *shares.computed(tmp_path / "alone")])
    lines, codes = ends(started(tmp_path, distributed, dies=1))
    assert lines[1] == []
    assert codes == [0, -signal.SIGKILL]
    assert len(lines[0]) == 1
    assert "start" in lines[0][0]
    assert "checkpoints" in lines[0][0]
    assert [path.name for path in sorted(tmp_path.glob("?/fit.ckpt*"))] == [
        "fit.ckpt.0-3",
        "fit.ckpt.3-8",
    ]
    assert ends(started(tmp_path, distributed)) == ([[alone], [alone]], [0, 0])
    assert all((tmp_path / f"{index}" / "fit.ckpt").exists() for index in range(2))
    assert (tmp_path / "0" / "log.jsonl").exists()
    assert not (tmp_path / "1" / "log.jsonl").exists()


def test_a_process_that_no_run_falls_to_writes_no_share(tmp_path, monkeypatch):
    """Two of them would write to the same file."""
    recipe = Training(lambda w, batch: w**2, lambda key: key, optax.sgd(0.1), steps=3)
    plan = plan_of(recipe, (jnp.ones(()), jax.random.key(0), None), None, 1, 1, 1, None)
    files = []
    for index in range(3):
        monkeypatch.setattr(transports, "_transport", processes.Folder(tmp_path, index, 3))
        files.append(snapshots.Store(plan, tmp_path / "fit.ckpt", "").file)
    assert files == [None, None, tmp_path / "fit.ckpt.0-1"]
