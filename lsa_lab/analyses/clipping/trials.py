"""One search: candidates judged on validation prompts, the winner tested once on others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np

from lsa_lab.analyses.clipping.cells import errors_after
from lsa_lab.analyses.clipping.edits import Edit, Risk, distinct, keep_masks
from lsa_lab.analyses.clipping.splits import Masks, Pieces
from lsa_lab.judging import claims
from lsa_lab.models import leaves

Average = Literal["mean", "median"]
Errors = Callable[[Pieces, Masks, Any], Any]  # (pieces, places kept, prompts [B]) -> errors [B]


@dataclass(frozen=True)
class Search:
    """The edits that a search has chosen, and what they are worth on other prompts."""

    edits: tuple[Edit, ...]  # applied together; none where nothing helped on validation
    tried: tuple[tuple[Edit, float], ...]  # each candidate and the validation gain with it
    validation_gain: float
    test_gain: float
    test_interval: claims.Interval  # over the test prompts
    test_risk: float  # of the unclipped model
    forward_passes: int  # prompts pushed through a model, validation and test

    @property
    def optimism(self) -> float:
        """The part of the validation gain that the test does not confirm."""
        return self.validation_gain - self.test_gain


class Trial:
    """The validation prompts, the errors of the unclipped model on them, and what was spent."""

    def __init__(
        self,
        risk: Risk | None,
        params: Any,
        validation: Any,
        pieces: Pieces,
        average: Average,
        errors: Errors | None = None,
    ):
        if average not in get_args(Average):
            raise ValueError(f"average is {average!r}; choose one of {get_args(Average)}")
        if (risk is None) == (errors is None):
            raise ValueError("give a risk of params, or errors of an edit with the risk None")
        leaves.check_one_model(params, tuple(pieces))
        self.params, self.pieces, self.validation = params, pieces, validation
        self.risk, self.errors = risk, cast(Errors, errors)  # one of the two is None
        self.average: Callable = getattr(np, average)
        self.interval = {"mean": claims.mean_interval, "median": claims.median_interval}[average]
        (base,) = self._errors([self._masks(())], validation)
        self.base = _finite(base, "the unclipped model")
        self.forward_passes = len(self.base)
        self.tried: list[tuple[Edit, float]] = []

    def gains(self, candidates: Sequence[tuple[Edit, ...]]) -> np.ndarray:  # [C]
        """The validation gain of each set of edits; sets that keep the same ranks are run once."""
        table, place = distinct([self._masks(edits) for edits in candidates])
        rows = range(len(next(iter(table.values()))))
        cuts = [{name: masks[row] for name, masks in table.items()} for row in rows]
        errors = self._errors(cuts, self.validation)
        self.forward_passes += len(errors) * len(self.base)
        paired = self.base - np.stack([*errors, self.base])[place]  # -1, nothing is cut: gain 0
        gains = self.average(paired, axis=1)
        for edits, gain in zip(candidates, gains, strict=True):
            if np.isnan(gain) or gain == np.inf:
                error = "NaN" if np.isnan(gain) else "minus infinity"
                raise ValueError(f"the validation error with {edits[-1]} is {error}: no best rate")
            self.tried.append((edits[-1], float(gain)))
        return gains

    def cuts(self, edits: tuple[Edit, ...], edit: Edit) -> bool:
        """Whether another edit takes anything that ``edits`` have left."""
        before, after = self._masks(edits), self._masks((*edits, edit))
        return any((before[name] != after[name]).any() for name in before)

    def verdict(self, edits: tuple[Edit, ...], validation_gain: float, test: Any) -> Search:
        """The one test: the unclipped model and the chosen one on prompts not searched with."""
        if test is self.validation:
            raise ValueError("test and validation are the same prompts: the gain would be biased")
        errors = self._errors([self._masks(cut) for cut in ((), edits)], test)
        base, clipped = _finite(np.stack(errors), "the test prompts")
        gains = base - clipped
        return Search(
            edits=edits,
            tried=tuple(self.tried),
            validation_gain=validation_gain,
            test_gain=float(self.average(gains)),
            test_interval=self.interval(gains),
            test_risk=float(self.average(base)),
            forward_passes=self.forward_passes + base.size + clipped.size,
        )

    def _masks(self, edits: tuple[Edit, ...]) -> Masks:
        """Places that every one of the edits keeps."""
        masks = {name: np.ones(piece.places, bool) for name, piece in self.pieces.items()}
        for edit in edits:
            cut = keep_masks(self.params, self.pieces, edit)
            masks = {name: mask & cut[name] for name, mask in masks.items()}
        return masks

    def _errors(self, cuts: Sequence[Masks], batch: Any) -> list[np.ndarray]:  # of each cut [B]
        if not cuts:
            return []
        if self.risk is None:
            rows: Any = [self.errors(self.pieces, keep, batch) for keep in cuts]
        else:
            table = {name: np.stack([keep[name] for keep in cuts]) for name in cuts[0]}
            rows = errors_after((self.params, self.pieces), table, batch, risk=self.risk)
        return [np.asarray(row, float) for row in rows]


def _finite(errors: np.ndarray, whose: str) -> np.ndarray:
    bad = int(np.sum(~np.isfinite(errors)))
    if bad:
        raise ValueError(f"{bad} of {errors.size} errors of {whose} are NaN or infinite")
    return errors
