"""Settings of a process are the user's first; the time left is what each took before."""

import io
import os

from lsa_lab.harness import process, progress


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
