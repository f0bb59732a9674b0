"""What a process is refused for before it computes, and whose settings it keeps."""

import ast
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import environment, precision, process


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
        for _ in range(1000):  # an interrupt comes between two sleeps, and ends none
            time.sleep(0.01)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background
    with pytest.raises(KeyboardInterrupt), process.interrupts_return():
        work()
    signal.signal(signal.SIGINT, before)


ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def elsewhere(tmp_path):
    """The sources that ``python -m experiments`` needs before anything else, in another folder."""
    for name in ("lsa_lab", "experiments"):
        for path in (ROOT / name).rglob("*.py"):
            copy = tmp_path / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    return tmp_path


@pytest.mark.parametrize("installed", [True, False])
def test_without_the_packages_a_sentence_names_the_program_that_has_them(elsewhere, installed):
    if installed:
        (elsewhere / ".venv" / "bin").mkdir(parents=True)
        (elsewhere / ".venv" / "bin" / "lsa-lab").touch()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LAUNCH, "run", "depth"],  # -S: no site-packages
        cwd=elsewhere,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "has no jax" in line
    assert ".venv/bin/lsa-lab run depth" in line
    assert ("activate" in line) == installed
    assert ("make install" in line) != installed


LAUNCH = """if True:
    import runpy, sys
    sys.path.insert(0, "")
    sys.argv[0] = "experiments"
    runpy.run_module("experiments", run_name="__main__")
"""


def test_with_the_packages_nothing_is_said():
    assert environment.advice() is None


def kept(bits):
    """The product as hardware makes it that keeps so many bits of the factors' fractions."""

    def rounded(x):
        fraction, exponent = np.frexp(np.asarray(x, float))
        return np.ldexp(np.round(fraction * 2.0 ** (bits + 1)), exponent - bits - 1)

    return lambda left, right: rounded(left) @ rounded(right)


@pytest.mark.parametrize(("bits", "error"), [(7, "0.002"), (10, "0.0003")], ids=["bf16", "TF32"])
def test_a_product_of_rounded_factors_is_refused_and_the_message_says_what_to_set(bits, error):
    with pytest.raises(RefusalError) as refused:
        precision.check(kept(bits))
    said = str(refused.value)
    assert f"wrong by {error} of its size" in said
    assert 'jax.config.update("jax_default_matmul_precision", "highest")' in said


def test_three_products_of_bfloat16_in_place_of_one_are_refused_too():
    def high(left, right):
        parts = [np.asarray(x, jnp.bfloat16).astype(np.float32) for x in (left, right)]
        rests = [
            np.asarray(x - part, jnp.bfloat16).astype(np.float32)
            for x, part in zip((left, right), parts, strict=True)
        ]
        return parts[0] @ parts[1] + parts[0] @ rests[1] + rests[0] @ parts[1]

    with pytest.raises(RefusalError, match="wrong by"):
        precision.check(high)


def test_the_products_of_this_process_pass_within_milliseconds():
    precision.check()
    began = time.process_time()
    precision.check()
    assert time.process_time() - began < 0.05
    precision.check(lambda left, right: np.asarray(left, float) @ np.asarray(right, float))


def test_a_run_under_a_lowered_precision_is_refused_before_anything_is_computed(
    toy, program, capsys
):
    with jax.default_matmul_precision("BF16_BF16_F32"):
        assert program("run", "toy") == 2
    assert "which is now 'BF16_BF16_F32'" in capsys.readouterr().err
    assert not list(toy.rglob("result.nc"))
    assert not list((toy / "cache").rglob("half"))
