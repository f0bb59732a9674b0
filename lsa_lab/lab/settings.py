"""Settings of a process that computes, made once at an entry point, before jax is imported."""

import gc
import os
from importlib.metadata import version
from pathlib import Path

from lsa_lab.files import cache_folder

# Two batched factorisations at the same time can wait for each other for ever on two cores
# (jaxlib 0.10). On a GPU, sums by atomic operations differ from run to run, and kernels generated
# by Triton find no configuration for some float32 products.
FLAGS = (
    "--xla_cpu_enable_concurrency_optimized_scheduler=false",
    "--xla_gpu_deterministic_ops=true",
    "--xla_gpu_enable_triton_gemm=false",
)
# Loops that MLIR emits take twice as long to compile and train no faster (jaxlib 0.10).
EMITTERS_OFF = ("--xla_cpu_use_fusion_emitters=false",)
# Small tiers compile longer than they compute: half of the time with code that is optimised less.
FAST_COMPILATION = (
    "--xla_cpu_parallel_codegen_split_count=1",
    "--xla_backend_optimization_level=1",
    "--xla_llvm_disable_expensive_passes=true",
)


def set_environment(tier: str = "full") -> None:
    """Set flags of XLA and one thread for linear algebra; call it before jax and numpy load."""
    flags = os.environ.get("XLA_FLAGS", "")
    is_old, is_small = version("jaxlib").startswith("0.10."), tier in ("smoke", "quick")
    for flag in FLAGS + EMITTERS_OFF * is_old + FAST_COMPILATION * (is_old and is_small):
        if flag.partition("=")[0] not in flags:
            flags = f"{flags} {flag}"
    os.environ["XLA_FLAGS"] = flags.strip()
    for name in ("OMP", "OPENBLAS", "MKL"):  # their number changes rounding in factorisations
        os.environ.setdefault(f"{name}_NUM_THREADS", "1")


def configure(tier: str = "full") -> None:
    """Set the environment, then float64, exact products and the cache of compiled programs."""
    set_environment(tier)
    import jax

    jax.config.update("jax_enable_x64", True)
    # GPUs and TPUs otherwise round the factors of a float32 product to 10 or even 7 bits.
    jax.config.update("jax_default_matmul_precision", "highest")
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder().resolve() / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def free_mappings(enough: int = 30_000) -> None:
    """Drop compiled programs where they hold half of the mappings of memory that Linux grants to a
    process, 65 530: without one more, XLA dies."""
    import jax

    mappings = Path("/proc/self/maps")
    if mappings.exists() and mappings.read_text().count("\n") > enough:
        jax.clear_caches()
        gc.collect()
