"""The settings of a process."""

import os

import jax

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


def test_compiled_programs_are_dropped_before_they_hold_all_mappings_of_memory(monkeypatch):
    double = jax.jit(lambda x: 2 * x)
    double(1.0)
    monkeypatch.setattr(process, "ENOUGH_MAPPINGS", 10**9)
    process.free_mappings()
    assert double._cache_size() == 1, "there are few"
    monkeypatch.setattr(process, "ENOUGH_MAPPINGS", 0)
    process.free_mappings()
    assert double._cache_size() == 0
