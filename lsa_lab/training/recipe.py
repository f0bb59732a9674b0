"""The arguments and the result of ``fit``: Training, Files, Run."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optax

from lsa_lab.training.status import Status


@dataclass(frozen=True)
class Training:
    """The loss, the batches, the optimiser and the number of steps of a training.

    The functions are loss(params, batch) and sample(key) -> batch. If each run has leaves of its
    own (``per_run`` of ``fit``), they are loss(params, batch, own), sample(key, own) and
    optimizer(own) -> transformation. With a ``curriculum``, an optax-style schedule step -> stage
    (``tasks.curricula``), the sampler is sample(key, stage) or sample(key, stage, own). Progress
    bar and log name the training by its ``label``.
    """

    loss: Callable
    sample: Callable
    optimizer: optax.GradientTransformation | Callable
    steps: int
    curriculum: Callable | None = None
    label: str = ""


@dataclass(frozen=True)
class Files:
    """The files of a training: its checkpoint and its log.

    With ``checkpoint`` the same call, repeated after any end, resumes to the same bits, and returns
    at once when no step is left; the caller deletes the file. Another loss, sample or optimizer
    (the programs that they trace, and their constants), other arrays or versions are refused by
    name; ``identity`` is for whatever else must agree. ``log`` gains one JSON line for each chunk,
    and resuming repeats none of them.
    """

    checkpoint: str | Path | None = None
    log: str | Path | None = None
    identity: str = ""


@dataclass(frozen=True)
class Run:
    """The result of ``fit``, with a leading axis R for many runs.

    ``params`` are the last finite ones. ``history`` has "loss" and "grad_norm", both before the
    update of the step, in float64 whatever the precision of the model, NaN from the step on at
    which a run diverged; and "watch", if given, of the params before the first step and after every
    chunk (constant once a run has diverged).
    """

    params: Any
    history: dict[str, Any]  # [steps] or [R, steps]; "watch" [C+1, ...] or [R, C+1, ...]
    status: Status | tuple[Status, ...]
