"""How a form is timed inside its process; no jax is imported."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Spent = tuple[float, float]  # seconds of one unit: on the clock, and of the processor


@dataclass(frozen=True)
class Form:
    """One way of doing a workload. A turn repeats each of its points ``units`` times, or does a
    fraction of it.

    ``flops`` compiles the unit once more and says what the compiler counts; None where it doesn't.
    """

    turn: Callable[[], list[Spent]]
    units: Sequence[float]
    flops: Callable[[], list[float | None]] = field(default=lambda: [None])


def calls(
    *functions: Callable[[], Any], units: Sequence[int], wait: Callable = lambda x: x
) -> Callable:
    """A turn that calls each function so many times, one call after the other."""

    def turn() -> list[Spent]:
        return [
            time_calls(function, count, wait)
            for function, count in zip(functions, units, strict=True)
        ]

    return turn


def time_calls(function: Callable[[], Any], count: int, wait: Callable) -> Spent:
    began, used = time.perf_counter(), time.process_time()
    for _ in range(count):
        last = function()
    wait(last)
    return (time.perf_counter() - began) / count, (time.process_time() - used) / count


class Clock:
    """What ``fit`` takes for its progress bar: it notes when the chunks end."""

    def __init__(self) -> None:
        self.ends: list[Spent] = []

    def add_task(self, *_: Any, **__: Any) -> int:
        return 0

    def update(self, *_: Any, **__: Any) -> None:
        self.ends.append((time.perf_counter(), time.process_time()))

    def spent(self, steps: int) -> Spent:
        """A step's seconds between the first chunk's end and the last's, ``steps`` apart."""
        (began, used), (ended, all_used) = self.ends[0], self.ends[-1]
        return (ended - began) / steps, (all_used - used) / steps
