"""The end of a run: level, not trained, finished, or diverged."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

_BLOCKS = 10  # block means in a fifth of the steps: neighbouring losses are correlated
_ADVICE = (
    "Likely causes: (1) the steps are too long: try a tenth of the learning rate, a warm-up, or "
    "optax.clip_by_global_norm(1.0); (2) a rare prompt, for L linear layers are a polynomial of "
    "degree 3^L in its entries: try a smaller init scale, more prompts in a batch, or "
    "prompts.normalise; (3) the data, the loss or its gradient (a root at 0, a division by 0) are "
    "not finite by themselves: evaluate them on the batch of that step with jax_debug_nans"
)


@dataclass(frozen=True)
class Status:
    """The end of a run; ``step`` counts the completed steps, and so the valid entries of history.

    "diverged": at step ``step`` the loss, the gradient or the new params were not finite. "level":
    the mean loss of the last two fifths of the steps is the same within two standard errors from
    ten block means each, or the loss does not change beyond rounding; a level loss need not be low.
    "not trained": level, and no lower than over the first fifth, or at the first step. "finished":
    none of these.
    """

    kind: Literal["level", "not trained", "finished", "diverged"]
    step: int

    def __str__(self) -> str:
        where = "at step" if self.kind == "diverged" else "after"
        return f"{self.kind} {where} {self.step}" + " steps" * (self.kind != "diverged")


class DivergedError(ArithmeticError):
    """All runs of a training have diverged, or one of those that are needed."""


def refuse_divergence(
    status: Status | Sequence[Status],
    label: str,
    checkpoint: str | Path | None = None,
    *,
    needs_all: bool = False,
) -> None:
    """Raise DivergedError if every run of a training diverged; with ``needs_all`` if any did.

    The message has the likely causes, and says where ``checkpoint`` keeps the last finite params.
    """
    ends = (status,) if isinstance(status, Status) else tuple(status)
    diverged = [(i, end) for i, end in enumerate(ends) if end.kind == "diverged"]
    if not diverged or (len(diverged) < len(ends) and not needs_all):
        return
    i, end = diverged[0]
    problem = "has no run left" if len(diverged) == len(ends) else "needs all its runs"
    kept = f"; the last finite params are kept in {checkpoint}" if checkpoint else ""
    raise DivergedError(f"{label} {problem}: run {i} of {len(ends)} {end}. {_ADVICE}{kept}")


def classify_run(finite: bool, steps_completed: int, losses: np.ndarray) -> Status:  # [steps]
    """Return the status of a run from its losses.

    Let m_1, ..., m_5 be the mean losses over fifths of the steps, and v their variances. A run is
    level if |m_4 - m_5| <= 2 √(v_4 + v_5), or if the loss stays the same in the last fifth. A level
    run has trained if m_1 - m_5 > 3 √(v_1 + v_5), or if its first loss is above 99 % of the losses
    of the last fifth, because a fall within a few steps hardly changes m_1.
    """
    step = int(steps_completed)
    if not finite:
        return Status("diverged", step)
    size = len(losses) // (5 * _BLOCKS)
    if size == 0:
        return Status("finished", step)
    fifths = losses[-5 * _BLOCKS * size :].reshape(5, _BLOCKS, size)
    blocks = fifths.mean(2)
    means, variances = blocks.mean(1), blocks.var(1, ddof=1) / _BLOCKS
    rounding = 8 * np.finfo(losses.dtype).eps * np.abs(fifths[4]).max()
    changes = np.ptp(fifths[4]) > rounding  # a converged loss has variances that underflow
    if changes and abs(means[3] - means[4]) > 2 * np.sqrt(variances[3] + variances[4]):
        return Status("finished", step)
    fallen = means[0] - means[4] > 3 * np.sqrt(variances[0] + variances[4])
    fallen = fallen or losses[0] > np.quantile(fifths[4], 0.99)
    return Status("level" if fallen else "not trained", step)
