"""Probes of a model that was trained on another task than regression."""

from dataclasses import replace

import numpy as np

from lsa_lab.card.batches import BASELINES, baseline_predictions
from lsa_lab.card.evaluation import EvaluationContext, get_targets, mean_squared_errors
from lsa_lab.card.probe import Probe, make_probe
from lsa_lab.card.tasks import LEVELS


def measure_baseline(context: EvaluationContext) -> list[Probe]:
    """Measure the risk over that of a baseline which the Bayes rule of the task beats.

    For nested weights the prompts are those of the smaller class, after 2d demonstrations.
    """
    tier, distribution, text = context.tier, context.distribution, ""
    place, drawn = tier.n, distribution
    if tier.task == "nested":
        place, drawn, text = 2 * tier.d, replace(distribution, simple_share=1.0), "simple weights, "
    batches = context.draw_batches(3, drawn)
    risks, answers = context.evaluate(batches, [place])
    rows = np.stack([baseline_predictions(batch, distribution)[:, [place]] for batch in batches])
    baseline = mean_squared_errors(rows, get_targets(batches, [place]))
    bayes, name = context.bayes_risks(batches, [place], distribution), BASELINES[tier.task]
    says = f"After {place} demonstrations the risk is at most that of {name}."
    return [make_probe(f"risk over the baseline's, {text}n = {place}", "risk", says,
                       (risks / baseline)[:, 0], answers=answers, at_most=1,
                       null=float(np.median(bayes / baseline)),
                       null_is="the Bayes rule")]  # fmt: skip


def measure_accuracy(context: EvaluationContext) -> list[Probe]:
    """Measure the share of stored values that are recalled: their level is nearest."""
    n = context.tier.n
    if context.tier.task != "recall":
        return []
    batches = context.draw_batches(1, context.distribution)
    answers = context.predict(batches, [n])[..., 0]  # [R, B]
    levels = LEVELS[np.abs(answers[..., None] - LEVELS).argmin(-1)]
    right = np.isclose(levels, get_targets(batches, [n])[..., 0]) & np.isfinite(answers)
    says = (
        f"Of {n // 4} stored pairs it recalls the value of a key with an accuracy of at least .9."
    )
    return [make_probe("accuracy of recall", "risk", says, right.mean(1), answers=answers,
                       at_least=0.9, null=1 / len(LEVELS), null_is="chance")]  # fmt: skip
