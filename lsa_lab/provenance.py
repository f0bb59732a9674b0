"""The origin of numbers: versions, device, flags of XLA, commit and date."""

import datetime
import functools
import json
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("lsa-lab", "jax", "jaxlib", "flax", "optax", "numpy", "scipy")


def collect_facts(root: Path) -> dict[str, Any]:
    """Return what a file of results says of its run; ``root`` is a folder of the repository."""
    import jax

    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "unknown"
    flags = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if "/" not in flag]
    return {
        "versions": json.dumps(versions),
        "device": jax.devices()[0].device_kind,
        "device_count": jax.device_count(),
        "xla_flags": " ".join(flags),
        "precision": jax.numpy.result_type(float).name,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **find_commit(root),
    }


def find_commit(folder: Path) -> dict[str, Any]:
    """Return the commit of a folder, and 1 as "dirty" if code differs from it; {} without git."""
    ask = functools.partial(
        subprocess.run, cwd=folder, capture_output=True, text=True, timeout=20, check=True
    )
    code = [":(top)*.py", ":(top)*registered.json", ":(top)*.safetensors"]
    try:
        changed = ask(["git", "status", "--porcelain", "--", *code]).stdout
        commit = ask(["git", "rev-parse", "HEAD"]).stdout.strip()
        return {"commit": commit, "dirty": int(bool(changed))}
    except (OSError, subprocess.SubprocessError):
        return {}
