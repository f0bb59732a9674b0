"""How a run ended."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

_BLOCKS = 10  # block means in a fifth of the steps: neighbouring losses are correlated


@dataclass(frozen=True)
class Status:
    """How a run ended; ``step`` counts the steps taken, hence the valid entries of its history.

    "diverged": at step ``step`` the loss, the gradient or the new params were not finite, first in
    ``leaf``, which is "loss" or a leaf of params. "level": over the last fifth of the steps the
    loss has the mean of the fifth before, within two standard errors from ten block means each,
    which does not say that it is low. "not trained": level, and no lower than over the first fifth,
    or at the first step. "finished": none of these.
    """

    kind: Literal["level", "not trained", "finished", "diverged"]
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
    return Status(_kind(losses), int(taken))


def _kind(losses: np.ndarray) -> Literal["level", "not trained", "finished"]:  # [steps]
    """The means m and their variances v over fifths of the steps tell: level if
    |m_4 - m_5| <= 2 √(v_4 + v_5), and fallen if m_1 - m_5 > 3 √(v_1 + v_5), or if the first loss is
    above all but a hundredth of the last fifth's: a fall within a few steps is lost in m_1."""
    size = len(losses) // (5 * _BLOCKS)
    if size == 0:
        return "finished"
    fifths = losses[-5 * _BLOCKS * size :].reshape(5, _BLOCKS, size)
    blocks = fifths.mean(2)
    means, variances = blocks.mean(1), blocks.var(1, ddof=1) / _BLOCKS
    if abs(means[3] - means[4]) > 2 * np.sqrt(variances[3] + variances[4]):
        return "finished"
    fallen = means[0] - means[4] > 3 * np.sqrt(variances[0] + variances[4])
    return "level" if fallen or losses[0] > np.quantile(fifths[4], 0.99) else "not trained"
