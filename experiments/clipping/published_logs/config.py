"""The sizes of `published_logs`."""

from dataclasses import dataclass

TASKS = ("RTE", "COPA")
ENDS = ("first", "last")  # layers 0 and 1, and the last two


@dataclass(frozen=True)
class Config:
    """The 32 logs of two models, two tasks, attention and MLP of the first and the last two layers.

    Copied from the authors' repository, github.com/chen123CtrlS/EnhancingICL_SVDPruning, folder
    src/results at commit a3d1538. It has four more, of CB, with one deep layer each: left out. A
    score of exactly 0, which no guess has, is no measurement: left out too.
    """

    tasks: tuple[str, ...] = TASKS  # whose logs are counted
    high: float = 0.75  # from this rate on clipping is drastic


TIERS = {"smoke": Config(tasks=("RTE",)), "laptop": Config()}
