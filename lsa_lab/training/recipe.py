"""What a training is, where it leaves its files, and what comes of it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optax

from lsa_lab.training.status import Status


@dataclass(frozen=True)
class Training:
    """What is minimised, on which batches, by which rule, and for how many steps.

    The functions are loss(params, batch) and sample(key) -> batch. If each run has leaves of its
    own (``per_run`` of ``fit``), they are loss(params, batch, own), sample(key, own) and
    optimizer(own) -> transformation. A ``curriculum``, an optax-style schedule step -> stage
    (``tasks.curricula``), makes it sample(key, stage) or sample(key, stage, own). Progress bar and
    log call the training by its ``label``.
    """

    loss: Callable
    sample: Callable
    optimizer: optax.GradientTransformation | Callable
    steps: int
    curriculum: Callable | None = None
    label: str = "training"


@dataclass(frozen=True)
class Files:
    """Where a training leaves its checkpoint and its log.

    With ``checkpoint`` the same call, repeated after any end, resumes to the same bits, and returns
    at once when nothing is left to do: the caller deletes the file. Another loss, sample or
    optimizer (the programs that they trace, and their constants), other arrays or versions are
    refused by name; ``identity`` is for whatever else must agree. ``log`` gains one JSON line a
    chunk; resuming repeats none of them, a start from nothing begins to count again.
    """

    checkpoint: str | Path | None = None
    log: str | Path | None = None
    identity: str = ""


@dataclass(frozen=True)
class Run:
    """The last finite params, a record of every step, and how it ended; leading axis R for many.

    ``history`` has "loss" and "grad_norm", both before the step's update, in float64 whatever the
    model's precision, NaN from the step on at which a run diverged; and "watch", if given, of
    the params before the first step and after every chunk (those of a diverged run stand still).
    """

    params: Any
    history: dict[str, Any]  # [steps] or [R, steps]; "watch" [C+1, ...] or [R, C+1, ...]
    status: Status | tuple[Status, ...]
