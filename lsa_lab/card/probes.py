"""Probes of the risk: each is a function of an EvaluationContext that returns its numbers.

docs/card.md has the definitions.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.card.batches import Batch, PromptDistribution, baseline_predictions
from lsa_lab.card.evaluation import EvaluationContext, Probe, get_targets, make_probe
from lsa_lab.card.tasks import LEVELS, TASKS, count_simple, half_life_gate
from lsa_lab.estimators import sparse_posterior_mean
from lsa_lab.theory import learning_curves

DIVERGENCE = 100.0  # a run diverges if its risk is this many times that of predicting 0
LENGTH_FACTORS = (1.5, 2, 3, 4, 6, 8)  # prompts that are longer than in training
ZERO = "the answer 0"


def measure_risk(context: EvaluationContext) -> list[Probe]:
    """Measure the risk over that of the Bayes rule after d/2, d, 2d, 4d and 8d demonstrations."""
    tier, offset = context.tier, context.distribution.risk_offset
    batches = context.draw_batches(1)
    curves: dict[str, Any] = {}
    places = list(range(tier.n + 1)) if context.model.causal else tier.places
    risks, answers = context.evaluate(batches, places)
    bayes = context.bayes_risks(batches, places) + offset
    zero = (get_targets(batches, places) ** 2).mean(1) + offset
    if context.distribution.tasks is None and tier.task == "regression":  # w is Gaussian
        sizes = tier.n, tier.d, tier.noise_std**2
        curves = {
            "linear attention": learning_curves.additive(*sizes),
            "delta rule, best steps": learning_curves.delta_rule(*sizes),
            "delta rule, keys and labels / |x|": learning_curves.delta(*sizes),
            "implicit delta rule": learning_curves.implicit(*sizes),
            "ridge, the Bayes rule": learning_curves.ridge(*sizes),
        }
    context.curves["risk"] = {"places": places, "runs": risks, "rules": curves}
    return [
        make_probe(
            f"risk over Bayes, n = {place}", "risk",
            f"After {place} demonstrations the risk is at most 1.1 times that of the Bayes rule.",
            (risks[:, i] + offset) / bayes[:, i], answers[:, :, i], at_most=1.1,
            null=zero[:, i] / bayes[:, i], null_is=ZERO,
        )
        for i, place in enumerate(places) if place in tier.places
    ]  # fmt: skip


def measure_baseline(context: EvaluationContext) -> list[Probe]:
    """Measure the risk over that of a baseline which the Bayes rule of the task beats.

    For nested weights the prompts are those of the smaller class, after 2d demonstrations.
    """
    tier, drawn, text, place = context.tier, context.distribution, "", context.tier.n
    if tier.task == "nested":
        place, drawn, text = 2 * tier.d, replace(drawn, simple_share=1.0), "simple weights, "
    batches = context.draw_batches(3, drawn)
    risks, answers = context.evaluate(batches, place)
    baseline = context.bayes_risks(batches, place, rule=baseline_predictions)
    name = f"risk over the baseline's, {text}n = {place}"
    says = f"After {place} demonstrations the risk is at most that of {TASKS[tier.task][1]}."
    null = context.bayes_risks(batches, place, drawn) / baseline
    return [make_probe(name, "risk", says, risks / baseline, answers, at_most=1, null=null,
                       null_is="the Bayes rule")]  # fmt: skip


def measure_accuracy(context: EvaluationContext) -> list[Probe]:
    """Measure the share of stored values that are recalled: their level is nearest."""
    n, batches = context.tier.n, context.draw_batches(1)
    answers = context.predict(batches, n)
    shares = find_accuracy(answers, get_targets(batches, n), LEVELS)
    says = f"Of {n // 4} stored pairs it recalls the value of a key with an accuracy of at least "
    return [make_probe("accuracy of recall", "risk", f"{says}.9.", shares, answers, at_least=0.9,
                       null=1 / len(LEVELS), null_is="chance")]  # fmt: skip


def find_accuracy(answers: np.ndarray, targets: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the share of finite answers [R, B] whose nearest level is the target."""
    nearest = levels[np.abs(answers[..., None] - levels).argmin(-1)]
    return (np.isclose(nearest, targets) & np.isfinite(answers)).mean(1)


