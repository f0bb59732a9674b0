"""What every part of ``make chaos`` raises."""

import signal
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # where the processes that a part begins run


class Lost(AssertionError):
    """A promise that was not kept; the message says where."""


def was_killed(code: int, what: str, printed: str = "") -> bool:
    """Whether a process was killed, and not over before with 0; Lost if it failed by itself, be it
    just before it was to be killed."""
    if code not in (0, -signal.SIGKILL):
        raise Lost(f"{what} ends with {code}: {printed[-300:] or 'nothing printed'}")
    return code != 0
