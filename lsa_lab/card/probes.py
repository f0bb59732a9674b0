"""The questions about risk: each probe is a function of a Bench that returns its numbers.

Every criterion was fixed before the first card was made; docs/card.md has the definitions.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.card.batches import Batch, Law, bayes_predictions, drawn_batch
from lsa_lab.card.probe import Probe, judged
from lsa_lab.card.recipe import STRIDE, Tier
from lsa_lab.card.subject import Subject
from lsa_lab.estimators import sparse_posterior_mean
from lsa_lab.theory import learning_curves

WILD = 100.0  # times the risk of the answer 0, from which a run is said to diverge


@dataclass(frozen=True)
class Bench:
    """A model, the params of its runs, and the sizes at which it is asked."""

    subject: Subject
    params: list[Any]  # [R]
    tier: Tier
    law: Law
    states: Callable | None = None
    init: Callable[[Array], Any] | None = None  # of a model that is trained
    late: np.ndarray | None = None  # [R, C+1], of Trained; None where nothing was trained
    curves: dict[str, Any] = field(default_factory=dict)  # what pictures show beside the numbers

    @property
    def trained(self) -> bool:
        """Whether the card trained the model, and knows what it was trained on."""
        return self.late is not None

    def batches(self, tag: int, law: Law, n: int | None = None) -> list[Batch]:
        """Prompts of each run's own."""
        sizes = self.tier.prompts, self.tier.n if n is None else n
        rngs = [np.random.default_rng([run, tag]) for run in range(len(self.params))]
        return [drawn_batch(rng, law, *sizes) for rng in rngs]

    def answers(self, batches: list[Batch], places: list[int]) -> list[np.ndarray]:  # [R][B, P]
        """The answers of every run to its own prompts."""
        pairs = zip(self.params, batches, strict=True)
        return [self.subject.answers(params, batch.prompt, places) for params, batch in pairs]

    def risks(self, batches: list[Batch], places: list[int]) -> np.ndarray:  # [R, P]
        """The mean squared error at the noise-free targets."""
        pairs = zip(self.answers(batches, places), batches, strict=True)
        return np.stack([_risk(answers, b.targets[:, places]) for answers, b in pairs])

    def best(self, batches: list[Batch], places: list[int], law: Law) -> np.ndarray:  # [R, P]
        """The risk of the Bayes rule of a law on the same prompts."""
        return np.stack([
            _risk(bayes_predictions(b, law)[:, places], b.targets[:, places]) for b in batches
        ])  # fmt: skip


def _risk(answers: np.ndarray, targets: np.ndarray) -> np.ndarray:  # [B, P] -> [P]
    return ((answers - targets) ** 2).mean(0)


def risk_over_bayes(bench: Bench) -> list[Probe]:
    """Risk over that of the Bayes rule after d/2, d, 2d, 4d and 8d demonstrations."""
    tier, law = bench.tier, bench.law
    batches = bench.batches(1, law)
    places = list(range(tier.n + 1)) if bench.subject.causal else tier.places
    risks = bench.risks(batches, places)
    best = bench.best(batches, places, law) + law.floor
    ratios = (risks + law.floor) / best
    bench.curves["risk"] = _curves(bench, places, risks)
    probes = []
    for place in tier.places:
        i = places.index(place)
        says = f"After {place} demonstrations the risk is at most 1.1 times that of the Bayes rule."
        usual = np.mean([b.targets[:, place] ** 2 for b in batches])
        null = float(((usual + law.floor) / best[:, i]).mean())
        probes.append(
            judged(f"risk over Bayes, n = {place}", "risk", says, ratios[:, i], ratio=True,
                   at_most=1.1, null=null, null_is="the answer 0")
        )  # fmt: skip
    return probes


def _curves(bench: Bench, places: list[int], risks: np.ndarray) -> dict[str, Any]:
    """The model's risk by length, and the closed curves of five rules, which are of Gaussian w."""
    curves: dict[str, Any] = {"places": places, "runs": risks.tolist(), "rules": {}}
    if bench.law.tasks is not None:
        return curves
    n, d, noise_var = bench.tier.n, bench.tier.d, bench.tier.noise_std**2
    rules = {
        "linear attention": learning_curves.additive(n, d, noise_var),
        "delta rule, best steps": learning_curves.delta_rule(n, d, noise_var),
        "delta rule, keys and labels / |x|": learning_curves.delta(n, d, noise_var),
        "implicit delta rule": learning_curves.implicit(n, d, noise_var),
        "ridge, the Bayes rule": learning_curves.ridge(n, d, noise_var),
    }
    rows = {name: np.asarray(curve, float).tolist() for name, curve in rules.items()}
    return curves | {"rules": rows}


