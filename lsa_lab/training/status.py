"""How a run ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

_BLOCKS = 10  # block means in a fifth of the steps: neighbouring losses are correlated
_CAUSES = (
    "the steps are too long: a tenth of the learning rate, a warm-up, or "
    "optax.chain(optax.clip_by_global_norm(1.0), ...)",
    "a rare prompt, for L linear layers are a polynomial of degree 3^L in its entries: a smaller "
    "init scale, more prompts in a batch, fewer layers, or prompts.normalised",
    "the data, the loss or its gradient (a root at 0, a division by 0) are not finite by "
    "themselves: evaluate them on the batch of that step with jax_debug_nans",
)


@dataclass(frozen=True)
class Status:
    """How a run ended; ``step`` counts the steps taken, hence the valid entries of its history.

    "diverged": at step ``step`` the loss, the gradient or the new params were not finite, first in
    ``leaf``, which is "loss" or a leaf of params. "level": over the last fifth of the steps the
    loss has the mean of the fifth before, within two standard errors from ten block means each, or
    stays the same to rounding, 0 included; which does not say that it is low. "not trained": level,
    and no lower than over the first fifth, or at the first step. "finished": none of these.
    """

    kind: Literal["level", "not trained", "finished", "diverged"]
    step: int
    leaf: str | None = None

    def __str__(self) -> str:
        if self.kind == "diverged":
            return f"diverged at step {self.step} in {self.leaf}"
        return f"{self.kind} after {self.step} steps"

    @property
    def advice(self) -> str:
        """The three likely causes of a divergence, the likeliest first, and what to try; empty for
        a run that ended otherwise."""
        if self.kind != "diverged":
            return ""
        # Steps that are too long need some before they show.
        first, second, third = _CAUSES if self.step else (_CAUSES[2], *_CAUSES[:2])
        return f"(1) {first}; (2) {second}; (3) {third}"


class DivergedError(ArithmeticError):
    """A training of which no run is left, or not all that are needed."""


def refuse_divergence(
    status: Status | Sequence[Status],
    label: str,
    checkpoint: str | Path | None = None,
    *,
    needs_all: bool = False,
) -> None:
    """Raise DivergedError if every run of a training diverged: there is nothing to look at; with
    ``needs_all`` if any did.

    The message has the causes, and says where ``checkpoint`` keeps the last finite params.
    """
    ends = (status,) if isinstance(status, Status) else tuple(status)
    diverged = [(i, end) for i, end in enumerate(ends) if end.kind == "diverged"]
    if not diverged or (len(diverged) < len(ends) and not needs_all):
        return
    i, end = diverged[0]
    which = f"run {i} of its {len(ends)}" if len(ends) > 1 else "its run"
    fate = "has no run left" if len(diverged) == len(ends) else "needs all its runs"
    kept = f"; the last finite params are kept in {checkpoint}" if checkpoint else ""
    raise DivergedError(
        f"{label} {fate}: {which} {end}. Likely causes, and what to try: {end.advice}{kept}"
    )


def status_of(
    finite: np.ndarray, taken: np.ndarray, losses: np.ndarray, names: list[str]
) -> Status:
    if not finite.all():
        return Status("diverged", int(taken), ["loss", *names, *names][int(np.argmin(finite))])
    return Status(_kind(losses), int(taken))


def _kind(losses: np.ndarray) -> Literal["level", "not trained", "finished"]:  # [steps]
    """The means m and their variances v over fifths of the steps tell: level if
    |m_4 - m_5| <= 2 √(v_4 + v_5), and fallen if m_1 - m_5 > 3 √(v_1 + v_5), or if the first loss is
    above all but a hundredth of the last fifth's: a fall within a few steps is lost in m_1. Level
    is also a last fifth that stays the same."""
    size = len(losses) // (5 * _BLOCKS)
    if size == 0:
        return "finished"
    fifths = losses[-5 * _BLOCKS * size :].reshape(5, _BLOCKS, size)
    blocks = fifths.mean(2)
    means, variances = blocks.mean(1), blocks.var(1, ddof=1) / _BLOCKS
    rounding = 8 * np.finfo(losses.dtype).eps * np.abs(fifths[4]).max()
    moves = np.ptp(fifths[4]) > rounding  # what converges has variances that underflow
    if moves and abs(means[3] - means[4]) > 2 * np.sqrt(variances[3] + variances[4]):
        return "finished"
    fallen = means[0] - means[4] > 3 * np.sqrt(variances[0] + variances[4])
    return "level" if fallen or losses[0] > np.quantile(fifths[4], 0.99) else "not trained"
