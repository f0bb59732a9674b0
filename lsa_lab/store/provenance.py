"""Where numbers come from: the versions, the machine and the commit, as attributes of a result.

What this Python and this machine offer is asked here too; jax is not imported for it.
"""

import functools
import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lsa_lab import __version__

# Attributes of a result that are no part of its contents.
NAMES = {"config", "versions", "device", "device_count", "precision", "git_commit"}
NAMES |= {"process_count", "git_dirty", "wall_time", "date", "contents_sha256"}
# What it is a result of, and the digest of each model's weights, {name: digest} as JSON.
NAMES |= {"experiment", "tier", "package", "package_commit", "package_dirty", "weights"}
NAMES |= {"parts"}  # {part: its own facts}, as JSON, where parts were computed at other times
# How the files that are written here are laid out. A file that says no ``schema`` has the first
# one, which therefore is not written; the next one will be.
SCHEMA = 1
_DECIDING = (":(top)*.py", ":(top)*.npz", ":(top)*.toml", ":(top)*requirements*", ":(top)*.lock")

# Flags of XLA as ``harness.process`` sets them, and values of jax.config that decide bits.
HOUSE_FLAGS = (
    "--xla_cpu_enable_concurrency_optimized_scheduler=false",
    "--xla_gpu_deterministic_ops=true",
    "--xla_gpu_enable_triton_gemm=false",
)
_HOUSE_VALUES = {
    "jax_enable_x64": True,
    "jax_threefry_partitionable": True,
    "jax_default_prng_impl": "threefry2x32",
    "jax_random_seed_offset": 0,
    "jax_disable_most_optimizations": False,
}
NAMES |= {"XLA_FLAGS", *_HOUSE_VALUES}


def facts() -> dict:
    """What decides the last bits of a computation that begins or ends now."""
    import jax

    versions = {"lsa_lab": __version__, "python": platform.python_version()}
    for package in ("jax", "jaxlib", "flax", "optax", "numpy"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "unknown"
    width = jax.numpy.result_type(float).name
    matmul = jax.config.values["jax_default_matmul_precision"] or "default"
    return {
        "versions": json.dumps(versions),
        "device": jax.devices()[0].device_kind,
        "device_count": jax.device_count(),
        "process_count": jax.process_count(),
        "precision": f"{width}, matmul {matmul}",
        **_unusual(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **commit(),
    }


def another_schema(schema: Any, file: str | Path) -> ValueError:
    """The refusal of a file of a schema that this version does not read."""
    return ValueError(
        f"{file} has schema {schema}, and lsa_lab {__version__} reads schema {SCHEMA}: install the "
        f"version that wrote it, or a later one"
    )


def arithmetic() -> dict[str, str]:
    """What decides the last bits of a program: numbers of another device, version or flag are
    others. Flags and values of jax.config are named where they are not those of the house."""
    import jax

    return {
        "jax": version("jax"),
        "jaxlib": version("jaxlib"),
        "device": jax.devices()[0].device_kind,
        "matmul precision": str(jax.config.values["jax_default_matmul_precision"]),
        **_unusual(),
    }


def _unusual() -> dict[str, str]:
    """Flags of XLA and values of jax.config that change bits and are not those of the house.

    The number of host devices is none of them, nor is a place to write to: they change no bit, and
    a path may tell who somebody is.
    """
    import jax

    words = os.environ.get("XLA_FLAGS", "").split()
    flags = sorted(
        word for word in words if "host_platform_device_count" not in word and "/" not in word
    )
    unusual = {"XLA_FLAGS": " ".join(flags) or "none"} if flags != sorted(HOUSE_FLAGS) else {}
    values = {name: jax.config.values.get(name, usual) for name, usual in _HOUSE_VALUES.items()}
    return unusual | {
        name: str(value) for name, value in values.items() if value != _HOUSE_VALUES[name]
    }


@functools.cache
def commit(file: Path = Path(__file__)) -> dict:
    """The commit of a source file, if it is in a repository; dirty is 1 if code, weights, settings
    or locks of the repository differ from it.

    It is asked once a process, before anything is computed: a source that is edited meanwhile is
    not the one that was loaded.
    """

    def ask(*words: str) -> str:
        answer = subprocess.run(
            ["git", *words], cwd=file.parent, capture_output=True, text=True, timeout=20
        )
        answer.check_returncode()
        return answer.stdout.strip()

    try:
        ask("ls-files", "--error-unmatch", file.name)
        dirty = int(bool(ask("status", "--porcelain", "--", *_DECIDING)))
        return {"git_commit": ask("rev-parse", "HEAD"), "git_dirty": dirty}
    except (OSError, subprocess.SubprocessError):
        return {}  # an installed copy, or no git


def cores() -> int:
    """The cores that this process may use, which in a container are fewer than the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
