"""Settings of a process are the user's first."""

import ast
import os
import signal
import subprocess
import sys
import time

import jax
import pytest

from lsa_lab.harness.run import process


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
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_deterministic_ops=false")
    process.set_environment()
    assert "deterministic_ops=true" not in os.environ["XLA_FLAGS"]
    assert os.environ["XLA_FLAGS"].endswith("--xla_gpu_enable_triton_gemm=false")


def test_a_command_counts_the_threads_of_linear_algebra_before_numpy_does():
    code = (
        "from lsa_lab.harness.cli.command_line import main; main(['list']);"
        "import threadpoolctl as t; print([p['num_threads'] for p in t.threadpool_info()])"
    )
    free = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=free)
    assert set(ast.literal_eval(done.stdout.splitlines()[-1])) == {1}, done.stderr


def test_compiled_programs_are_dropped_before_they_hold_all_mappings_of_memory(monkeypatch):
    double = jax.jit(lambda x: 2 * x)
    double(1.0)
    monkeypatch.setattr(process, "ENOUGH_MAPPINGS", 10**9)
    process.free_mappings()
    assert double._cache_size() == 1, "there are few"
    monkeypatch.setattr(process, "ENOUGH_MAPPINGS", 0)
    process.free_mappings()
    assert double._cache_size() == 0


def test_an_interrupt_that_is_lost_in_a_callback_is_raised_again():
    class Callback:
        def __del__(self):
            raise KeyboardInterrupt

    def work():
        Callback()
        time.sleep(10)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background
    with pytest.raises(KeyboardInterrupt), process.interrupts_return():
        work()
    signal.signal(signal.SIGINT, before)
