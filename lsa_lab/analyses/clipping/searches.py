"""A2's Algorithm 1, with a fair test and the price.

docs/theory, "The search for a rate".

The gain of an edit is the average over prompts of (error without it) - (error with it), on the same
prompts. The edit with the largest gain on validation prompts is tested once on others. What the
validation gain has more than the test gain is what selection alone has won.

A large model has ``split=partial(Factors, folder)`` and, in place of the risk of whole params,
errors(pieces, keep, prompts): those of an edit, however it is run (``rebuild_layer``, lm.halts).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import jax.numpy as jnp
import numpy as np

from lsa_lab.analyses.clipping.cells import errors_after
from lsa_lab.analyses.clipping.edits import Edit, Risk, distinct, keep_masks, several
from lsa_lab.analyses.clipping.factors import Factors
from lsa_lab.analyses.clipping.ranks import DROP, RATES, Rate, condition
from lsa_lab.analyses.clipping.splits import Masks, Pieces, Split, by_singular_value
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


def search(
    risk: Risk | None,
    params: Any,
    validation: Any,
    test: Any,
    *,
    modules: str | tuple[str, ...],
    rates: Sequence[Rate] = RATES,
    top_k: int = 2,
    average: Average = "mean",
    split: Split = by_singular_value,
    errors: Errors | None = None,
) -> Search:
    """A2's Algorithm 1: of the ``top_k`` layers by condition number the deepest, at its best rate.

    One module, or several together, is fixed by the caller, as in A2, which leaves k open. The
    smallest of equally good rates wins; all of them include "no cut". See ``condition_numbers``.
    """
    if average not in get_args(Average):
        raise ValueError(f"average is {average!r}; choose one of {get_args(Average)}")
    if (risk is None) == (errors is None):
        raise ValueError("give a risk of params, or errors of an edit with the risk None")
    if test is validation:
        raise ValueError("test and validation are the same prompts: the gain would be biased")
    pieces = split(params, several(modules))
    is_exact = split is by_singular_value or isinstance(pieces, Factors)
    conditions = condition_numbers(params, modules, pieces if is_exact else None)
    if not 1 <= top_k <= len(conditions):
        raise ValueError(f"top_k is {top_k}: this model has {len(conditions)} layers")
    order = sorted(range(len(conditions)), key=lambda layer: (conditions[layer], layer))
    deepest = max(order[-top_k:])
    candidates = [Edit((deepest,), several(modules), rate) for rate in _ascending(rates)]
    masks = [keep_masks(params, pieces, edit) for edit in candidates]
    whole = {name: np.ones(piece.places, bool) for name, piece in pieces.items()}

    def errors_of(cuts: Sequence[Masks], batch: Any) -> np.ndarray:  # [C, B]
        if risk is None:
            rows: Any = [cast(Errors, errors)(pieces, keep, batch) for keep in cuts]
        else:
            table = {name: np.stack([keep[name] for keep in cuts]) for name in whole}
            rows = errors_after((params, pieces), table, batch, risk=risk)
        return np.stack([np.asarray(row, float) for row in rows])

    def averaged(gains: np.ndarray) -> np.ndarray:  # [..., B] -> [...]
        return getattr(np, average)(gains, axis=-1)

    base = _finite(errors_of([whole], validation), "the unclipped model")
    table, place = distinct(masks)  # rates of one rank are one run; -1, nothing is cut
    cuts = [dict(zip(table, rows, strict=True)) for rows in zip(*table.values(), strict=True)]
    errors_by_cut = np.concatenate([errors_of(cuts, validation), base]) if cuts else base
    gains = averaged(base - errors_by_cut[place])
    for edit, gain in zip(candidates, gains, strict=True):
        if np.isnan(gain) or gain == np.inf:
            error = "NaN" if np.isnan(gain) else "minus infinity"
            raise ValueError(f"the validation error with {edit} is {error}: no best rate")
    best = int(np.argmax(gains))
    helps = bool(gains[best] > 0)
    kept = masks[best] if helps else whole
    before, after = _finite(errors_of([whole, kept], test), "the test prompts")
    interval = claims.mean_interval if average == "mean" else claims.median_interval
    return Search(
        edits=(candidates[best],) if helps else (),
        tried=tuple(zip(candidates, gains.tolist(), strict=True)),
        validation_gain=float(gains[best]) if helps else 0.0,
        test_gain=float(averaged(before - after)),
        test_interval=interval(before - after),
        test_risk=float(averaged(before)),
        forward_passes=errors_by_cut.size + before.size + after.size,
    )


def condition_numbers(
    params: Any, modules: str | Sequence[str], pieces: Pieces | None = None
) -> np.ndarray:  # [L]
    """s_1/s_min of each layer; of several matrices or heads the largest. Rank-deficient: infinity.

    Merged weights and stacked heads have that of the matrix as it is cut (``splits``). ``pieces``:
    those by singular value, such as ``Factors``, where they are at hand.
    """
    leaves.check_one_model(params, modules)
    terms: Any = by_singular_value(params, modules) if pieces is None else pieces
    every = [np.asarray(condition(jnp.asarray(piece.values))) for piece in terms.values()]
    return np.stack([c.reshape(len(c), -1).max(-1) for c in every]).max(0)


def _finite(errors: np.ndarray, whose: str) -> np.ndarray:
    bad = int(np.sum(~np.isfinite(errors)))
    if bad:
        raise ValueError(f"{bad} of {errors.size} errors of {whose} are NaN or infinite")
    return errors


def _ascending(rates: Sequence[Rate]) -> list[Rate]:
    if not len(rates):
        raise ValueError("no rates to search")
    return sorted(rates, key=lambda rate: 1.0 if rate == DROP else rate)
