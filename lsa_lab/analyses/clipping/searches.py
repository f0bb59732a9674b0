"""A2's Algorithm 1: search for a clipping rate, and test it on other prompts.

docs/theory, "The search for a rate". The gain of an edit is the mean over prompts of (error without
it) - (error with it), on the same prompts. The edit with the largest gain on validation prompts is
tested once on others. The excess of the validation gain over the test gain is due to selection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lsa_lab.analyses.clipping.curves import Risk, edited_errors, tabulate
from lsa_lab.analyses.clipping.edits import Edit, Pieces, svd_terms
from lsa_lab.analyses.clipping.ranks import DROP, RATES, Rate, condition_number
from lsa_lab.arguments import check_finite
from lsa_lab.models.matrices import matrices
from lsa_lab.models.moments import compiled


@dataclass(frozen=True)
class Search:
    """The edit that a search has chosen, and its gain on other prompts."""

    edits: tuple[Edit, ...]  # empty where no edit helped on validation
    tried: tuple[tuple[Edit, float], ...]  # each candidate and its validation gain
    validation_gain: float
    test_gains: np.ndarray  # [B]  of each test prompt
    test_risk: float  # of the unclipped model

    @property
    def test_gain(self) -> float:
        """Return the mean gain on test prompts."""
        return float(self.test_gains.mean())

    @property
    def optimism(self) -> float:
        """Return the part of the validation gain that the test does not confirm."""
        return self.validation_gain - self.test_gain


def search(
    risk: Risk,
    params: Any,
    validation: Any,
    test: Any,
    *,
    modules: str | tuple[str, ...],
    rates: Sequence[Rate] = RATES,
    top_k: int = 2,
) -> Search:
    """Clip the deepest of the ``top_k`` layers by condition number at its best rate.

    Args:
        risk: returns the errors [B] of one model.
        params: one model.
        validation: prompts to choose the rate with.
        test: other prompts, on which the chosen edit is evaluated once.
        modules: one module, or several that are cut together; A2 leaves the choice open.
        rates: candidates; the smallest of equally good ones wins, after no cut at all.
        top_k: the number of layers with the largest condition numbers.

    Raises:
        ValueError: ``test`` is ``validation``; ``rates`` is empty; ``top_k`` exceeds the number of
            layers; an error of the unclipped model or a candidate's gain is not a number.
    """
    if test is validation:
        raise ValueError("test and validation are the same prompts: the gain would be biased")
    if not len(rates):
        raise ValueError("no rates to search")
    layer = _choose_layer(condition_numbers(params, modules), top_k)
    ascending = sorted(rates, key=lambda rate: 1.0 if rate == DROP else rate)
    edits = [Edit(layer, modules, rate) for rate in ascending]
    pieces = svd_terms(matrices(params, modules))
    before, *after = _measure(risk, params, pieces, edits, validation)
    gains = [float((before - errors).mean()) for errors in after]
    for edit, gain in zip(edits, gains, strict=True):
        if np.isnan(gain) or gain == np.inf:
            raise ValueError(f"the validation gain of {edit} is {gain}: there is no best rate")
    best = int(np.argmax(gains))
    chosen = edits[best : best + 1] if gains[best] > 0 else []
    unclipped, *clipped = _measure(risk, params, pieces, chosen, test)
    test_gains = unclipped - clipped[0] if chosen else np.zeros_like(unclipped)
    check_finite(test_gains, "gains of the test prompts")
    return Search(
        edits=tuple(chosen),
        tried=tuple(zip(edits, gains, strict=True)),
        validation_gain=max(gains[best], 0.0),
        test_gains=test_gains,
        test_risk=float(unclipped.mean()),
    )


def condition_numbers(params: Any, modules: str | Sequence[str]) -> np.ndarray:  # [L]
    """Return s_1/s_min of each layer of one model; of several matrices or heads the largest.

    Infinite for a matrix of deficient rank.
    """
    stacks = matrices(params, modules).values()
    conditions = [np.asarray(condition_number(stack)) for stack in stacks]
    return np.max([values.reshape(len(values), -1).max(-1) for values in conditions], axis=0)


def _choose_layer(conditions: np.ndarray, top_k: int) -> int:
    """Return the deepest of the ``top_k`` layers with the largest condition numbers."""
    if not 1 <= top_k <= len(conditions):
        raise ValueError(f"top_k is {top_k}: this model has {len(conditions)} layers")
    return int(max(np.lexsort((np.arange(len(conditions)), conditions))[-top_k:]))


def _measure(
    risk: Risk, params: Any, pieces: Pieces, edits: Sequence[Edit], batch: Any
) -> list[np.ndarray]:  # 1 + E of [B]
    """Return the errors without an edit and after each of some; those without are finite."""
    table, places, whole = tabulate(params, list(pieces), edits)
    errors = np.asarray(_compute_errors(risk, params, pieces, table, batch), float)
    check_finite(errors[whole], "errors of the unclipped model")
    return [errors[whole], *errors[places]]


_compute_errors = compiled(edited_errors, static_argnames="risk")
