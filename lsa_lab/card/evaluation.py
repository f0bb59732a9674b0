"""The sizes of a card, its numbers with medians and verdicts, and what they are measured on."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jax import Array
from scipy.special import bdtr

from lsa_lab.card.batches import Batch, PromptDistribution, bayes_predictions, draw_batch
from lsa_lab.card.model_under_test import ModelUnderTest, UnfitError
from lsa_lab.card.tasks import TASKS, half_life_gate
from lsa_lab.training import Run

Interval = tuple[float, float]
# Numbers of demonstrations before a prediction. The axis P is absent for one number.
Places = int | Sequence[int] | slice


@dataclass(frozen=True)
class Tier:
    """The sizes of a card: training, prompts of the probes, and the task."""

    steps: int
    pilot_steps: int
    batch: int  # prompts in a step
    prompts: int  # prompts of a probe for each run
    d: int = 8
    n: int = 0  # demonstrations of a training prompt; 0 means 8d
    task: str = "regression"  # a name in tasks.TASKS
    runs: int = 3
    noise_std: float = 0.5
    rates: tuple[float, ...] = (1e-2, 3e-3, 1e-3)
    lengths: tuple[int, ...] = (64, 1024)  # tokens for which time and memory are measured
    tracking: bool = True  # whether the model is also trained to count signs

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise UnfitError(f"task = {self.task!r}: choose {', '.join(TASKS)}")
        if not self.n:
            object.__setattr__(self, "n", 8 * self.d)
        minima = dict(steps=100, pilot_steps=1, batch=1, prompts=8, d=3, n=2 * self.d, runs=2)
        for name, minimum in minima.items():
            if getattr(self, name) < minimum:
                raise UnfitError(f"{name} = {getattr(self, name)}: it is at least {minimum}")
        if self.noise_std <= 0:
            raise UnfitError("noise_std is at least slightly above 0: else the Bayes risk is 0")

    @property
    def places(self) -> list[int]:
        """Return the numbers of demonstrations at which risks are measured: d/2, d, 2d, 4d and n.

        In a prompt of recall they are n/4, all pairs stored, n/2 and n.
        """
        if self.task == "recall":
            return [self.n // 4, self.n // 2, self.n]
        places = [self.d // 2, self.d, 2 * self.d, 4 * self.d]
        return [place for place in places if place < self.n] + [self.n]

    def distribution(self, tasks: np.ndarray | None = None) -> PromptDistribution:
        """Return the distribution of training prompts."""
        drift = half_life_gate(self.d) if self.task == "drift" else 1.0
        return PromptDistribution(self.d, self.noise_std, self.task, persistence=drift, tasks=tasks)


TIERS = {
    "smoke": Tier(
        steps=200, pilot_steps=1, batch=16, prompts=128, runs=2, rates=(1e-2,), lengths=(64,),
        tracking=False,
    ),
    "laptop": Tier(steps=2000, pilot_steps=400, batch=32, prompts=512),
    "paper": Tier(
        steps=60_000, pilot_steps=6000, batch=64, prompts=1024, runs=8,
        lengths=(64, 1024, 16384),
    ),
}  # fmt: skip


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

    def make_rngs(self, *tag: int) -> list[np.random.Generator]:  # [R]
        return [np.random.default_rng([run, *tag]) for run in range(len(self.params))]

    def draw_batches(
        self, tag: int, distribution: PromptDistribution | None = None, n: int | None = None
    ) -> list[Batch]:  # [R]
        """Draw prompts for each run, by default as many and as long as in training."""
        law, sizes = distribution or self.distribution, (self.tier.prompts, n or self.tier.n)
        return [draw_batch(rng, law, *sizes) for rng in self.make_rngs(tag)]

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
    run with predictions that are not finite, and keeps no upper bound. The bound holds if all
    samples keep it and fails if none does, with exceptions by the sign test of level .05: one of
    eight samples may differ, two of eleven, and so on.
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
        allowed = max(max_misses(len(samples), 0.05), 0)
        if len(defined) == len(samples):
            verdict = "undecided" if kept > allowed else "fails"
            verdict = "holds" if kept >= len(samples) - allowed else verdict
    value = float(np.median(defined)) if len(defined) else math.nan
    null = None if null is None else float(np.median(null))
    return Probe(
        name, group, says, value, tuple(samples.tolist()), median_interval(defined), at_least,
        at_most, kept, verdict, null, note="; ".join(notes), **fields,
    )  # fmt: skip
