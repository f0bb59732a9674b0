"""How a card trains a model: one fixed recipe, of three sizes, that resumes after a kill."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lsa_lab.card.batches import Law, bayes_predictions, drawn_batch
from lsa_lab.card.subject import Subject, UnfitError, prefix
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample_batch
from lsa_lab.training import Files, Run, Training, fit
from lsa_lab.training.status import refuse_divergence

_PILOT, _RUNS, _HELD = 0x70696C6F, 0x72756E73, 0x68656C64  # "pilo", "runs", "held": seeds of each
STRIDE = 20  # steps of a call of the program


@dataclass(frozen=True)
class Tier:
    """The sizes of a card."""

    steps: int
    pilot_steps: int
    batch: int  # prompts in a step
    prompts: int  # prompts of a probe, for each run
    d: int = 8
    runs: int = 3
    noise_std: float = 0.5
    rates: tuple[float, ...] = (1e-2, 3e-3, 1e-3)
    lengths: tuple[int, ...] = (64, 1024)  # tokens for which time and memory are measured

    def __post_init__(self) -> None:
        least = {"steps": 100, "pilot_steps": 1, "batch": 1, "prompts": 8, "d": 3, "runs": 2}
        for name, low in least.items():
            if getattr(self, name) < low:
                raise UnfitError(f"{name} = {getattr(self, name)}: it is at least {low}")
        if self.noise_std <= 0:
            raise UnfitError("noise_std is at least a little above 0: Bayes' risk is 0 without")

    @property
    def n(self) -> int:
        """The demonstrations of a prompt in training, 8d."""
        return 8 * self.d

    @property
    def places(self) -> list[int]:
        """d/2, d, 2d, 4d and 8d demonstrations."""
        return [self.d // 2, self.d, 2 * self.d, 4 * self.d, 8 * self.d]

    def law(self, tasks: np.ndarray | None = None) -> Law:
        """How prompts are drawn in training."""
        return Law(self.d, self.noise_std, tasks=tasks)


TIERS = {
    "smoke": Tier(steps=400, pilot_steps=100, batch=16, prompts=256),
    "laptop": Tier(steps=2000, pilot_steps=400, batch=32, prompts=512),
    "paper": Tier(
        steps=60_000, pilot_steps=6000, batch=64, prompts=1024, runs=8,
        lengths=(64, 1024, 16384),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Trained:
    """What the recipe leaves: the params of each run, the learning rate, and how it went: ``late``
    is the risk over the Bayes rule's at late places of held-out prompts, after each STRIDE."""

    params: list[Any]
    rate: float
    late: np.ndarray  # [R, C+1]
    seconds: float


