"""Probes of one task each, of a model that was trained on it."""

from dataclasses import replace

import numpy as np

from lsa_lab.card.batches import BASELINES, baseline_predictions, bayes_predictions
from lsa_lab.card.evaluation import EvaluationContext
from lsa_lab.card.probe import Probe, make_probe
from lsa_lab.card.tasks import LEVELS


def measure_accuracy(context: EvaluationContext) -> list[Probe]:
    """Measure the share of stored values that are recalled: their level is nearest."""
    n = context.tier.n
    if context.tier.task != "recall":
        return []
    batches = context.draw_batches(1, context.distribution)
    answers = np.stack(context.predict(batches, [n]))[..., 0]  # [R, B]
    targets = np.stack([batch.targets[:, n] for batch in batches])
    levels = LEVELS[np.abs(answers[..., None] - LEVELS).argmin(-1)]
    accuracies = (np.isclose(levels, targets) & np.isfinite(answers)).mean(1)
    says = (
        f"Of {n // 4} stored pairs it recalls the value of a key with an accuracy of at least .9."
    )
    return [make_probe("accuracy of recall", "risk", says, accuracies, at_least=0.9,
                       null=1 / len(LEVELS), null_is="chance")]  # fmt: skip


def measure_simple_weights(context: EvaluationContext) -> list[Probe]:
    """Measure the risk on prompts of the smaller nested class over that of the Bayes rule."""
    place, distribution = 2 * context.tier.d, context.distribution
    if context.tier.task != "nested":
        return []
    batches = context.draw_batches(3, replace(distribution, simple_share=1.0))
    targets = np.stack([batch.targets[:, place] for batch in batches])
    rules = (bayes_predictions, baseline_predictions)
    answers = [context.predict(batches, [place])]
    answers += [[rule(b, distribution)[:, [place]] for b in batches] for rule in rules]
    risks, bayes, linear = (((np.stack(each)[..., 0] - targets) ** 2).mean(1) for each in answers)
    says = f"On simple weights, after {place} demonstrations, the risk is at most 1.5 times Bayes."
    return [make_probe("risk over Bayes, simple weights", "risk", says, risks / bayes,
                       at_most=1.5, null=float(np.median(linear / bayes)),
                       null_is=BASELINES["nested"])]  # fmt: skip
