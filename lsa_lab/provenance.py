"""Where numbers come from: the versions, the machine and the commit, as attributes of a result."""

import json
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lsa_lab import __version__

# Attributes of a result that are no part of its contents.
NAMES = {"config", "versions", "device", "device_count", "precision", "git_commit"}
NAMES |= {"process_count", "git_dirty", "wall_time", "date", "contents_sha256"}


def facts() -> dict:
    """What decides the last bits of a computation that begins or ends now."""
    import jax

    from lsa_lab import hosts  # which rests on results, as results on this

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
        "device_count": len(jax.local_devices()) * hosts.count(),
        "process_count": hosts.count(),
        "precision": f"{width}, matmul {matmul}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **commit(),
    }


def arithmetic() -> dict[str, str]:
    """What decides the last bits of a program: numbers of another device or version are others."""
    import jax

    return {
        "jax": version("jax"),
        "jaxlib": version("jaxlib"),
        "device": jax.devices()[0].device_kind,
        "matmul precision": str(jax.config.values["jax_default_matmul_precision"]),
    }


def commit() -> dict:
    """The commit of this source, if it is in a repository; 1 if a Python file differs from it."""

    def ask(*words: str) -> str:
        answer = subprocess.run(
            ["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=20
        )
        answer.check_returncode()
        return answer.stdout.strip()

    try:
        ask("ls-files", "--error-unmatch", Path(__file__).name)
        dirty = int(bool(ask("status", "--porcelain", "--", ":(top)*.py")))
        return {"git_commit": ask("rev-parse", "HEAD"), "git_dirty": dirty}
    except (OSError, subprocess.SubprocessError):
        return {}  # an installed copy, or no git
