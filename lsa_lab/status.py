"""How a run ended."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

_BLOCKS = 10  # block means in a fifth of the steps: neighbouring losses are correlated


@dataclass(frozen=True)
class Status:
    """How a run ended; ``step`` counts the steps taken, hence the valid entries of its history.

    "diverged": at step ``step`` the loss, the gradient or the new params were not finite, first in
    ``leaf``, which is "loss" or a leaf of params. "converged": over the last fifth of the steps the
    loss has the mean of the fifth before, within two standard errors from ten block means each.
    "finished": neither.
    """

    kind: Literal["converged", "finished", "diverged"]
    step: int
    leaf: str | None = None

    def __str__(self) -> str:
        if self.kind == "diverged":
            return f"diverged at step {self.step} in {self.leaf}"
        return f"{self.kind} after {self.step} steps"


def status_of(
    finite: np.ndarray, taken: np.ndarray, losses: np.ndarray, names: list[str]
) -> Status:
    if not finite.all():
        return Status("diverged", int(taken), ["loss", *names, *names][int(np.argmin(finite))])
    return Status("converged" if _is_level(losses) else "finished", int(taken))


def _is_level(losses: np.ndarray) -> bool:  # [steps]
    """Whether |m_4 - m_5| <= 2 sqrt(v_4 + v_5), m and v the mean and its variance over a fifth."""
    size = len(losses) // (5 * _BLOCKS)
    if size == 0:
        return False
    blocks = losses[-2 * _BLOCKS * size :].reshape(2, _BLOCKS, size).mean(2)
    error = np.sqrt(blocks.var(1, ddof=1).sum() / _BLOCKS)
    return bool(abs(blocks[0].mean() - blocks[1].mean()) <= 2 * error)
