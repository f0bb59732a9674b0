"""The folder of what can be had again: compiled programs, checkpoints, downloads."""

import os
from pathlib import Path


def cache() -> Path:
    """Where it is: LSA_LAB_CACHE, or .cache in the working folder."""
    return Path(os.path.expanduser(os.environ.get("LSA_LAB_CACHE") or ".cache"))
