"""The context of the probes: the model, its runs, and the risks on batches of prompts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jax import Array

from lsa_lab.card.batches import Batch, PromptDistribution, bayes_predictions, draw_batch
from lsa_lab.card.model_under_test import ModelUnderTest
from lsa_lab.card.recipe import Tier
from lsa_lab.training import Run

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
