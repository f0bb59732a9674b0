"""The sizes of `published_logs`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run.bounds import Bounded, between, one_of

TASKS = ("RTE", "COPA")
ENDS = ("first", "last")  # layers 0 and 1, and the last two


@dataclass(frozen=True)
class Config(Bounded):
    """The 32 logs of two models, two tasks, attention and MLP of the first and the last two layers.

    Copied from the authors' repository, github.com/chen123CtrlS/EnhancingICL_SVDPruning, folder
    src/results at commit a3d1538. It has four more, of CB, with one deep layer each: left out. A
    score of exactly 0, which no guess has, is no measurement: left out too.
    """

    tasks: Annotated[tuple[str, ...], one_of(*TASKS)] = TASKS  # whose logs are counted
    high: Annotated[float, between(0.1, 0.995)] = 0.75  # from this rate on clipping is drastic

    def __post_init__(self):
        super().__post_init__()
        if not self.tasks:
            raise ValueError(f"tasks = (): choose some of {TASKS}; nearest {TASKS[:1]}")


TIERS = {"smoke": Config(tasks=("RTE",)), "laptop": Config()}