def growth(bench: Bench) -> list[Probe]:
    """Risk over Bayes on prompts of 16d and 64d demonstrations, 2 and 8 times the usual length."""
    probes, longest = [], 8 * bench.tier.n
    batches, ends = bench.batches(2, bench.law, longest), [2 * bench.tier.n, longest]
    places = list(range(longest + 1)) if bench.subject.causal else ends
    risks = bench.risks(batches, places)
    best = bench.best(batches, ends, bench.law) + bench.law.floor
    usual = bench.law.usual + bench.law.floor
    wild = ~(risks < WILD * usual).all(0)
    note = f"diverges at n = {places[int(wild.argmax())]}" if wild.any() else ""
    for i, (times, end) in enumerate(zip((2, 8), ends, strict=True)):
        ratios = (risks[:, places.index(end)] + bench.law.floor) / best[:, i]
        long = f"{times} times as long as in training" if bench.trained else f"of {end} pairs"
        says = f"On prompts {long} the risk is at most twice Bayes'."
        probes.append(
            judged(f"risk over Bayes, {times} times the length", "growth", says, ratios, ratio=True,
                   at_most=2, null=float((usual / best[:, i]).mean()), null_is="the answer 0",
                   note=note if i else "")
        )  # fmt: skip
    return probes


SHIFTS: dict[str, Callable[[Law], Law]] = {
    "covariates twice as large": lambda law: replace(law, scale=2.0),
    "covariates half as large": lambda law: replace(law, scale=0.5),
    "rotated covariance of condition 16": lambda law: replace(law, stretch=2.0),
    "noise twice as large": lambda law: replace(law, noise_std=2 * law.noise_std),
    "heavy-tailed noise": lambda law: replace(law, tails=3.0),
    "correlated noise": lambda law: replace(law, correlation=0.9),
}


def shifts(bench: Bench) -> list[Probe]:
    """Risk under shifts over that of ridge as it is best in training, which knows of no shift."""
    probes, n = [], bench.tier.n
    for tag, (name, shifted) in enumerate(SHIFTS.items()):
        batches = bench.batches(10 + tag, shifted(bench.law))
        ridge = bench.best(batches, [n], replace(bench.law, tasks=None))
        says = f"With {name} the risk is at most 1.5 times that of ridge."
        target = np.array([(b.targets[:, n] ** 2).mean() for b in batches])
        probes.append(
            judged(f"risk over ridge, {name}", "shifts", says,
                   bench.risks(batches, [n])[:, 0] / ridge[:, 0], ratio=True, at_most=1.5,
                   null=float((target / ridge[:, 0]).mean()), null_is="the answer 0")
        )  # fmt: skip
    return probes


def sparse(bench: Bench) -> list[Probe]:
    """Risk on sparse weights over ridge's, and over the sparse Bayes rule's."""
    d, place = bench.tier.d, 2 * bench.tier.d
    count = max(d // 4, 1)
    law = replace(bench.law, sparsity=count, tasks=None)
    batches = bench.batches(3, law)
    risks = bench.risks(batches, [place])[:, 0]
    ridge = bench.best(batches, [place], replace(law, sparsity=None))[:, 0]
    rule = jax.jit(jax.vmap(lambda p: sparse_posterior_mean(p, count, 1 / count, law.noise_var)))
    exact = []
    for batch in batches:
        part = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), batch.prompt)
        weights = np.asarray(rule(part.replace(x=part.x[:, :place], y=part.y[:, :place])))
        answers = (weights * batch.x[:, place]).sum(-1)
        exact.append(_risk(answers, batch.targets[:, place]))
    unseen = ", never seen in training," if bench.trained else ""
    says = f"On sparse weights{unseen} the risk is at most 1.1 times ridge's."
    floor = np.array(exact)
    return [
        judged("risk over ridge, sparse weights", "sparse", says, risks / ridge, ratio=True,
               at_most=1.1, null=float((floor / ridge).mean()), null_is="the sparse Bayes rule"),
        judged("risk over sparse Bayes", "sparse", "How far is it from the sparse Bayes rule?",
               risks / floor, ratio=True, null=float((ridge / floor).mean()), null_is="ridge"),
    ]  # fmt: skip


def drift(bench: Bench) -> list[Probe]:
    """Risk on drifting weights, of half-life 2d demonstrations, over the Kalman filter's."""
    n = bench.tier.n
    law = replace(bench.law, keep=0.5 ** (1 / (2 * bench.tier.d)), tasks=None)
    batches = bench.batches(4, law)
    risks = bench.risks(batches, [n])[:, 0]
    kalman = bench.best(batches, [n], law)[:, 0]
    ridge = bench.best(batches, [n], replace(law, keep=1.0))[:, 0]
    says = "On weights that drift the risk is at most 1.5 times that of the Kalman filter."
    return [
        judged("risk over the Kalman filter", "drift", says, risks / kalman, ratio=True,
               at_most=1.5, null=float((ridge / kalman).mean()), null_is="ridge"),
    ]  # fmt: skip


def steps_to_twice(bench: Bench) -> list[Probe]:
    """Steps of training until late places of held-out prompts have twice the Bayes risk or less."""
    if bench.late is None:
        return []
    below, most = bench.late <= 2, bench.tier.steps
    reached = below.any(1)
    steps = np.where(reached, below.argmax(1) * STRIDE, most)
    late = f"{int((~reached).sum())} of {len(steps)} runs never did" if not reached.all() else ""
    says = f"It reaches twice the Bayes risk within half of the {most} steps of training."
    return [judged("steps to twice the Bayes risk", "steps", says, steps.astype(float),
                   at_most=most / 2, note=late)]  # fmt: skip
