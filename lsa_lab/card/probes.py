"""Probes of the risk: each is a function of an EvaluationContext that returns its numbers.

docs/card.md has the definitions.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.card.batches import Batch
from lsa_lab.card.evaluation import EvaluationContext, get_targets, mean_squared_errors
from lsa_lab.card.probe import Probe, make_probe
from lsa_lab.card.recipe import STRIDE
from lsa_lab.card.tasks import count_simple, half_life_gate
from lsa_lab.estimators import sparse_posterior_mean
from lsa_lab.theory import learning_curves

DIVERGENCE = 100.0  # a run diverges if its risk is this many times that of predicting 0
LENGTH_FACTORS = (1.5, 2, 3, 4, 6, 8)  # prompts that are longer than in training
_POINTS = 100  # of the training curve


def measure_risk(context: EvaluationContext) -> list[Probe]:
    """Measure the risk over that of the Bayes rule after d/2, d, 2d, 4d and 8d demonstrations."""
    tier, distribution = context.tier, context.distribution
    batches = context.draw_batches(1, distribution)
    places = list(range(tier.n + 1)) if context.model.causal else tier.places
    (risks, answers), offset = context.evaluate(batches, places), distribution.risk_offset
    bayes = context.bayes_risks(batches, places, distribution) + offset
    zero = (get_targets(batches, places) ** 2).mean(1) + offset
    context.curves["risk"] = {"places": places, "runs": risks, "rules": _closed_curves(context)}
    probes = []
    for place in tier.places:
        i = places.index(place)
        says = f"After {place} demonstrations the risk is at most 1.1 times that of the Bayes rule."
        probes.append(
            make_probe(f"risk over Bayes, n = {place}", "risk", says,
                       (risks[:, i] + offset) / bayes[:, i], answers=answers[:, :, i], at_most=1.1,
                       null=float(np.median(zero[:, i] / bayes[:, i])), null_is="the answer 0")
        )  # fmt: skip
    return probes


def _closed_curves(context: EvaluationContext) -> dict[str, Any]:  # [n+1] each
    """Return the risk by length of five rules, in closed form for Gaussian w."""
    if context.distribution.tasks is not None or context.tier.task != "regression":
        return {}
    sizes = context.tier.n, context.tier.d, context.tier.noise_std**2
    return {
        "linear attention": learning_curves.additive(*sizes),
        "delta rule, best steps": learning_curves.delta_rule(*sizes),
        "delta rule, keys and labels / |x|": learning_curves.delta(*sizes),
        "implicit delta rule": learning_curves.implicit(*sizes),
        "ridge, the Bayes rule": learning_curves.ridge(*sizes),
    }


def measure_long_prompts(context: EvaluationContext) -> list[Probe]:
    """Measure the risk over that of the Bayes rule at up to 8 times the length in training."""
    n, distribution = context.tier.n, context.distribution
    lengths = [*context.tier.places, *(int(factor * n) for factor in LENGTH_FACTORS)]
    batches = context.draw_batches(2, distribution, lengths[-1])
    places = list(range(lengths[-1] + 1)) if context.model.causal else lengths
    (risks, answers), offset = context.evaluate(batches, places), distribution.risk_offset
    columns = [places.index(length) for length in lengths]
    bayes = context.bayes_risks(batches, lengths, distribution) + offset
    ratios, zero_risk = (risks[:, columns] + offset) / bayes, distribution.zero_risk + offset
    context.curves["growth"] = {"lengths": lengths, "runs": ratios}
    diverged = ~(risks < DIVERGENCE * zero_risk).all(0)
    first_diverged = f"diverges at n = {places[int(diverged.argmax())]}" if diverged.any() else ""
    probes = []
    for factor, note in ((2, ""), (8, first_diverged)):
        i = lengths.index(factor * n)
        says = f"On prompts of {factor * n} pairs the risk is at most twice that of the Bayes rule."
        probes.append(
            make_probe(f"risk over Bayes, {factor} times the length", "growth", says, ratios[:, i],
                       answers=answers[:, :, columns[i]], at_most=2, note=note,
                       null=float(np.median(zero_risk / bayes[:, i])), null_is="the answer 0")
        )  # fmt: skip
    return probes


SHIFTS: dict[str, Callable[[Any], dict[str, Any]]] = {  # changes of the distribution of prompts
    "covariates twice as large": lambda base: {"scale": 2.0},
    "covariates half as large": lambda base: {"scale": 0.5},
    "rotated covariance of condition 16": lambda base: {"stretch": 2.0},
    "noise twice as large": lambda base: {"noise_std": 2 * base.noise_std},
    "heavy-tailed noise": lambda base: {"degrees_of_freedom": 3.0},
    "correlated noise": lambda base: {"correlation": 0.9},
}


def measure_shifts(context: EvaluationContext) -> list[Probe]:
    """Measure the risk on shifted prompts over that of ridge with the penalty of training."""
    probes, n, base = [], context.tier.n, context.distribution
    for tag, (name, change) in enumerate(SHIFTS.items()):
        batches = context.draw_batches(10 + tag, replace(base, **change(base)))
        ridge = context.bayes_risks(batches, [n], replace(base, tasks=None))
        risks, answers = context.evaluate(batches, [n])
        zero = (get_targets(batches, [n]) ** 2).mean(1)
        says = f"With {name} the risk is at most 1.5 times that of ridge."
        probes.append(
            make_probe(f"risk over ridge, {name}", "shifts", says, (risks / ridge)[:, 0],
                       answers=answers, at_most=1.5, null=float(np.median(zero / ridge)),
                       null_is="the answer 0")
        )  # fmt: skip
    return probes


def measure_sparse_weights(context: EvaluationContext) -> list[Probe]:
    """Measure the risk on sparse weights over those of ridge and of the sparse Bayes rule."""
    place, count = 2 * context.tier.d, count_simple(context.tier.d)
    distribution = replace(context.distribution, sparsity=count, tasks=None)
    batches = context.draw_batches(3, distribution)
    risks, answers = context.evaluate(batches, [place])
    ridge = context.bayes_risks(batches, [place], replace(distribution, sparsity=None))
    sparse = _sparse_bayes_risks(batches, place, count, distribution.noise_var)
    says = "On sparse weights the risk is at most 1.1 times that of ridge."
    question = "How far is the risk from that of the sparse Bayes rule?"
    return [
        make_probe("risk over ridge, sparse weights", "sparse", says, (risks / ridge)[:, 0],
                   answers=answers, at_most=1.1, null=float(np.median(sparse / ridge)),
                   null_is="the sparse Bayes rule"),
        make_probe("risk over sparse Bayes", "sparse", question, (risks / sparse)[:, 0],
                   answers=answers, null=float(np.median(ridge / sparse)), null_is="ridge"),
    ]  # fmt: skip


def _sparse_bayes_risks(
    batches: list[Batch], place: int, count: int, noise_var: float
) -> np.ndarray:  # [R, 1]
    rule = jax.jit(jax.vmap(lambda p: sparse_posterior_mean(p, count, 1 / count, noise_var)))
    answers = []
    for batch in batches:
        prompt = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), batch.prompt)
        weights = np.asarray(rule(prompt.replace(x=prompt.x[:, :place], y=prompt.y[:, :place])))
        answers.append((weights * batch.x[:, place]).sum(-1))
    return mean_squared_errors(np.stack(answers)[..., None], get_targets(batches, [place]))


def measure_drift(context: EvaluationContext) -> list[Probe]:
    """Measure the risk on weights of half-life 2d demonstrations over that of the Kalman filter."""
    n, persistence = context.tier.n, half_life_gate(context.tier.d)
    distribution = replace(context.distribution, persistence=persistence, tasks=None)
    batches = context.draw_batches(4, distribution)
    risks, answers = context.evaluate(batches, [n])
    kalman = context.bayes_risks(batches, [n], distribution)
    ridge = context.bayes_risks(batches, [n], replace(distribution, persistence=1.0))
    says = "On weights that drift the risk is at most 1.5 times that of the Kalman filter."
    return [
        make_probe("risk over the Kalman filter", "drift", says, (risks / kalman)[:, 0],
                   answers=answers, at_most=1.5, null=float(np.median(ridge / kalman)),
                   null_is="ridge"),
    ]  # fmt: skip


def measure_training_steps(context: EvaluationContext) -> list[Probe]:
    """Measure the steps until the risk on held-out prompts is at most twice the Bayes risk."""
    if context.training is None:
        return []
    num_steps = context.tier.steps
    below = np.less_equal(context.training.late_risk_ratios, 2)
    block = max(num_steps // _POINTS, 1)
    losses = context.training.losses[:, : num_steps // block * block]
    means = losses.reshape(len(losses), -1, block).mean(2)
    steps = [block * (i + 0.5) for i in range(means.shape[1])]
    context.curves["training"] = {"steps": steps, "runs": means}
    reached = np.asarray(below.any(1))
    first_steps = np.where(reached, below.argmax(1) * STRIDE, np.inf)
    num_missing = int((~reached).sum())
    note = f"{num_missing} of {len(reached)} runs never did" if num_missing else ""
    says = f"It reaches twice the Bayes risk within half of the {num_steps} steps of training."
    return [make_probe("steps to twice the Bayes risk", "steps", says, first_steps,
                       at_most=num_steps / 2, note=note)]  # fmt: skip
