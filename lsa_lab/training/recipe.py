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

    The functions are loss(params, batch) and sample(key) -> batch. With ``per_run`` of ``fit``
    they take the values of their run, loss(params, batch, values) and sample(key, values), and the
    optimizer is a function values -> transformation. With a ``curriculum``, an optax-style schedule
    step -> stage, the sampler is sample(key, stage) or sample(key, stage, values). Progress bar and
    log name the training by its ``label``.
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
    at once when no step is left; the caller deletes the file. It is refused for another program
    (loss, sampler, optimiser), other arrays or other versions. ``log`` gains one JSON line for each
    chunk; a killed training that resumes writes those since its last checkpoint again.
    """

    checkpoint: str | Path | None = None
    log: str | Path | None = None


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
