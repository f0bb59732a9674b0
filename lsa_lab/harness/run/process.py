"""The settings of a process that computes: called once, at an entry point, before jax is imported.

The library reads no environment and sets nothing; tests choose stricter settings of their own.
"""

import gc
import os
from pathlib import Path

from lsa_lab.files import cache_folder
from lsa_lab.store.provenance import HOUSE_FLAGS, cores

MOST_DEVICES = 8
ENOUGH_MAPPINGS = 30_000


def set_environment() -> None:
    """What XLA and the linear algebra libraries read once, when they are loaded.

    JAX_PLATFORMS is left alone: where there is a GPU, it is used.
    """
    # Small batched products use one core of one host device. With one device a core, the runs are
    # spread over the cores; most experiments have eight runs.
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_force_host_platform_device_count" not in flags:
        count = min(cores(), MOST_DEVICES)
        flags = f"{flags} --xla_force_host_platform_device_count={count}"
    # Two batched factorisations at the same time can wait for each other for ever on two cores
    # (seen with jaxlib 0.10): one operation after the other costs small arrays nothing.
    # On a GPU sums by atomic operations and kernels chosen by a stopwatch change the last bits from
    # run to run; deterministic operations are neither. With them, kernels that Triton generates for
    # float32 products find no configuration (seen with jaxlib 0.11 on an H100): the products are
    # left to cuBLAS.
    for flag in HOUSE_FLAGS:
        if flag.partition("=")[0].lstrip("-") not in flags:
            flags = f"{flags} {flag}"
    os.environ["XLA_FLAGS"] = flags.strip()
    # The devices are the parallelism: a pool of threads in each of them only gets in the way, and
    # the last bits of a sum would depend on the number of threads.
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(threads, "1")


def configure() -> None:
    """The environment, then jax in float64, with exact products and a cache of compiled programs.

    Experiments that train in float32 say so in the dtype of their arrays.
    """
    set_environment()
    import jax

    jax.config.update("jax_enable_x64", True)
    # GPUs and TPUs otherwise round the factors of a float32 product to 10 or even 7 bits.
    jax.config.update("jax_default_matmul_precision", "highest")
    # The second run of an experiment starts at once: compiling is a good part of a short one.
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder().resolve() / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def free_mappings() -> None:
    """Drop compiled programs where they hold half of the mappings of memory that Linux grants to a
    process, 65 530: without one more, XLA dies."""
    import jax

    mappings = Path("/proc/self/maps")
    if mappings.exists() and mappings.read_text().count("\n") > ENOUGH_MAPPINGS:
        jax.clear_caches()
        gc.collect()
