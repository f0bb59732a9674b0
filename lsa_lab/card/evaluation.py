"""The numbers of a card, with medians and verdicts, and what they are measured on."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jax import Array
from scipy.special import bdtr

from lsa_lab.card.batches import Batch, PromptDistribution, bayes_predictions, draw_batch
from lsa_lab.card.model_under_test import ModelUnderTest
from lsa_lab.card.recipe import Tier
from lsa_lab.training import Run

Interval = tuple[float, float]
Places = int | Sequence[int]  # numbers of demonstrations before a prediction; P is absent for one


@dataclass(frozen=True)
class EvaluationContext:
    """A model, the params of its runs, and the sizes and the distribution of the prompts."""

    model: ModelUnderTest
    params: list[Any]  # [R]
    tier: Tier
    distribution: PromptDistribution
    states: Callable | None = None
    init: Callable[[Array], Any] | None = None  # of a model that the card trains
    training: Run | None = None  # of all runs, by the recipe of the card
    curves: dict[str, Any] = field(default_factory=dict)  # drawn on the page

    def draw_batches(
        self, tag: int, distribution: PromptDistribution | None = None, n: int | None = None
    ) -> list[Batch]:  # [R]
        """Draw prompts for each run, by default as many and as long as in training."""
        sizes = self.tier.prompts, self.tier.n if n is None else n
        rngs = [np.random.default_rng([run, tag]) for run in range(len(self.params))]
        return [draw_batch(rng, distribution or self.distribution, *sizes) for rng in rngs]

    def predict(self, batches: list[Batch], places: Places) -> np.ndarray:  # [R, B, P]
        """Return the predictions of every run for its batch."""
        pairs = zip(self.params, batches, strict=True)
        return np.stack([self.model.predict_places(p, b.prompt, places) for p, b in pairs])

    def evaluate(self, batches: list[Batch], places: Places) -> tuple[np.ndarray, np.ndarray]:
        """Return every run's error against noise-free targets [R, P], and answers [R, B, P]."""
        answers = self.predict(batches, places)
        return mean_squared_errors(answers, get_targets(batches, places)), answers

    def bayes_risks(
        self,
        batches: list[Batch],
        places: Places,
        distribution: PromptDistribution | None = None,
        rule: Callable[[Batch, PromptDistribution], np.ndarray] = bayes_predictions,
    ) -> np.ndarray:  # [R, P]
        """Return the risk of a rule for a distribution, by default the Bayes rule of training."""
        distribution = distribution or self.distribution
        answers = np.stack([rule(batch, distribution)[:, places] for batch in batches])
        return mean_squared_errors(answers, get_targets(batches, places))


def get_targets(batches: list[Batch], places: Places) -> np.ndarray:  # [R, B, P]
    """Return the targets without noise at some places."""
    return np.stack([batch.targets[:, places] for batch in batches])


def mean_squared_errors(answers: np.ndarray, targets: np.ndarray | float) -> np.ndarray:
    """Return the mean over prompts [R, B, P] -> [R, P], infinite if an answer is not finite."""
    finite = np.isfinite(answers)
    with np.errstate(over="ignore"):
        errors = (np.where(finite, answers, 0) - targets) ** 2
        return np.where(finite.all(1), errors.mean(1), np.inf)


def max_misses(num_samples: int, level: float) -> int:
    """Return the largest m with P(Binomial(R, 1/2) <= m) <= level, -1 if there is none."""
    return int((bdtr(np.arange(num_samples + 1), num_samples, 0.5) <= level).sum()) - 1


def median_interval(samples: np.ndarray | Sequence[float]) -> Interval | None:
    """Return the 95 % interval [x_(m+1), x_(R-m)] of the median, None below six samples."""
    ordered, misses = np.sort(samples), max_misses(len(samples), 0.025)
    return None if misses < 0 else (float(ordered[misses]), float(ordered[-1 - misses]))


def decide(num_kept: int, num_samples: int) -> str:
    """Return holds if all samples keep a bound, fails if none does, with one exception from eight.

    By the sign test of level .05, one of eight samples may differ, two of eleven, and so on.
    """
    allowed = max(max_misses(num_samples, 0.05), 0)
    if num_kept >= num_samples - allowed:
        return "holds"
    return "fails" if num_kept <= allowed else "undecided"


@dataclass(frozen=True)
class Probe:
    """A number of each run, and the value expected without the effect."""

    name: str  # unique on a card: "risk over Bayes, n = 16"
    group: str  # a heading of docs/card.md
    says: str  # the statement with the bound, or a question if there is no bound
    value: float | str  # the median of the samples, or a name
    samples: Sequence[float] = ()  # [R], NaN where undefined
    interval: Interval | None = None  # of the median
    at_least: float | None = None
    at_most: float | None = None
    kept: int | None = None  # number of samples that keep the bound
    verdict: str = ""  # holds, fails, undecided; empty without a bound
    null: float | None = None  # the number without the effect
    null_is: str = ""  # the predictor or case that has the null
    note: str = ""
    facts: dict[str, Any] = field(default_factory=dict)  # details, as JSON


def make_probe(
    name: str,
    group: str,
    says: str,
    samples: Sequence[float] | np.ndarray,  # [R]
    answers: np.ndarray | float = 0.0,  # the predictions that the samples were computed from
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    null: np.ndarray | Sequence[float] | float | None = None,  # its median counts
    note: str = "",
    **fields: Any,
) -> Probe:
    """Return a Probe of the median over the runs, and count the runs that keep the bound.

    A sample that is NaN is undefined, and the probe has no verdict. An infinite sample is one of a
    run with predictions that are not finite, and keeps no upper bound.
    """
    samples, finite = np.asarray(samples, float), np.isfinite(answers)
    defined, notes, kept, verdict = samples[~np.isnan(samples)], [note] if note else [], None, ""
    if not finite.all():
        notes.append(f"diverged in {int((~finite).sum())} of {finite.size} prompts")
    if len(defined) < len(samples):
        notes.append(f"undefined in {len(samples) - len(defined)} of {len(samples)} runs")
    if at_least is not None or at_most is not None:
        floor = -math.inf if at_least is None else at_least
        ceiling = math.inf if at_most is None else at_most
        kept = int(((floor <= defined) & (defined <= ceiling)).sum())
        verdict = decide(kept, len(samples)) if len(defined) == len(samples) else ""
    value = float(np.median(defined)) if len(defined) else math.nan
    null = None if null is None else float(np.median(null))
    return Probe(
        name, group, says, value, tuple(samples.tolist()), median_interval(defined), at_least,
        at_most, kept, verdict, null, note="; ".join(notes), **fields,
    )  # fmt: skip
