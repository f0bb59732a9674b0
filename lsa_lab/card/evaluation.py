"""The context of the probes: the model, its runs, and the risks on batches of prompts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jax import Array

from lsa_lab.card.batches import Batch, PromptDistribution, bayes_predictions, draw_batch
from lsa_lab.card.model_under_test import ModelUnderTest
from lsa_lab.card.recipe import Tier, TrainingResult


@dataclass(frozen=True)
class EvaluationContext:
    """A model, the params of its runs, and the sizes and the distribution of the prompts."""

    model: ModelUnderTest
    params: list[Any]  # [R]
    tier: Tier
    distribution: PromptDistribution
    states: Callable | None = None
    init: Callable[[Array], Any] | None = None  # of a model that the card trains
    training: TrainingResult | None = None  # of a model that the card trained
    curves: dict[str, Any] = field(default_factory=dict)  # drawn on the page

    @property
    def trained(self) -> bool:
        """Return whether the card trained the model and thus knows its training prompts."""
        return self.training is not None

    def draw_batches(
        self, tag: int, distribution: PromptDistribution, n: int | None = None
    ) -> list[Batch]:  # [R]
        """Draw a batch of prompts for each run, with n demonstrations or as many as in training."""
        sizes = self.tier.prompts, self.tier.n if n is None else n
        rngs = [np.random.default_rng([run, tag]) for run in range(len(self.params))]
        return [draw_batch(rng, distribution, *sizes) for rng in rngs]

    def predict(self, batches: list[Batch], places: list[int]) -> np.ndarray:  # [R, B, P]
        """Return the predictions of every run for its batch."""
        pairs = zip(self.params, batches, strict=True)
        return np.stack([self.model.predict_places(p, b.prompt, places) for p, b in pairs])

    def evaluate(
        self, batches: list[Batch], places: list[int]
    ) -> tuple[np.ndarray, np.ndarray]:  # [R, P], [R, B, P]
        """Return every run's mean squared error against the targets without noise, and answers."""
        answers = self.predict(batches, places)
        return mean_squared_errors(answers, get_targets(batches, places)), answers

    def bayes_risks(
        self, batches: list[Batch], places: list[int], distribution: PromptDistribution
    ) -> np.ndarray:  # [R, P]
        """Return the risk of the Bayes rule of a distribution on the same prompts."""
        answers = np.stack([bayes_predictions(b, distribution)[:, places] for b in batches])
        return mean_squared_errors(answers, get_targets(batches, places))


def get_targets(batches: list[Batch], places: list[int]) -> np.ndarray:  # [R, B, P]
    """Return the targets without noise at some places."""
    return np.stack([batch.targets[:, places] for batch in batches])


def mean_squared_errors(answers: np.ndarray, targets: np.ndarray) -> np.ndarray:  # [R, B, P]
    """Return the mean over prompts [R, P], infinite if an answer is not finite."""
    finite = np.isfinite(answers)
    with np.errstate(over="ignore"):
        errors = (np.where(finite, answers, 0) - targets) ** 2
        return np.where(finite.all(1), errors.mean(1), np.inf)
