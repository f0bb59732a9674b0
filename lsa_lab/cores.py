"""How many programs this process may run at the same time; jax is not imported."""

import os


def cores() -> int:
    """The cores that this process may use, which in a container are fewer than the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
