"""Hours after which a run stops as after Ctrl-C: at a checkpoint, and the same words go on."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from lsa_lab.harness.refusal import RefusalError
from lsa_lab.training import console


@dataclass
class Budget:
    """So many hours, or None for as many as it takes."""

    hours: float | None
    is_over: bool = False

    def __post_init__(self):
        if self.hours is not None and not 0 < self.hours < threading.TIMEOUT_MAX / 3600:
            raise RefusalError(f"--hours {self.hours:g}: choose a number above 0, such as 0.5")

    def __str__(self) -> str:
        return f"{self.hours:g} {'hour is' if self.hours == 1 else 'hours are'} over"

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Interrupt what is inside when the hours are over."""
        if self.hours is None:
            yield
            return
        before = signal.getsignal(signal.SIGINT)
        if before is signal.SIG_IGN:  # in the background of a script
            signal.signal(signal.SIGINT, signal.default_int_handler)
        timer = threading.Timer(3600 * self.hours, self._end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            signal.signal(signal.SIGINT, before)

    def _end(self) -> None:
        self.is_over = True
        console.interrupt()
