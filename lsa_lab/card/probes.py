"""Probes of the risk: each is a function of an EvaluationContext that returns its numbers.

Every bound was fixed before the first card was made; docs/card.md has the definitions.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.card.batches import Batch, PromptDistribution
from lsa_lab.card.evaluation import EvaluationContext, mean_squared_errors
from lsa_lab.card.probe import Probe, make_probe
from lsa_lab.card.recipe import STRIDE
from lsa_lab.estimators import sparse_posterior_mean
from lsa_lab.theory import learning_curves

DIVERGENCE = 100.0  # a run diverges if its risk is this many times that of predicting 0


def measure_risk(context: EvaluationContext) -> list[Probe]:
    """Measure the risk over that of the Bayes rule after d/2, d, 2d, 4d and 8d demonstrations."""
    tier, distribution = context.tier, context.distribution
    batches = context.draw_batches(1, distribution)
    places = list(range(tier.n + 1)) if context.model.causal else tier.places
    risks, offset = context.compute_risks(batches, places), distribution.risk_offset
    bayes = context.bayes_risks(batches, places, distribution) + offset
    ratios = (risks + offset) / bayes
    context.curves["risk"] = _collect_curves(context, places, risks)
    probes = []
    for place in tier.places:
        i = places.index(place)
        says = f"After {place} demonstrations the risk is at most 1.1 times that of the Bayes rule."
        zero_risk = np.mean([batch.targets[:, place] ** 2 for batch in batches])
        null = float(((zero_risk + offset) / bayes[:, i]).mean())
        probes.append(
            make_probe(f"risk over Bayes, n = {place}", "risk", says, ratios[:, i], ratio=True,
                       at_most=1.1, null=null, null_is="the answer 0")
        )  # fmt: skip
    return probes


def _collect_curves(
    context: EvaluationContext, places: list[int], risks: np.ndarray
) -> dict[str, Any]:
    """Return the risk by length and the closed curves of five rules, which assume Gaussian w."""
    curves: dict[str, Any] = {"places": places, "runs": risks.tolist(), "rules": {}}
    if context.distribution.tasks is not None:
        return curves
    n, d, noise_var = context.tier.n, context.tier.d, context.tier.noise_std**2
    rules = {
        "linear attention": learning_curves.additive(n, d, noise_var),
        "delta rule, best steps": learning_curves.delta_rule(n, d, noise_var),
        "delta rule, keys and labels / |x|": learning_curves.delta(n, d, noise_var),
        "implicit delta rule": learning_curves.implicit(n, d, noise_var),
        "ridge, the Bayes rule": learning_curves.ridge(n, d, noise_var),
    }
    rows = {name: np.asarray(curve, float).tolist() for name, curve in rules.items()}
    return curves | {"rules": rows}


def measure_long_prompts(context: EvaluationContext) -> list[Probe]:
    """Measure the risk over that of the Bayes rule at 2 and 8 times the length in training."""
    probes, longest = [], 8 * context.tier.n
    ends = [2 * context.tier.n, longest]
    batches = context.draw_batches(2, context.distribution, longest)
    places = list(range(longest + 1)) if context.model.causal else ends
    risks, offset = context.compute_risks(batches, places), context.distribution.risk_offset
    bayes = context.bayes_risks(batches, ends, context.distribution) + offset
    zero_risk = context.distribution.zero_risk + offset
    diverged = ~(risks < DIVERGENCE * zero_risk).all(0)
    note = f"diverges at n = {places[int(diverged.argmax())]}" if diverged.any() else ""
    for i, (factor, end) in enumerate(zip((2, 8), ends, strict=True)):
        ratios = (risks[:, places.index(end)] + offset) / bayes[:, i]
        length = f"{factor} times as long as in training" if context.trained else f"of {end} pairs"
        says = f"On prompts {length} the risk is at most twice that of the Bayes rule."
        probes.append(
            make_probe(f"risk over Bayes, {factor} times the length", "growth", says, ratios,
                       ratio=True, at_most=2, null=float((zero_risk / bayes[:, i]).mean()),
                       null_is="the answer 0", note=note if i else "")
        )  # fmt: skip
    return probes


SHIFTS: dict[str, Callable[[PromptDistribution], PromptDistribution]] = {
    "covariates twice as large": partial(replace, scale=2.0),
    "covariates half as large": partial(replace, scale=0.5),
    "rotated covariance of condition 16": partial(replace, stretch=2.0),
    "noise twice as large": lambda base: replace(base, noise_std=2 * base.noise_std),
    "heavy-tailed noise": partial(replace, degrees_of_freedom=3.0),
    "correlated noise": partial(replace, correlation=0.9),
}


def measure_shifts(context: EvaluationContext) -> list[Probe]:
    """Measure the risk on shifted prompts over that of ridge with the penalty of training."""
    probes, n = [], context.tier.n
    for tag, (name, shift) in enumerate(SHIFTS.items()):
        batches = context.draw_batches(10 + tag, shift(context.distribution))
        ridge = context.bayes_risks(batches, [n], replace(context.distribution, tasks=None))
        says = f"With {name} the risk is at most 1.5 times that of ridge."
        zero_risks = np.array([(batch.targets[:, n] ** 2).mean() for batch in batches])
        probes.append(
            make_probe(f"risk over ridge, {name}", "shifts", says,
                       context.compute_risks(batches, [n])[:, 0] / ridge[:, 0], ratio=True,
                       at_most=1.5, null=float((zero_risks / ridge[:, 0]).mean()),
                       null_is="the answer 0")
        )  # fmt: skip
    return probes


def measure_sparse_weights(context: EvaluationContext) -> list[Probe]:
    """Measure the risk on sparse weights over those of ridge and of the sparse Bayes rule."""
    place, count = 2 * context.tier.d, max(context.tier.d // 4, 1)
    distribution = replace(context.distribution, sparsity=count, tasks=None)
    batches = context.draw_batches(3, distribution)
    risks = context.compute_risks(batches, [place])[:, 0]
    dense = replace(distribution, sparsity=None)
    ridge = context.bayes_risks(batches, [place], dense)[:, 0]
    sparse = _sparse_bayes_risks(batches, place, count, distribution.noise_var)
    unseen = ", which training does not show," if context.trained else ""
    says = f"On sparse weights{unseen} the risk is at most 1.1 times that of ridge."
    question = "How far is the risk from that of the sparse Bayes rule?"
    return [
        make_probe("risk over ridge, sparse weights", "sparse", says, risks / ridge, ratio=True,
                   at_most=1.1, null=float((sparse / ridge).mean()),
                   null_is="the sparse Bayes rule"),
        make_probe("risk over sparse Bayes", "sparse", question, risks / sparse, ratio=True,
                   null=float((ridge / sparse).mean()), null_is="ridge"),
    ]  # fmt: skip


def _sparse_bayes_risks(
    batches: list[Batch], place: int, count: int, noise_var: float
) -> np.ndarray:  # [R]
    rule = jax.jit(jax.vmap(lambda p: sparse_posterior_mean(p, count, 1 / count, noise_var)))
    risks = []
    for batch in batches:
        prompt = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), batch.prompt)
        weights = np.asarray(rule(prompt.replace(x=prompt.x[:, :place], y=prompt.y[:, :place])))
        predictions = (weights * batch.x[:, place]).sum(-1)
        risks.append(mean_squared_errors(predictions, batch.targets[:, place]))
    return np.array(risks)


def measure_drift(context: EvaluationContext) -> list[Probe]:
    """Measure the risk on weights of half-life 2d demonstrations over that of the Kalman filter."""
    n = context.tier.n
    persistence = 0.5 ** (1 / (2 * context.tier.d))
    distribution = replace(context.distribution, persistence=persistence, tasks=None)
    batches = context.draw_batches(4, distribution)
    risks = context.compute_risks(batches, [n])[:, 0]
    kalman = context.bayes_risks(batches, [n], distribution)[:, 0]
    ridge = context.bayes_risks(batches, [n], replace(distribution, persistence=1.0))[:, 0]
    says = "On weights that drift the risk is at most 1.5 times that of the Kalman filter."
    return [
        make_probe("risk over the Kalman filter", "drift", says, risks / kalman, ratio=True,
                   at_most=1.5, null=float((ridge / kalman).mean()), null_is="ridge"),
    ]  # fmt: skip


def measure_training_steps(context: EvaluationContext) -> list[Probe]:
    """Measure the steps until the risk on held-out prompts is at most twice the Bayes risk."""
    if context.late_risk_ratios is None:
        return []
    below, num_steps = context.late_risk_ratios <= 2, context.tier.steps
    reached = below.any(1)
    steps = np.where(reached, below.argmax(1) * STRIDE, num_steps)
    num_missing = int((~reached).sum())
    note = f"{num_missing} of {len(steps)} runs never did" if num_missing else ""
    says = f"It reaches twice the Bayes risk within half of the {num_steps} steps of training."
    return [make_probe("steps to twice the Bayes risk", "steps", says, steps.astype(float),
                       at_most=num_steps / 2, note=note)]  # fmt: skip