def trained(
    subject: Subject,
    init: Callable[[Array], Any],
    tier: Tier,
    tasks: np.ndarray | None,
    folder: Path | None,
    say: Callable[[str], None],
) -> Trained:
    """Train ``tier.runs`` seeds by Adam with a warm-up, a cosine and a clipped gradient.

    The learning rate is that of ``tier.rates`` with the least loss over the last fifth of a shorter
    training of a seed of its own. With a folder, a killed training resumes from its checkpoints.
    """
    began, root, rates = time.monotonic(), jax.random.key(0), np.array(tier.rates)
    training = _training(subject, tier, tasks)
    pilot_keys = jnp.stack([jax.random.fold_in(root, _PILOT)] * len(rates))
    seconds = _estimate(training, init, tier, pilot_keys, rates)
    say(f"about {seconds:.0f} s of training, beside compiling; the probes take a third of that")
    pilot = _fit(training, tier.pilot_steps, init, pilot_keys, rates, _files(folder, "pilot"))
    last = pilot.history["loss"][:, -max(tier.pilot_steps // 5, 1) :].mean(1)
    if not np.isfinite(last).any():
        refuse_divergence(pilot.status, "the pilot of the card")
    rate = float(rates[np.nanargmin(last)])
    say(f"learning rate {rate:g} of {', '.join(f'{r:g}' for r in rates)}")
    keys = jax.random.split(jax.random.fold_in(root, _RUNS), tier.runs)
    own = np.full(tier.runs, rate)
    late = _late(subject, tier.law(tasks), tier.n)
    run = _fit(training, tier.steps, init, keys, own, _files(folder, "runs"), late)
    refuse_divergence(run.status, "the training of the card", needs_all=True)
    params = [jax.tree.map(itemgetter(r), run.params) for r in range(tier.runs)]
    return Trained(params, rate, run.history["watch"], time.monotonic() - began)


def _late(subject: Subject, law: Law, n: int) -> Callable[[Any], Array]:
    """params -> risk over the Bayes rule's, on prompts no seed is trained on, at the last quarter
    of the places of a causal model, and of another at the query after n demonstrations."""
    batch = drawn_batch(np.random.default_rng(_HELD), law, 64, n)
    places = slice(-max(n // 4, 1) if subject.causal else -1, None)
    targets = batch.targets[:, places]
    errors = bayes_predictions(batch, law)[:, places] - targets
    best = float(np.mean(errors**2)) + law.floor
    rows = jax.tree.map(lambda leaf: jnp.asarray(leaf, subject.dtype), batch.prompt)
    tokens = jax.vmap(subject.tokens)(rows)

    def late(params: Any) -> Array:
        answers = subject.many(params, tokens)[:, -1, places]
        return (jnp.mean((answers - targets.astype(subject.dtype)) ** 2) + law.floor) / best

    return late


def _training(subject: Subject, tier: Tier, tasks: np.ndarray | None) -> Training:
    """The recipe; a run's rate and steps are its own, so that the pilot is the same program."""
    loss, data = _loss(subject, tier), _sample(tier, tasks, subject.dtype)

    def optimizer(own: tuple[Array, Array]) -> optax.GradientTransformation:
        rate, steps = own

        def schedule(step: Array) -> Array:
            step = jnp.asarray(step, rate.dtype)
            rise = jnp.minimum((step + 1) / jnp.maximum(jnp.floor(steps / 20), 1), 1)
            return rate * rise * (1 + jnp.cos(jnp.pi * jnp.minimum(step / steps, 1))) / 2

        return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))

    return Training(
        loss=lambda params, batch, own: loss(params, batch),
        sample=lambda key, own: data(key),
        optimizer=optimizer,
        steps=tier.steps,
        label="card",
    )


def _fit(
    training: Training,
    steps: int,
    init: Callable,
    keys: Array,
    rates: np.ndarray,
    files: Files | None = None,
    watch: Callable | None = None,
) -> Run:
    params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[init(key) for key in keys])
    data_keys = jax.vmap(lambda key: jax.random.fold_in(key, 1))(keys)
    own = jnp.asarray(rates), jnp.full(len(rates), float(steps))
    recipe = replace(training, steps=steps)
    return fit(recipe, params, data_keys, per_run=own, watch=watch, files=files, chunk=STRIDE)


def _loss(subject: Subject, tier: Tier) -> Callable[[Any, Prompt], Array]:
    """The mean squared error at every place of a causal model; of another at the five lengths."""
    slots = jax.vmap(subject.slots, (None, 0))

    def causal(params: Any, batch: Prompt) -> Array:
        labels = jnp.concatenate([batch.y, batch.y_query[:, None]], 1)
        answers = slots(params, jax.vmap(subject.tokens)(batch))[:, -1]
        return jnp.mean((answers - labels) ** 2)

    def lengths(params: Any, batch: Prompt) -> Array:
        losses = []
        for place in tier.places:
            part = prefix(batch, place)
            answers = slots(params, jax.vmap(subject.tokens)(part))[:, -1, -1]
            losses.append(jnp.mean((answers - part.y_query) ** 2))
        return jnp.stack(losses).mean()

    return causal if subject.causal else lengths


def _sample(tier: Tier, tasks: np.ndarray | None, dtype: Any) -> Callable[[Array], Prompt]:
    task = LinearTask(
        n=tier.n, d=tier.d, noise_std=tier.noise_std, weight_std=tier.d**-0.5, dtype=dtype
    )
    if tasks is None:
        return lambda key: sample_batch(key, task, tier.batch)
    plain = task.replace(weight_std=0.0)  # labels are noise, to which those of the tasks are added
    table = jnp.asarray(tasks, dtype)

    def batch(key: Array) -> Prompt:
        key_rows, key_tasks = jax.random.split(key)
        rows = sample_batch(key_rows, plain, tier.batch)
        weights = table[jax.random.randint(key_tasks, (tier.batch,), 0, len(table))]
        y = rows.y + jnp.einsum("bnd,bd->bn", rows.x, weights)
        return rows.replace(y=y, y_query=jnp.einsum("bd,bd->b", rows.x_query, weights))

    return batch


def _estimate(
    training: Training, init: Callable, tier: Tier, keys: Array, rates: np.ndarray
) -> float:
    """The seconds of the training, from some steps of the pilot; also the check of the gradient."""
    for _ in range(2):  # the first time with the compiler
        began = time.monotonic()
        first = _fit(training, STRIDE, init, keys, rates)
    ends: Any = first.status
    if any(status.kind == "diverged" and not status.step for status in ends):
        raise UnfitError(
            f"the gradient of the loss at init is not finite: over {tier.n + 1} tokens a state may "
            "explode, which smaller steps or keys of length 1 prevent; or a root or a norm at 0 "
            "needs a case of its own on both sides of jnp.where"
        )
    each = (time.monotonic() - began) / (STRIDE * len(rates))
    return each * (len(rates) * tier.pilot_steps + tier.runs * tier.steps)


def _files(folder: Path | None, name: str) -> Files | None:
    return None if folder is None else Files(checkpoint=folder / f"{name}.ckpt")
