"""The context of the probes: the model, its runs, and the risks on batches of prompts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jax import Array

from lsa_lab.card.batches import Batch, PromptDistribution, bayes_predictions, draw_batch
from lsa_lab.card.model_under_test import ModelUnderTest
from lsa_lab.card.recipe import Tier


@dataclass(frozen=True)
class EvaluationContext:
    """A model, the params of its runs, and the sizes and the distribution of the prompts."""

    model: ModelUnderTest
    params: list[Any]  # [R]
    tier: Tier
    distribution: PromptDistribution
    states: Callable | None = None
    init: Callable[[Array], Any] | None = None  # of a model that the card trains
    late_risk_ratios: np.ndarray | None = None  # [R, C+1], of TrainingResult; None if not trained
    curves: dict[str, Any] = field(default_factory=dict)  # drawn on the page

    @property
    def trained(self) -> bool:
        """Return whether the card trained the model and thus knows its training prompts."""
        return self.late_risk_ratios is not None

    def draw_batches(
        self, tag: int, distribution: PromptDistribution, n: int | None = None
    ) -> list[Batch]:  # [R]
        """Draw a batch of prompts for each run, with n demonstrations or as many as in training."""
        sizes = self.tier.prompts, self.tier.n if n is None else n
        rngs = [np.random.default_rng([run, tag]) for run in range(len(self.params))]
        return [draw_batch(rng, distribution, *sizes) for rng in rngs]

    def predict(self, batches: list[Batch], places: list[int]) -> list[np.ndarray]:  # [R][B, P]
        """Return the predictions of every run for its batch."""
        pairs = zip(self.params, batches, strict=True)
        return [self.model.predict_places(params, batch.prompt, places) for params, batch in pairs]

    def compute_risks(self, batches: list[Batch], places: list[int]) -> np.ndarray:  # [R, P]
        """Return the mean squared error of every run against the noise-free targets."""
        pairs = zip(self.predict(batches, places), batches, strict=True)
        return np.stack(
            [mean_squared_errors(y_hat, batch.targets[:, places]) for y_hat, batch in pairs]
        )

    def bayes_risks(
        self, batches: list[Batch], places: list[int], distribution: PromptDistribution
    ) -> np.ndarray:  # [R, P]
        """Return the risk of the Bayes rule of a distribution on the same prompts."""
        risks = []
        for batch in batches:
            y_hat = bayes_predictions(batch, distribution)[:, places]
            risks.append(mean_squared_errors(y_hat, batch.targets[:, places]))
        return np.stack(risks)


def mean_squared_errors(predictions: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the mean squared error at each place, [B, P] -> [P]."""
    return ((predictions - targets) ** 2).mean(0)
