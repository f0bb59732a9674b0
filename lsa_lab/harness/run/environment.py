"""Whether this Python has what the laboratory needs; it imports nothing but Python's own."""

from __future__ import annotations  # an old Python reads this file too

import sys
from importlib.util import find_spec
from pathlib import Path

_NEEDED = ("jax", "flax", "optax", "chex", "numpy", "matplotlib", "xarray", "rich")


def advice() -> str | None:
    """A sentence for whoever called another Python than the one with the packages, or None."""
    lacking = [name for name in _NEEDED if find_spec(name) is None]
    if sys.version_info >= (3, 11) and not lacking:
        return None
    what = f"no {lacking[0]}" if lacking else "not version 3.11 or later"
    words = " ".join(["lsa-lab", *sys.argv[1:]])
    if Path(".venv/bin/lsa-lab").exists():
        return f"{sys.executable} has {what}: type .venv/bin/{words} or first . .venv/bin/activate"
    return f"{sys.executable} has {what}: type make install and then .venv/bin/{words}"
