"""The training of a card: one fixed recipe in three sizes, which resumes after a kill."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lsa_lab.card.batches import PromptDistribution, bayes_predictions, draw_batch
from lsa_lab.card.model_under_test import (
    ModelUnderTest,
    UnfitError,
    make_batch_tokens,
    take_prefix,
)
from lsa_lab.card.tasks import TASKS, half_life_gate, make_sampler
from lsa_lab.prompts import Prompt
from lsa_lab.training import Files, Run, Training, fit
from lsa_lab.training.status import refuse_divergence

_PILOT_SEED, _RUN_SEED, _TEST_SEED = 0x70696C32, 0x72756E32, 0x68656C64
STRIDE = 20  # steps in a call of the compiled program
# Measured for the delta rule: what the probes cost, in steps of training for each run and each
# prompt over those of a step; tracking, in steps of training; and their compilation, in that of a
# step of training, of which other tasks than regression need half.
_PROBE_STEPS, _TRACKING_STEPS, _COMPILATIONS = 13, 0.16, 3.0


@dataclass(frozen=True)
class Tier:
    """The sizes of a card: training, prompts of the probes, and the task."""

    steps: int
    pilot_steps: int
    batch: int  # prompts in a step
    prompts: int  # prompts of a probe for each run
    d: int = 8
    n: int = 0  # demonstrations of a training prompt; 0 means 8d
    task: str = "regression"  # a name in tasks.TASKS
    runs: int = 3
    noise_std: float = 0.5
    rates: tuple[float, ...] = (1e-2, 3e-3, 1e-3)
    lengths: tuple[int, ...] = (64, 1024)  # tokens for which time and memory are measured
    tracking: bool = True  # whether the model is also trained to count signs

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise UnfitError(f"task = {self.task!r}: choose {', '.join(TASKS)}")
        if not self.n:
            object.__setattr__(self, "n", 8 * self.d)
        minima = dict(steps=100, pilot_steps=1, batch=1, prompts=8, d=3, n=2 * self.d, runs=2)
        for name, minimum in minima.items():
            if getattr(self, name) < minimum:
                raise UnfitError(f"{name} = {getattr(self, name)}: it is at least {minimum}")
        if self.noise_std <= 0:
            raise UnfitError("noise_std is at least slightly above 0: else the Bayes risk is 0")

    @property
    def places(self) -> list[int]:
        """Return the numbers of demonstrations at which risks are measured: d/2, d, 2d, 4d and n.

        In a prompt of recall they are n/4, all pairs stored, n/2 and n.
        """
        if self.task == "recall":
            return [self.n // 4, self.n // 2, self.n]
        places = [self.d // 2, self.d, 2 * self.d, 4 * self.d]
        return [place for place in places if place < self.n] + [self.n]

    def distribution(self, tasks: np.ndarray | None = None) -> PromptDistribution:
        """Return the distribution of training prompts."""
        persistence = half_life_gate(self.d) if self.task == "drift" else 1.0
        return PromptDistribution(
            self.d, self.noise_std, self.task, persistence=persistence, tasks=tasks
        )


TIERS = {
    "smoke": Tier(
        steps=200, pilot_steps=1, batch=16, prompts=128, runs=2, rates=(1e-2,), lengths=(64,),
        tracking=False,
    ),
    "laptop": Tier(steps=2000, pilot_steps=400, batch=32, prompts=512),
    "paper": Tier(
        steps=60_000, pilot_steps=6000, batch=64, prompts=1024, runs=8,
        lengths=(64, 1024, 16384),
    ),
}  # fmt: skip


def train_runs(
    model: ModelUnderTest,
    init: Callable[[Array], Any],
    tier: Tier,
    tasks: np.ndarray | None,
    folder: Path | None,
    log: Callable[[str], None],
) -> tuple[Run, float]:
    """Train ``tier.runs`` seeds, and return them and the learning rate.

    It is that of ``tier.rates`` with the smallest loss over the last fifth of a shorter pilot
    training of another seed. With a folder, a killed training resumes from its checkpoints. The
    runs are watched by ``_make_late_risk`` after each STRIDE.
    """
    root, rates = jax.random.key(0), np.array(tier.rates)
    pilot_files, run_files = (
        None if folder is None else Files(checkpoint=folder / f"{name}.ckpt")
        for name in ("pilot", "runs")
    )
    training = _make_training(model, tier, tasks)
    keys, rate = jnp.stack([jax.random.fold_in(root, _PILOT_SEED)] * len(rates)), tier.rates[0]
    log(_estimate_time(training, init, tier, keys, rates))
    if len(rates) > 1:
        short = replace(training, steps=tier.pilot_steps)
        pilot = _fit_runs(short, init, keys, rates, files=pilot_files)
        losses = pilot.history["loss"][:, -max(tier.pilot_steps // 5, 1) :].mean(1)
        if not np.isfinite(losses).any():
            refuse_divergence(pilot.status, "the pilot of the card")
        rate = float(rates[np.nanargmin(losses)])
    log(f"learning rate {rate:g} of {', '.join(f'{r:g}' for r in rates)}")
    keys = jax.random.split(jax.random.fold_in(root, _RUN_SEED), tier.runs)
    late_risk = _make_late_risk(model, tier.distribution(tasks), tier.n)
    run = _fit_runs(training, init, keys, [rate] * tier.runs, files=run_files, watch=late_risk)
    refuse_divergence(run.status, "the training of the card", needs_all=True)
    return run, rate


def _make_late_risk(
    model: ModelUnderTest, distribution: PromptDistribution, n: int
) -> Callable[[Any], Array]:
    """Return the function from params to the risk over that of the Bayes rule on test prompts.

    The risk of a causal model is that at the last quarter of the places, and the risk of any other
    model that at the query after n demonstrations.
    """
    batch = draw_batch(np.random.default_rng(_TEST_SEED), distribution, 64, n)
    places = slice(-max(n // 4, 1) if model.causal else -1, None)
    targets, offset = batch.targets[:, places], distribution.risk_offset
    errors = bayes_predictions(batch, distribution)[:, places] - targets
    bayes_risk = float(np.mean(errors**2)) + offset
    prompts = jax.tree.map(lambda leaf: jnp.asarray(leaf, model.dtype), batch.prompt)
    tokens = jax.vmap(model.make_tokens)(prompts)

    def late_risk(params: Any) -> Array:
        predictions = model.predict_batch(params, tokens)[:, -1, places]
        risk = jnp.mean((predictions - targets.astype(model.dtype)) ** 2)
        return (risk + offset) / bayes_risk

    return late_risk


def _make_training(model: ModelUnderTest, tier: Tier, tasks: np.ndarray | None) -> Training:
    """Return the recipe, with the learning rate and the number of steps as arguments of each run.

    The pilot and the runs thus share one compiled program.
    """
    loss, sample = make_loss(model, tier), make_sampler(tier, tasks, model.dtype)

    def optimizer(run_settings: tuple[Array, Array]) -> optax.GradientTransformation:
        rate, num_steps = run_settings

        def schedule(step: Array) -> Array:
            step = jnp.asarray(step, rate.dtype)
            warmup_steps = jnp.maximum(jnp.floor(num_steps / 20), 1)
            warmup_fraction = jnp.minimum((step + 1) / warmup_steps, 1)
            decay_factor = (1 + jnp.cos(jnp.pi * jnp.minimum(step / num_steps, 1))) / 2
            return rate * warmup_fraction * decay_factor

        return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))

    return Training(
        loss=lambda params, batch, run_settings: loss(params, batch),
        sample=lambda key, run_settings: sample(key),
        optimizer=optimizer,
        steps=tier.steps,
        label="card",
    )


def _fit_runs(training: Training, init: Callable, keys: Array, rates: Any, **options: Any) -> Run:
    params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[init(key) for key in keys])
    data_keys = jax.vmap(lambda key: jax.random.fold_in(key, 1))(keys)
    settings = jnp.asarray(rates), jnp.full(len(rates), float(training.steps))
    return fit(training, params, data_keys, per_run=settings, chunk=STRIDE, **options)


def make_loss(model: ModelUnderTest, tier: Tier) -> Callable[[Any, Prompt], Array]:
    """Return the mean squared error at every place, or at five lengths if not causal."""
    predict = jax.vmap(model.predict, (None, 0))

    def loss_at_all_places(params: Any, batch: Prompt) -> Array:
        labels = _collect_labels(batch)
        predictions = predict(params, jax.vmap(model.make_tokens)(batch))[:, -1]
        return jnp.mean((predictions - labels) ** 2)

    def loss_at_lengths(params: Any, batch: Prompt) -> Array:
        losses = []
        for place in tier.places:
            prefix = take_prefix(batch, place)
            predictions = predict(params, jax.vmap(model.make_tokens)(prefix))[:, -1, -1]
            losses.append(jnp.mean((predictions - prefix.y_query) ** 2))
        return jnp.stack(losses).mean()

    return loss_at_all_places if model.causal else loss_at_lengths


def _collect_labels(batch: Prompt) -> Array:  # [B, n+1]
    return jnp.concatenate([batch.y, batch.y_query[:, None]], 1)


def sample_prompts(
    key: Array | int, size: int, *, task: str = "regression", d: int = 8, n: int = 0
) -> tuple[np.ndarray, np.ndarray]:  # [B, n+1, 2d+1], [B, n+1]
    """Draw prompts as the recipe does: the tokens of a causal model and the labels of its loss.

    The loss is the mean of (prediction - label)² over all tokens. ``key`` may be a seed. n is 8d by
    default. A model trained on such prompts elsewhere is measured by ``report_card(forward,
    params=params, task=task, d=d, n=n)``.
    """
    tier = replace(TIERS["laptop"], batch=size, task=task, d=d, n=n)
    key = jax.random.key(key) if isinstance(key, int) else key
    batch = make_sampler(tier, None, jnp.float32)(key)
    return np.asarray(make_batch_tokens(batch, True)), np.asarray(_collect_labels(batch))


def _estimate_time(training: Training, init: Callable, tier: Tier, keys: Any, rates: Any) -> str:
    """Return the seconds of the card as text, estimated from the first steps of the pilot.

    Raises UnfitError if the first gradient is not finite.
    """
    times = [time.monotonic()]
    for _ in range(2):  # the first call also compiles
        run = _fit_runs(replace(training, steps=STRIDE), init, keys, rates)
        times.append(time.monotonic())
    first, second = np.diff(times)
    statuses: Any = run.status
    if any(status.kind == "diverged" and not status.step for status in statuses):
        raise UnfitError(
            f"the gradient of the loss at init is not finite: over {tier.n + 1} tokens a state may "
            "explode, which smaller steps or keys of length 1 prevent; or a root or a norm at 0 "
            "needs a separate case on both sides of jnp.where"
        )
    per_step, regression = second / (STRIDE * len(rates)), tier.task == "regression"
    steps = tier.runs * tier.steps + len(rates) * tier.pilot_steps * (len(rates) > 1)
    probe_steps = _PROBE_STEPS * tier.runs * tier.prompts / tier.batch
    probe_steps += _TRACKING_STEPS * tier.runs * tier.steps * (tier.tracking and regression)
    compiling = _COMPILATIONS * (first - second) * (1 if regression else 0.5)
    parts = per_step * steps, per_step * probe_steps, compiling
    words = "about {:.0f} s more: {:.0f} of training, {:.0f} of probes, {:.0f} of compiling"
    return words.format(sum(parts), *parts)
