"""A2's Algorithm 1 and its variants, with a fair test and the price.

docs/theory, "The search for a rate".

The gain of an edit is the average over prompts of (error without it) - (error with it), on the same
prompts. The edit with the largest gain on validation prompts is tested once on others. What the
validation gain has more than the test gain is what selection alone has won.

A large model has ``split=partial(Factors, folder)`` and, in place of the risk of whole params,
errors(pieces, keep, prompts): those of an edit, however it is run (``rebuild_layer``, lm.halts).
"""

import itertools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from lsa_lab.analyses.clipping.edits import Edit, Risk, several
from lsa_lab.analyses.clipping.factors import Factors
from lsa_lab.analyses.clipping.ranks import DROP, RATES, Rate, condition
from lsa_lab.analyses.clipping.splits import Pieces, Split, by_singular_value
from lsa_lab.analyses.clipping.trials import Average, Errors, Search, Trial
from lsa_lab.models import leaves

Place = tuple[tuple[int, ...], tuple[str, ...]]  # layers, and modules cut together in each


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
    pieces = split(params, several(modules))
    is_exact = split is by_singular_value or isinstance(pieces, Factors)
    conditions = condition_numbers(params, modules, pieces if is_exact else None)
    if not 1 <= top_k <= len(conditions):
        raise ValueError(f"top_k is {top_k}: this model has {len(conditions)} layers")
    order = sorted(range(len(conditions)), key=lambda layer: (conditions[layer], layer))
    deepest = max(order[-top_k:])
    places: list[Place] = [((deepest,), several(modules))]
    trial = Trial(risk, params, validation, pieces, average, errors)
    return _best_of(trial, test, places, rates)


def search_everywhere(
    risk: Risk | None,
    params: Any,
    validation: Any,
    test: Any,
    *,
    modules: Sequence[str | tuple[str, ...]],
    rates: Sequence[Rate] = RATES,
    average: Average = "mean",
    split: Split = by_singular_value,
    errors: Errors | None = None,
) -> Search:
    """The best single edit over all layers, all of ``modules`` and all rates.

    Of equally good ones that with the smallest rate wins, then the first layer.
    """
    pieces = split(params, _flat(modules))
    trial = Trial(risk, params, validation, pieces, average, errors)
    return _best_of(trial, test, _places(pieces, modules), rates)


def compose(
    risk: Risk | None,
    params: Any,
    validation: Any,
    test: Any,
    *,
    modules: Sequence[str | tuple[str, ...]],
    rates: Sequence[Rate] = RATES,
    average: Average = "mean",
    split: Split = by_singular_value,
    errors: Errors | None = None,
) -> Search:
    """One edit after the other from the last layer to the first, each kept if it gains more.

    Modelled on the greedy composition of LASER (Sharma et al. 2312.13558): at each layer and module
    the best rate after the edits chosen so far.
    """
    pieces = split(params, _flat(modules))
    trial = Trial(risk, params, validation, pieces, average, errors)
    edits: tuple[Edit, ...] = ()
    best = 0.0
    for layers, together in reversed(_places(pieces, modules)):
        further = [Edit(layers, together, rate) for rate in _ascending(rates)]
        candidates = [(*edits, edit) for edit in further if trial.cuts(edits, edit)]
        if not candidates:
            continue
        gains = trial.gains(candidates)
        winner = int(np.argmax(gains))
        if gains[winner] > best:
            edits, best = candidates[winner], float(gains[winner])
    return trial.verdict(edits, best, test)


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


def _best_of(trial: Trial, test: Any, places: list[Place], rates: Sequence[Rate]) -> Search:
    """The best single edit, candidates standing in the order in which ties are settled."""
    candidates = [
        (Edit(layers, together, rate),) for rate in _ascending(rates) for layers, together in places
    ]
    gains = trial.gains(candidates)
    winner = int(np.argmax(gains))
    if gains[winner] > 0:
        return trial.verdict(candidates[winner], float(gains[winner]), test)
    return trial.verdict((), 0.0, test)


def _places(pieces: Pieces, modules: Sequence) -> list[Place]:
    """Each layer by itself with each of ``modules``, the first layer first."""
    num_layers = next(iter(pieces.values())).places[0]
    return [((layer,), several(module)) for layer in range(num_layers) for module in modules]


def _flat(modules: Sequence[str | tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(itertools.chain(*map(several, modules)))


def _ascending(rates: Sequence[Rate]) -> list[Rate]:
    if not len(rates):
        raise ValueError("no rates to search")
    return sorted(rates, key=lambda rate: 1.0 if rate == DROP else rate)