def measure_long_prompts(context: EvaluationContext) -> list[Probe]:
    """Measure the risk over that of the Bayes rule at up to 8 times the length in training."""
    n, distribution = context.tier.n, context.distribution
    lengths = [*context.tier.places, *(int(factor * n) for factor in LENGTH_FACTORS)]
    batches = context.draw_batches(2, n=lengths[-1])
    places = list(range(lengths[-1] + 1)) if context.model.causal else lengths
    (risks, answers), offset = context.evaluate(batches, places), distribution.risk_offset
    columns = [places.index(length) for length in lengths]
    bayes = context.bayes_risks(batches, lengths) + offset
    ratios, tasks = (risks[:, columns] + offset) / bayes, distribution.tasks
    zero_risk = offset + (1 if tasks is None else float((tasks**2).sum(1).mean()))  # offset + E|w|²
    context.curves["growth"] = {"lengths": lengths, "runs": ratios}
    diverged = ~(risks < DIVERGENCE * zero_risk).all(0)
    first_diverged = f"diverges at n = {places[int(diverged.argmax())]}" if diverged.any() else ""
    return [
        make_probe(
            f"risk over Bayes, {factor} times the length", "growth",
            f"On prompts of {factor * n} pairs the risk is at most twice that of the Bayes rule.",
            ratios[:, i], answers[:, :, columns[i]], at_most=2, note=note,
            null=zero_risk / bayes[:, i], null_is=ZERO,
        )
        for factor, note in ((2, ""), (8, first_diverged)) for i in [lengths.index(factor * n)]
    ]  # fmt: skip


def measure_shifts(context: EvaluationContext) -> list[Probe]:
    """Measure the risk on shifted prompts over that of ridge with the penalty of training."""
    probes, n, training = [], context.tier.n, context.distribution
    changes: dict[str, dict] = {
        "covariates twice as large": {"scale": 2.0},
        "covariates half as large": {"scale": 0.5},
        "rotated covariance of condition 16": {"stretch": 2.0},
        "noise twice as large": {"noise_std": 2 * training.noise_std},
        "heavy-tailed noise": {"degrees_of_freedom": 3.0},
        "correlated noise": {"correlation": 0.9},
    }
    for tag, (name, change) in enumerate(changes.items()):
        batches = context.draw_batches(10 + tag, replace(training, **change))
        risks, answers = context.evaluate(batches, n)
        ridge = context.bayes_risks(batches, n, replace(training, tasks=None))
        null = (get_targets(batches, n) ** 2).mean(1) / ridge
        says = f"With {name} the risk is at most 1.5 times that of ridge."
        probes.append(make_probe(f"risk over ridge, {name}", "shifts", says, risks / ridge, answers,
                                 at_most=1.5, null=null, null_is=ZERO))  # fmt: skip
    return probes


def measure_sparse_weights(context: EvaluationContext) -> list[Probe]:
    """Measure the risk on sparse weights over those of ridge and of the sparse Bayes rule."""
    place, count = 2 * context.tier.d, count_simple(context.tier.d)
    dense = replace(context.distribution, tasks=None)
    batches = context.draw_batches(3, replace(dense, sparsity=count))
    risks, answers = context.evaluate(batches, place)
    ridge = context.bayes_risks(batches, place, dense)
    mean = jax.jit(jax.vmap(lambda p: sparse_posterior_mean(p, count, 1 / count, dense.noise_var)))

    def predict_sparse(batch: Batch, _: PromptDistribution) -> np.ndarray:  # the same everywhere
        prompt = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), batch.prompt)
        weights = np.asarray(mean(prompt.replace(x=prompt.x[:, :place], y=prompt.y[:, :place])))
        return (weights[:, None] * batch.x).sum(-1)

    sparse = context.bayes_risks(batches, place, rule=predict_sparse)
    says = "On sparse weights the risk is at most 1.1 times that of ridge."
    question = "How far is the risk from that of the sparse Bayes rule?"
    return [
        make_probe("risk over ridge, sparse weights", "sparse", says, risks / ridge, answers,
                   at_most=1.1, null=sparse / ridge, null_is="the sparse Bayes rule"),
        make_probe("risk over sparse Bayes", "sparse", question, risks / sparse, answers,
                   null=ridge / sparse, null_is="ridge"),
    ]  # fmt: skip


def measure_drift(context: EvaluationContext) -> list[Probe]:
    """Measure the risk on weights of half-life 2d demonstrations over that of the Kalman filter."""
    n, still = context.tier.n, replace(context.distribution, tasks=None)
    drifting = replace(still, persistence=half_life_gate(context.tier.d))
    batches = context.draw_batches(4, drifting)
    risks, answers = context.evaluate(batches, n)
    kalman = context.bayes_risks(batches, n, drifting)
    null = context.bayes_risks(batches, n, still) / kalman
    says = "On weights that drift the risk is at most 1.5 times that of the Kalman filter."
    return [make_probe("risk over the Kalman filter", "drift", says, risks / kalman, answers,
                       at_most=1.5, null=null, null_is="ridge")]  # fmt: skip
