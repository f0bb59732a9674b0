"""Probes of how a model computes its predictions: the nearest rule, memory, label gradients."""

from dataclasses import asdict, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.card import batches
from lsa_lab.card.evaluation import EvaluationContext, Probe, make_probe, mean_squared_errors
from lsa_lab.card.identity import LIKE, NONE, PROMPT_SETS, NearestRule, find_nearest_rules

_GRADIENT_PROMPTS = 64  # prompts of a run for label gradients
_LEAST_LABEL_SUM = 0.2  # sum of the coefficients of both labels, below which no share is defined


def find_rules(context: EvaluationContext) -> list[Probe]:
    """Find the nearest known rule after each layer and at the end."""
    size = max(context.tier.prompts // len(context.params) // 2, 32)
    sizes = context.tier.n, size, PROMPT_SETS if context.training is None else "runs"
    rules = find_nearest_rules(context.model, context.params, context.distribution, *sizes)
    context.curves["rules"] = [
        asdict(rule) | {"title": rule.title, "agreement": rule.agreement} for rule in rules
    ]
    last, question = rules[-1], "Which known rule does the model run?"
    says = f"The distance to the predictions of a known rule is at most {LIKE}."
    return [
        Probe("nearest rule", "rule", question, last.title, note=_describe_choice(last)),
        make_probe("distance to the nearest rule", "rule", says, last.samples, at_most=LIKE,
                   null=last.random, null_is="the median rule of the list",
                   facts={"by_prompts": last.by_prompts}),
        *(
            Probe(f"rule after layer {i + 1} of {len(rules)}", "rule",
                  "Which known rule is nearest?", rule.title,
                  note=f"distance {rule.distance:.3g}; {_describe_choice(rule)}")
            for i, rule in enumerate(rules[:-1])
        ),
    ]  # fmt: skip


def _describe_choice(rule: NearestRule) -> str:
    """Return the numbers of a rule, the agreement of the runs, its ties, and the layer's own."""
    prefix = f"nearest is {rule.name}, " if rule.title == NONE else ""
    parts = [f"{prefix}{rule.point}", f"{rule.agreement} agree"]
    if rule.tied:
        parts.append(f"the card cannot tell it from {', '.join(rule.tied)}")
    if rule.own is not None and rule.own["name"] != rule.name:
        parts.append("by its design {name}, at distance {distance:.3g}".format(**rule.own))
    return "; ".join(parts)


def measure_overwriting(context: EvaluationContext) -> list[Probe]:
    """Measure the share of the new label in the prediction for a key with two labels."""
    pairs, ridge_rule = context.tier.n // 2, replace(context.distribution, tasks=None)
    key, drawn, labels = pairs // 2, [], []
    for rng in context.make_rngs(5):
        batch = batches.draw_repeated_keys(rng, context.distribution, context.tier.prompts, pairs)
        drawn.append(replace(batch, prompt=batch.prompt.replace(x_query=batch.x[:, key])))
        labels.append(batch.targets[:, [pairs + key, key]])  # new and old
    answers = context.predict(drawn, 2 * pairs)
    ridge = [batches.bayes_predictions(batch, ridge_rule)[:, -1] for batch in drawn]
    shares, nulls = ([*map(_new_label_share, rows, labels)] for rows in (answers, ridge))
    says = "The new label of a repeated key replaces the old one: its share is at least 0.75."
    return [make_probe("share of the new label", "overwriting", says, shares, answers,
                       at_least=0.75, null=nulls, null_is="ridge, which averages")]  # fmt: skip


def _new_label_share(answers: np.ndarray, labels: np.ndarray) -> float:
    """Return a/(a + b) of the regression ŷ = labels @ (a, b), with a, b >= 0; NaN if undefined."""
    if not np.isfinite(answers).all():
        return np.nan
    coefficients, *_ = np.linalg.lstsq(labels, answers, rcond=None)
    a, b = np.maximum(coefficients, 0)
    return a / (a + b) if a + b > _LEAST_LABEL_SUM else np.nan


def measure_recall(context: EvaluationContext) -> list[Probe]:
    """Measure the error for a stored pair, with keys on a sphere and independent labels N(0, 1)."""
    d, probes, rule = context.tier.d, [], replace(context.distribution, tasks=None)
    for pairs in (d // 2, d, 2 * d):
        rngs = context.make_rngs(6, pairs)
        stored = [_draw_pairs(rng, context.tier.prompts, pairs, d) for rng in rngs]
        errors, answers = context.evaluate(stored, pairs)
        ridge = context.bayes_risks(stored, pairs, rule)
        says = f"The error for one of {pairs} stored pairs of key width {d} is at most 1.1 times "
        probes.append(
            make_probe(f"recall error over ridge's, {pairs} pairs", "recall",
                       f"{says}that of ridge.", errors / ridge, answers, at_most=1.1,
                       null=1 / np.median(ridge), null_is="the answer 0",
                       note=f"squared error {np.median(errors):.3g} of 1")
        )  # fmt: skip
    return probes


def _draw_pairs(rng: np.random.Generator, size: int, pairs: int, d: int) -> batches.Batch:
    x = rng.normal(size=(size, pairs + 1, d))
    x *= np.sqrt(d) / np.linalg.norm(x, axis=-1, keepdims=True)
    labels = rng.normal(size=x.shape[:2])
    index, rows = rng.integers(pairs, size=size), np.arange(size)
    x[:, -1], labels[:, -1] = x[rows, index], labels[rows, index]
    return batches.make_batch(x, labels, labels)


def measure_permutation_distance(context: EvaluationContext) -> list[Probe]:
    """Measure the squared change of the prediction under a permutation of the demonstrations."""
    n, rngs, sizes = context.tier.n, context.make_rngs(7), (context.tier.prompts, context.tier.n)
    drawn = [batches.draw_batch(rng, context.distribution, *sizes) for rng in rngs]
    pairs = zip(drawn, rngs, strict=True)
    permuted = [batches.permute(batch, rng.permutation(n)) for batch, rng in pairs]
    before, after = context.predict(drawn, n), context.predict(permuted, n)
    says = "A permutation changes the prediction by at most 0.01 of its mean square."
    return [make_probe("squared change under a permutation", "order", says,
                       relative_changes(after, before), after, at_most=0.01, null=2.0,
                       null_is="answers to unrelated prompts")]  # fmt: skip


def relative_changes(changed: np.ndarray, reference: np.ndarray) -> np.ndarray:  # [R, B] -> [R]
    """Return E (a - b)² / E b² of each run, infinite if an answer is not finite."""
    scale = mean_squared_errors(reference, 0.0)
    changes = mean_squared_errors(np.where(np.isfinite(reference), changed, np.inf), reference)
    return changes / np.clip(scale, 1e-12, 1e300)


def measure_label_gradients(context: EvaluationContext) -> list[Probe]:
    """Measure the gradient of the prediction by the labels, and its cosine with that of ridge."""
    model, n = context.model, context.tier.n
    penalty = context.distribution.noise_var * context.distribution.d

    def predict(y: Any, params: Any, prompt: Any) -> Any:
        return model.predict(params, model.make_tokens(prompt.replace(y=y)))[-1, -1]

    gradient = jax.jit(jax.vmap(jax.grad(predict), (0, None, 0)))
    largest, cosines, last_quarters = [], [], []
    for params, batch in zip(context.params, context.draw_batches(8), strict=True):
        prompt = jax.tree.map(
            lambda leaf: jnp.asarray(leaf[:_GRADIENT_PROMPTS], model.dtype), batch.prompt
        )
        gradients = np.asarray(gradient(prompt.y, params, prompt), float)  # [B, n]
        shares = np.abs(gradients) / np.maximum(np.abs(gradients).sum(1, keepdims=True), 1e-12)
        shares = shares if gradients.any() else shares * np.nan  # without gradients no shares
        x, query = np.asarray(prompt.x, float), np.asarray(prompt.x_query, float)
        gram = x.swapaxes(1, 2) @ x + penalty * np.eye(x.shape[2])
        ridge = (x @ np.linalg.solve(gram, query[..., None]))[..., 0]  # X(XᵀX + λI)⁻¹x
        norms = np.linalg.norm(gradients, axis=1) * np.linalg.norm(ridge, axis=1)
        largest.append(shares.max(1).mean())
        cosines.append(((gradients * ridge).sum(1) / np.maximum(norms, 1e-12)).mean())
        last_quarters.append(shares[:, -n // 4 :].sum(1).mean())
    says = "The cosine of the label gradients of the model and of ridge is at least 0.9."
    return [
        make_probe("cosine of flows with ridge's", "flows", says, cosines, at_least=0.9, null=0.0,
                   null_is="random gradients"),
        make_probe("share of the strongest demonstration", "flows",
                   "Does one demonstration dominate?", largest, null=1 / n,
                   null_is="equal shares"),
        make_probe("share of the last quarter", "flows", "Do the last demonstrations dominate?",
                   last_quarters, null=0.25, null_is="equal shares"),
    ]  # fmt: skip
